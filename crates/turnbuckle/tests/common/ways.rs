//! Owns the ways from a client to a server that tests of either side go, and what they write down.
//! Does not own any expectation.

use std::{
    future::IntoFuture as _,
    sync::{Arc, Mutex},
};

use turnbuckle::{Client, ClientBuilder, Revision, Server};

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    Memory,
    Direct,
    Http,
    Sse,
}

pub(crate) const MODERN: Revision = Revision::V2026_07_28;
pub(crate) const LEGACY: Revision = Revision::V2025_11_25;

/// Every wire with a revision of each era that it carries.
pub(crate) const WAYS: [(Wire, Revision); 7] = [
    (Wire::Memory, MODERN),
    (Wire::Memory, LEGACY),
    (Wire::Direct, MODERN),
    (Wire::Direct, LEGACY),
    (Wire::Http, MODERN),
    (Wire::Http, LEGACY),
    (Wire::Sse, LEGACY),
];

pub(crate) async fn connect(
    builder: ClientBuilder,
    server: &Server,
    (wire, revision): (Wire, Revision),
) -> Client {
    let builder = builder.revision(revision).no_proxy();
    let client = match wire {
        Wire::Memory => {
            let (ours, theirs) = tokio::io::duplex(4096);
            tokio::spawn(server.serve(theirs).into_future());
            builder.over(ours).await
        }
        Wire::Direct => builder.in_process(server).await,
        Wire::Http | Wire::Sse => {
            let bound = server.serve_http("127.0.0.1:0").with_sse("/sse").bind().await.unwrap();
            let url = match wire {
                Wire::Sse => bound.url().replace("/mcp", "/sse"),
                _ => bound.url(),
            };
            tokio::spawn(bound.into_future());
            builder.connect(url).await
        }
    };
    client.unwrap()
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Lets everyone else run until `wish` holds.
pub(crate) async fn eventually(wish: impl Fn() -> bool) {
    let waiting = async {
        while !wish() {
            tokio::task::yield_now().await;
        }
    };
    let bound = std::time::Duration::from_secs(20);
    tokio::time::timeout(bound, waiting).await.expect("it never came true");
}
