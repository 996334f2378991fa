//! `turnbuckle serve`: over which wire, and how it is told to stop.

use std::io::IsTerminal;

use serde_json::json;
use tokio::sync::oneshot;
use turnbuckle::{
    ErrorKind, Server,
    http::{BoundHttp, HttpReport, HttpService, ServingHttp},
};

use crate::{
    args::{Format, Serve},
    demo_server,
    exit::Failure,
    interrupt::EndSignals,
    output::{complain, print_json},
};

pub(crate) async fn run(arguments: Serve) -> Result<(), Failure> {
    if arguments.http.is_none() {
        no_json_on_the_wire(arguments.output)?;
    }
    let server = demo_server::server();
    let serving = async {
        match &arguments.http {
            Some(address) => {
                let service = public(server.http_service(), &arguments.public_hosts);
                let (serving, signals) = (service.serve(&**address), EndSignals::listen()?);
                let hosts = &arguments.public_hosts;
                over_http(serving, address, hosts, arguments.output, signals).await
            }
            None => over_stdio(&server).await,
        }
    };
    tokio::select! {
        ended = serving => ended,
        never = demo_server::wind(server.changes()) => match never {},
    }
}

/// Where stdout is the wire, nothing else is printed there.
pub(super) fn no_json_on_the_wire(output: Format) -> Result<(), Failure> {
    match output {
        Format::Text => Ok(()),
        Format::Json => Err(Failure::usage(
            "--output json goes with --http: over standard input and output, stdout is the wire",
        )),
    }
}

async fn over_stdio(server: &Server) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() {
        complain(
            "This serves the demo tools to a client that starts it, such as:\n  \
             turnbuckle call \"turnbuckle serve\" echo text=hello\n\
             On a terminal it waits for JSON-RPC messages, one a line; Ctrl-D ends it.",
        );
    }
    Ok(server.serve_stdio().await?)
}

/// Serves until it is told to stop.
pub(crate) async fn over_http(
    serving: ServingHttp,
    address: &str,
    public_hosts: &[String],
    output: Format,
    mut signals: EndSignals,
) -> Result<(), Failure> {
    let (tell, told) = oneshot::channel();
    let bound = bind(serving, address, public_hosts, told).await?;
    complain(&format!("serving {} (Ctrl-C stops it)", bound.url()));
    if output == Format::Json {
        print_json(&json!({"url": bound.url()}))?;
    }
    let mut serving = bound.into_future();
    tokio::select! {
        ended = &mut serving => return ended.map(drop).map_err(Failure::from),
        _ = signals.happened() => {}
    }
    complain("stopping: running calls may finish; Ctrl-C again does not wait");
    // If nobody listens, it has stopped already.
    let _ = tell.send(());
    tokio::select! {
        biased;
        ended = &mut serving => complain(&summary(&ended?)),
        signal = signals.happened() => return Err(signal.failure("running calls were not waited for")),
    }
    Ok(())
}

/// Allows the names under which clients reach the server.
pub(crate) fn public(service: HttpService, hosts: &[String]) -> HttpService {
    hosts.iter().fold(service, HttpService::public_host)
}

async fn bind(
    serving: ServingHttp,
    address: &str,
    public_hosts: &[String],
    told: oneshot::Receiver<()>,
) -> Result<BoundHttp, Failure> {
    let serving = serving.with_shutdown(async {
        // An end without a word is an end too.
        let _ = told.await;
    });
    serving.bind().await.map_err(|error| match error.kind() {
        // With no names to be wrong, it is that there are none.
        ErrorKind::Refused if public_hosts.is_empty() => Failure::usage(format!(
            "{address} can be reached from other machines, so the server must know its public \
             name: add --public-host mcp.example.com with the name that clients use, or serve \
             on 127.0.0.1"
        )),
        ErrorKind::Refused => Failure::usage(error.to_string()),
        _ => error.into(),
    })
}

fn summary(report: &HttpReport) -> String {
    let HttpReport { finished, cancelled, listeners, .. } = report;
    format!(
        "stopped: {finished} running calls finished, {cancelled} were stopped, {listeners} \
         listen streams were ended"
    )
}
