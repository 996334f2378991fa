//! What stands in the place of `ask` without the feature `ask`.
//!
//! Owns: that a handler runs once, and that what only a server that asks gives out is refused. Does
//! not own: the handler.

use turnbuckle_types::{Raw, RpcError};

use super::{
    app::App,
    calls::{Ended, FOREIGN_STATE, Subject},
    context::Ctx,
    extract::Invocation,
    offer::Offer,
    run::{self, Run},
};
use crate::dispatch::duplex::Permit;

/// A handler, before it runs.
pub(super) struct Course<R>(Run<R>);

impl<R: Send + 'static> Course<R> {
    pub(super) fn new(offer: &Offer<R>, call: Invocation, permit: Permit) -> Course<R> {
        // What it asks with methods of its own passes layers too.
        call.ctx.asks_through(&offer.questions);
        Course(run::run(offer, call, permit))
    }
}

/// Runs a handler. Dropping the course cancels it.
pub(super) async fn run<R: Send + 'static>(
    _: &App,
    _: &Offer<R>,
    _: &Ctx,
    course: &mut Course<R>,
    subject: Subject<'_>,
) -> Ended<R> {
    let state = subject.retry.and_then(|retry| retry.request_state.as_ref());
    if state.is_some_and(|state| *state != Raw::null()) {
        return Ended::Instead(Err(RpcError::invalid_params(FOREIGN_STATE)));
    }
    Ended::Replied((&mut course.0).await)
}

impl Ctx {
    /// How often the handler came to ask something.
    pub(super) fn asked(&self) -> u64 {
        0
    }

    /// The request is wrong: nothing is asked.
    pub(super) fn reject(&self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

    use crate::{Server, prompt, resource, tool};

    /// Sends a request of the modern era, and reads what comes back.
    async fn ask(wire: &mut BufReader<DuplexStream>, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        wire.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        wire.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn served(server: &Server) -> BufReader<DuplexStream> {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(server.serve(theirs).into_future());
        BufReader::new(ours)
    }

    #[tokio::test]
    async fn a_state_that_nobody_gave_out_is_refused_before_anything_runs() {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = |runs: &Arc<AtomicUsize>| {
            let runs = runs.clone();
            move || {
                let run = runs.fetch_add(1, Relaxed);
                async move { format!("run {run}") }
            }
        };
        let server = Server::new("s", "1")
            .tool(tool("t", counted(&runs)))
            .prompt(prompt("p", counted(&runs)))
            .resource(resource("r:1", counted(&runs)));
        let mut wire = served(&server);
        let subjects = [
            ("tools/call", json!({"name": "t"})),
            ("prompts/get", json!({"name": "p"})),
            ("resources/read", json!({"uri": "r:1"})),
        ];
        for (method, params) in subjects {
            let before = runs.load(Relaxed);
            for state in [json!("sealed elsewhere"), json!(""), json!(7)] {
                let mut params = params.clone();
                params["requestState"] = state;
                let answer = ask(&mut wire, method, params).await;
                assert_eq!(answer["error"]["code"], -32602, "{answer}");
                assert_eq!(runs.load(Relaxed), before);
            }
            for unasked in [json!({}), json!({"requestState": null, "inputResponses": {"k": {}}})] {
                let mut params = params.clone();
                for (name, value) in unasked.as_object().unwrap() {
                    params[name] = value.clone();
                }
                let answer = ask(&mut wire, method, params).await;
                assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
            }
            assert_eq!(runs.load(Relaxed), before + 2);
        }
    }

    #[tokio::test]
    async fn a_list_is_one_page_and_takes_no_cursor() {
        let names = (0..1_500).map(|number| format!("tool-{number}"));
        let server = Server::new("s", "1").tools(names.map(|name| tool(name, async || "")));
        let mut wire = served(&server);
        let answer = ask(&mut wire, "tools/list", json!({})).await;
        assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 1_500);
        assert_eq!(answer["result"].get("nextCursor"), None);
        let answer = ask(&mut wire, "tools/list", json!({"cursor": ""})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}
