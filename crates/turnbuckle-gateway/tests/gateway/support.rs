//! Owns the ways through a gateway, and the server that stands behind most of them.
//! Does not own any expectation.

use std::{
    collections::HashMap,
    future::IntoFuture as _,
    sync::{Arc, Mutex},
};

use tokio::sync::Semaphore;
use turnbuckle::{
    Client, ClientBuilder, Ctx, Revision, RpcError, Server, State, ToolError,
    elicit::{elicit, roots, sample},
    resource,
    server::RawArgs,
    tool,
    types::{LogLevel, Raw},
};
use turnbuckle_gateway::Gateway;

pub(crate) const MODERN: Revision = Revision::V2026_07_28;
pub(crate) const LEGACY: Revision = Revision::V2025_11_25;

/// What carries the messages of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    Stream,
    Http,
}

/// One of all ways from a client to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) downstream: (Wire, Revision),
    pub(crate) upstream: (Wire, Revision),
}

/// Every pair of wires, in every pair of eras.
pub(crate) fn ways() -> Vec<Way> {
    let sides = [
        (Wire::Stream, MODERN),
        (Wire::Stream, LEGACY),
        (Wire::Http, MODERN),
        (Wire::Http, LEGACY),
    ];
    sides
        .into_iter()
        .flat_map(|downstream| sides.map(|upstream| Way { downstream, upstream }))
        .collect()
}

/// A gateway to this server.
pub(crate) async fn gateway(server: &Server, (wire, revision): (Wire, Revision)) -> Gateway {
    match wire {
        Wire::Stream => {
            let server = server.clone();
            Gateway::new(move |builder| {
                let (ours, theirs) = tokio::io::duplex(1 << 16);
                tokio::spawn(server.serve(theirs).into_future());
                builder.revision(revision).over(ours)
            })
        }
        Wire::Http => {
            let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
            let url = bound.url();
            tokio::spawn(bound.into_future());
            Gateway::new(move |builder| builder.revision(revision).no_proxy().connect(url.clone()))
        }
    }
}

/// A client on this side of a gateway.
pub(crate) async fn connect(
    builder: ClientBuilder,
    gateway: &Gateway,
    (wire, revision): (Wire, Revision),
) -> Client {
    let builder = builder.revision(revision);
    let client = match wire {
        Wire::Stream => {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let gateway = gateway.clone();
            tokio::spawn(async move { gateway.serve(theirs).await });
            builder.over(ours).await
        }
        Wire::Http => {
            let url = serve_http(gateway).await;
            builder.no_proxy().connect(url).await
        }
    };
    client.unwrap()
}

pub(crate) async fn serve_http(gateway: &Gateway) -> String {
    let bound = gateway.serve_http("127.0.0.1:0").await.unwrap().bind().await.unwrap();
    let url = bound.url();
    tokio::spawn(bound.into_future());
    url
}

/// A client of the fixture, through a gateway.
pub(crate) async fn through(way: Way, fixture: &Fixture, builder: ClientBuilder) -> Client {
    let gateway = gateway(&fixture.server(), way.upstream).await;
    connect(builder, &gateway, way.downstream).await
}

/// What the server behind the gateway has seen.
#[derive(Clone, Default)]
pub(crate) struct Fixture(Arc<Inner>);

#[derive(Default)]
struct Inner {
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Fixture {
    /// Something has happened.
    pub(crate) fn happened(&self, what: &str) {
        self.gate(what).add_permits(1);
    }

    /// Waits until it has, once for each time.
    pub(crate) async fn wait(&self, what: &str) {
        self.gate(what).acquire().await.unwrap().forget();
    }

    fn gate(&self, what: &str) -> Arc<Semaphore> {
        let mut gates = self.0.gates.lock().unwrap();
        gates.entry(what.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
    }

    pub(crate) fn server(&self) -> Server {
        Server::new("behind", "7.1")
            .instructions("Ask nicely.")
            .state(self.clone())
            .tool(tool("echo", echo))
            .tool(tool("count", count))
            .tool(tool("hang", hang))
            .tool(tool("fail", fail))
            .tool(tool("greet", greet))
            .tool(tool("think", think))
            .tool(tool("where", locate))
            .tool(tool("wonder", wonder))
            .resource(resource("note://1", async || "first"))
            .resource(resource("note://2", async || "second"))
    }
}

/// Tells when it is dropped.
struct Dropped(Fixture, &'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.happened(self.1);
    }
}

async fn echo(RawArgs(arguments): RawArgs) -> String {
    arguments.to_string()
}

async fn count(ctx: Ctx) -> &'static str {
    for step in 1..=3 {
        ctx.progress(step).total(3).message(format!("step {step}")).await;
        ctx.log(LogLevel::Warning, format!("did {step}")).await;
    }
    "counted"
}

async fn hang(State(fixture): State<Fixture>) -> &'static str {
    let _dropped = Dropped(fixture.clone(), "dropped");
    fixture.happened("started");
    std::future::pending::<()>().await;
    "never"
}

async fn fail() -> Result<String, RpcError> {
    let data = Raw::from_json(r#"{"why":1.50,"big":123456789012345678901234567890}"#).unwrap();
    Err(RpcError::new(-31_999, "not today").with_data(&data))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

async fn greet(ctx: Ctx) -> Result<String, ToolError> {
    let Name { name } = ctx.ask("name", elicit("Who are you?")).await?;
    let Name { name: other } = ctx.ask("other", elicit("And who is that?")).await?;
    Ok(format!("Hello, {name} and {other}!"))
}

async fn think(ctx: Ctx) -> Result<String, ToolError> {
    let thought = ctx.ask("thought", sample("Think.")).await?;
    Ok(format!("{} thinks", thought.model))
}

async fn locate(ctx: Ctx) -> Result<String, ToolError> {
    let roots = ctx.ask("roots", roots()).await?;
    Ok(roots.iter().map(|root| root.uri.clone()).collect::<Vec<_>>().join(" "))
}

/// Asks, and gives up as soon as it is told to.
async fn wonder(ctx: Ctx, State(fixture): State<Fixture>) -> Result<String, ToolError> {
    tokio::select! {
        answer = ctx.ask("name", elicit::<Name>("Who are you?")) => Ok(answer?.name),
        () = fixture.wait("give up") => Ok("gave up".to_owned()),
    }
}
