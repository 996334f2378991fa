//! Owns `turnbuckle bridge`: which server stands behind it, and on which wire it is served.
//! Does not own what crosses it.

use turnbuckle::Bridge;

use super::serve::over_http;
use crate::{
    args::{self, Connection, Format},
    config,
    connect::{Heard, Way, WayKind},
    exit::Failure,
    interrupt::Stop,
    progress::Line,
    target::Target,
};

/// A free port of this machine.
const ANYWHERE: &str = "127.0.0.1:0";

pub(crate) async fn run(arguments: args::Bridge) -> Result<(), Failure> {
    let args::Bridge { stdio, http, path, public_hosts, .. } = &arguments;
    let line = Line::on_stderr();
    let connection = connection(&arguments)?;
    let way = way(&arguments, &connection, &line)?;
    let kind = way.kind();
    let over_stdio = *stdio || (http.is_none() && path.is_none() && kind == WayKind::Url);
    let heard = Heard::default();
    let bridge = bridge(way, &connection, line, heard.clone());
    let outcome = if over_stdio {
        on_stdio(&bridge, kind).await
    } else {
        let address = http.as_deref().unwrap_or(ANYWHERE);
        on_http(&bridge, kind, address, path.as_deref(), public_hosts).await
    };
    let shown = connection.verbose;
    outcome
        .map_err(|failure| failure.at(&connection.target))
        .map_err(|failure| if shown { failure } else { failure.with_last_lines(&heard.lines()) })
}

/// The way to what was typed: words after `--` are a program, whatever a file calls so.
fn way(arguments: &args::Bridge, connection: &Connection, line: &Line) -> Result<Way, Failure> {
    let server = match arguments.target {
        Some(_) => config::server(connection, line)?,
        None => connection.target.server(),
    };
    Way::to(server, connection)
}

fn bridge(way: Way, connection: &Connection, line: Line, heard: Heard) -> Bridge {
    let revision = connection.revision;
    Bridge::new(move |mut builder| {
        if let Some(revision) = revision {
            builder = builder.revision(revision);
        }
        let (way, line, heard) = (way.clone(), line.clone(), heard.clone());
        async move { way.connect(builder, &line, heard).await }
    })
}

async fn on_stdio(bridge: &Bridge, kind: WayKind) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    tokio::select! {
        ended = bridge.serve_stdio() => ended.map_err(|error| kind.failure(error)),
        // Whoever started this may end it so: the server is then seen off.
        () = stop.asked() => Ok(()),
    }
}

async fn on_http(
    bridge: &Bridge,
    kind: WayKind,
    address: &str,
    path: Option<&str>,
    public_hosts: &[String],
) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let serving = tokio::select! {
        serving = bridge.serve_http(address) => serving.map_err(|error| kind.failure(error))?,
        () = stop.asked() => return Ok(()),
    };
    drop(stop);
    let serving = match path {
        Some(path) => serving.path(path),
        None => serving,
    };
    over_http(serving, address, public_hosts).await
}

/// What is typed, as every command has it that talks to a server.
fn connection(arguments: &args::Bridge) -> Result<Connection, Failure> {
    let typed = match arguments.command.split_first() {
        Some((program, rest)) => {
            Some(Target::Program { program: program.clone(), arguments: rest.to_vec() })
        }
        None => arguments.target.clone(),
    };
    let target = typed.ok_or_else(|| Failure::usage("there is no server to build a bridge to"))?;
    Ok(Connection {
        target,
        timeout: None,
        revision: arguments.revision,
        output: Format::Text,
        environment: arguments.environment.clone(),
        headers: arguments.headers.clone(),
        bearer_env: arguments.bearer_env.clone(),
        unix_socket: arguments.unix_socket.clone(),
        verbose: arguments.verbose,
        config: arguments.config.clone(),
        // Questions are for those on the other side.
        no_input: true,
        roots: Vec::new(),
        wire: false,
    })
}
