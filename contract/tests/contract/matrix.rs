//! The specification's compatibility matrix (2026-07-28 basic/versioning): every pair of client and
//! server eras, each with the outcome that it has to have, over stdio, HTTP and in memory.

use std::{future::IntoFuture, process::Command};

use turnbuckle::{
    Client, ClientBuilder, Error, Limits, Result, Revision, server::Revisions,
    transport::child_process::Spawn,
};
use turnbuckle_contract::{Fixture, server};

use crate::rig::{Wire, program, within};

/// Which eras a peer speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Speaks {
    Modern,
    Legacy,
    Both,
}
use Speaks::{Both, Legacy, Modern};

macro_rules! cells {
    ($($cell:ident: $client:ident meets $server:ident, $outcome:expr;)+) => {$(
        mod $cell {
            use super::*;

            #[tokio::test]
            async fn memory() { within(cell(Wire::Memory, $client, $server, $outcome)).await; }
            #[tokio::test]
            async fn stdio() { within(cell(Wire::Stdio, $client, $server, $outcome)).await; }
            #[tokio::test]
            async fn http() { within(cell(Wire::Http, $client, $server, $outcome)).await; }
        }
    )+};
}

/// What becomes of a pair.
enum Outcome {
    Works(Revision),
    /// The error names what the server does speak.
    Fails(Revision),
}
use Outcome::{Fails, Works};

const NEW: Revision = Revision::V2026_07_28;
const OLD: Revision = Revision::V2025_11_25;

cells! {
    modern_meets_modern: Modern meets Modern, Works(NEW);
    // req: lifecycle:version:no-overlap-rejects
    modern_meets_legacy: Modern meets Legacy, Fails(OLD);
    // req: typescript:hosting:entry:dual-era-one-factory, typescript:hosting:entry:pin-negotiation
    modern_meets_dual: Modern meets Both, Works(NEW);
    dual_meets_modern: Both meets Modern, Works(NEW);
    dual_meets_legacy: Both meets Legacy, Works(OLD);
    // req: typescript:hosting:entry:dual-era-one-factory
    dual_meets_dual: Both meets Both, Works(NEW);
    // req: lifecycle:version:no-overlap-rejects, typescript:hosting:entry:strict-rejects-legacy
    legacy_meets_modern: Legacy meets Modern, Fails(NEW);
    legacy_meets_legacy: Legacy meets Legacy, Works(OLD);
    // req: typescript:hosting:entry:dual-era-one-factory, transport:streamable-http:stateful
    legacy_meets_dual: Legacy meets Both, Works(OLD);
}

async fn cell(wire: Wire, ours: Speaks, theirs: Speaks, outcome: Outcome) {
    let met = meet(wire, ours, theirs).await;
    match (met, outcome) {
        (Ok(revision), Works(expected)) => assert_eq!(revision, expected),
        (Err(error), Fails(named)) => {
            assert!(error.to_string().contains(named.as_str()), "{error}");
        }
        (Ok(revision), Fails(_)) => panic!("it worked, in {revision}"),
        (Err(error), Works(_)) => panic!("{error}"),
    }
}

/// Connects and does something. Returns what was agreed on.
async fn meet(wire: Wire, ours: Speaks, theirs: Speaks) -> Result<Revision, Error> {
    let client = connect(wire, builder(ours), theirs).await?;
    let tools = client.tools().all().await?;
    assert!(tools.iter().any(|tool| tool.name == "echo"));
    let told = client.call_tool("echo", serde_json::json!({"text": "hello"})).await?;
    assert_eq!(told.to_text(), "hello");
    let revision = client.revision();
    client.close().await;
    Ok(revision)
}

/// A client that speaks one era speaks its newest revision.
fn builder(speaks: Speaks) -> ClientBuilder {
    match speaks {
        Modern => Client::builder().revision(NEW),
        Legacy => Client::builder().revision(OLD),
        Both => Client::builder(),
    }
}

async fn connect(wire: Wire, builder: ClientBuilder, theirs: Speaks) -> Result<Client> {
    let fixture = Fixture::default();
    let serves = match theirs {
        Modern => Revisions::Modern,
        Legacy => Revisions::Legacy,
        Both => Revisions::All,
    };
    let server = server(&fixture, Limits::default()).revisions(serves);
    match wire {
        Wire::Stdio => builder.spawn(Spawn::new(child(theirs))).await,
        Wire::Http => {
            let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
            let url = bound.url();
            tokio::spawn(bound.into_future());
            builder.no_proxy().connect(url).await
        }
        _ => {
            let (ours, theirs) = tokio::io::duplex(4096);
            tokio::spawn(server.serve(theirs).into_future());
            builder.over(ours).await
        }
    }
}

fn child(speaks: Speaks) -> Command {
    let mut command = program();
    match speaks {
        Modern => command.args(["--serves", "modern"]),
        Legacy => command.args(["--serves", "legacy"]),
        Both => &mut command,
    };
    command
}
