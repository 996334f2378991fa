//! The command `turnbuckle bridge`: selects the server and the transport of a gateway.

use std::time::Duration;

use turnbuckle_gateway::Gateway;

use super::serve::{no_json_on_the_wire, over_http, public};
use crate::{
    args::{self, Connection},
    config,
    connect::{Heard, Way, WayKind, wire_log},
    exit::Failure,
    interrupt::EndSignals,
    output::{complain, one_line},
    progress::Line,
    target::Target,
};

/// A free port of this machine.
const ANYWHERE: &str = "127.0.0.1:0";
/// How long connections have to cancel their calls and to end their sessions.
const GOODBYE: Duration = Duration::from_secs(2);

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
    if kind == WayKind::Url {
        finish_tasks().await;
    }
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
    let mut signals = EndSignals::listen()?;
    tokio::select! {
        ended = gateway.serve_stdio() => ended.map_err(|error| kind.failure(error)),
        // The server is ended when the runtime is.
        _ = signals.happened() => Ok(()),
    }
}

async fn on_http(gateway: &Gateway, way: &Way, arguments: &args::Bridge) -> Result<(), Failure> {
    let address = arguments.http.as_deref().unwrap_or(ANYWHERE);
    let kind = way.kind();
    let mut signals = EndSignals::listen()?;
    let service = tokio::select! {
        service = gateway.http_service() => service.map_err(|error| kind.failure(error))?,
        _ = signals.happened() => return Ok(()),
    };
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
    over_http(serving, address, &arguments.public_hosts, arguments.output, signals).await
}

/// Lets dropped connections finish: a call to a legacy server over HTTP is cancelled by a message.
async fn finish_tasks() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let finished = async {
        while metrics.num_alive_tasks() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // Then they are dropped with the runtime.
    let _ = tokio::time::timeout(GOODBYE, finished).await;
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
