//! The command `turnbuckle bridge`: selects the server and the transport of a gateway.

use turnbuckle_gateway::Gateway;

use super::serve::{no_json_on_the_wire, over_http, public};
use crate::{
    args::{self, Connection},
    config,
    connect::{Heard, Way, WayKind, wire_log},
    exit::Failure,
    interrupt::Stop,
    output::{complain, one_line},
    progress::Line,
    target::Target,
};

/// A free port of this machine.
const ANYWHERE: &str = "127.0.0.1:0";

pub(crate) async fn run(arguments: args::Bridge) -> Result<(), Failure> {
    let args::Bridge { stdio, http, path, .. } = &arguments;
    let line = Line::on_stderr();
    let connection = connection(&arguments)?;
    let way = way(&arguments, &connection, &line)?;
    let kind = way.kind();
    let over_stdio = *stdio || (http.is_none() && path.is_none() && kind == WayKind::Url);
    if over_stdio {
        no_json_on_the_wire(arguments.output)?;
    }
    let heard = Heard::default();
    let gateway = gateway(way.clone(), &connection, line, heard.clone());
    let outcome = if over_stdio {
        on_stdio(&gateway, kind).await
    } else {
        on_http(&gateway, &way, &arguments).await
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

fn gateway(way: Way, connection: &Connection, line: Line, heard: Heard) -> Gateway {
    let Connection { revision, wire, .. } = *connection;
    Gateway::new(move |mut builder| {
        if let Some(revision) = revision {
            builder = builder.revision(revision);
        }
        if wire {
            builder = wire_log(builder, &line);
        }
        let (way, line, heard) = (way.clone(), line.clone(), heard.clone());
        async move { way.connect(builder, &line, heard).await }
    })
}

async fn on_stdio(gateway: &Gateway, kind: WayKind) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    tokio::select! {
        ended = gateway.serve_stdio() => ended.map_err(|error| kind.failure(error)),
        // Whoever started this may end it so: the server is then seen off.
        _ = stop.asked() => Ok(()),
    }
}

async fn on_http(gateway: &Gateway, way: &Way, arguments: &args::Bridge) -> Result<(), Failure> {
    let address = arguments.http.as_deref().unwrap_or(ANYWHERE);
    let kind = way.kind();
    let mut stop = Stop::listen()?;
    let service = tokio::select! {
        service = gateway.http_service() => service.map_err(|error| kind.failure(error))?,
        _ = stop.asked() => return Ok(()),
    };
    drop(stop);
    if let Some(url) = way.asks_in_the_name_of_a_person().await {
        complain(&format!(
            "warning: whoever reaches this acts as the person who logged in at {}",
            one_line(url)
        ));
    }
    let serving = public(service, &arguments.public_hosts).serve(address);
    let serving = match &arguments.path {
        Some(path) => serving.path(path),
        None => serving,
    };
    over_http(serving, address, &arguments.public_hosts, arguments.output).await
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
        output: arguments.output,
        environment: arguments.environment.clone(),
        headers: arguments.headers.clone(),
        bearer_env: arguments.bearer_env.clone(),
        unix_socket: arguments.unix_socket.clone(),
        verbose: arguments.verbose,
        config: arguments.config.clone(),
        // Questions are for those on the other side.
        no_input: true,
        roots: Vec::new(),
        wire: arguments.wire,
    })
}
