//! Arguments that are asked for beside others: what is wrong in any case is said first.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
    mpsc,
};

use serde_json::{Value, json};
use turnbuckle::{
    Args, Ctx, RpcError, Server, ToolError,
    elicit::{Answered, elicit, roots},
    server::{Failure, FromCall, Invocation, blocking_tool},
    tool,
};

use crate::{
    peer::{Peer, able, accept, asked, code, text},
    tools::{Age, Name},
};

async fn asked_last(
    Args(Age { age }): Args<Age>,
    Answered(Name { name }): Answered<Name>,
) -> String {
    format!("{name} is {age}")
}

async fn asked_first(
    Answered(Name { name }): Answered<Name>,
    Args(Age { age }): Args<Age>,
) -> String {
    format!("{name} is {age}")
}

/// Finds every call wrong.
struct Never;

impl FromCall for Never {
    async fn from_call(_: &Invocation) -> Result<Never, Failure> {
        Err(RpcError::new(7, "never").into())
    }
}

async fn barred(_: Answered<Name>, _: Never) -> &'static str {
    "in"
}

async fn both(
    Answered(Name { name }): Answered<Name>,
    Answered(Age { age }): Answered<Age>,
) -> String {
    format!("{name} is {age}")
}

fn server() -> Server {
    Server::new("arguments", "1.0")
        .tool(tool("asked_last", asked_last))
        .tool(tool("asked_first", asked_first))
        .tool(tool("barred", barred))
        .tool(tool("both", both))
}

#[tokio::test]
async fn nobody_is_asked_for_a_call_that_is_wrong_anyway() {
    let mut modern = Peer::modern(&server(), able());
    let mut legacy = Peer::legacy(&server(), able(), "2025-11-25").await;
    for name in ["asked_last", "asked_first"] {
        let wrong = json!({"name": name, "arguments": {}});
        for refused in [
            modern.call("tools/call", wrong.clone()).await,
            // The answer must be the next message: no question goes before it.
            legacy.legacy_call("tools/call", wrong).await,
        ] {
            assert_eq!(refused["result"]["isError"], true, "{name} {refused}");
            assert!(text(&refused).contains("`age`"), "{name} {refused}");
        }
        let right = modern.tool(name, json!({"age": 36})).await;
        assert_eq!(asked(&right), ["name"], "{name}");
    }
    assert_eq!(code(&modern.tool("barred", json!({})).await), 7);
    let barred = json!({"name": "barred", "arguments": {}});
    assert_eq!(code(&legacy.legacy_call("tools/call", barred.clone()).await), 7);
    // It goes before what the client lacks, too.
    assert_eq!(code(&Peer::modern(&server(), json!({})).call("tools/call", barred).await), 7);
}

async fn cancelled(peer: &mut Peer, question: &Value) {
    let taken_back = peer.read().await;
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
}

#[tokio::test]
async fn a_no_takes_the_other_questions_back() {
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    let id = peer.send("tools/call", json!({"name": "both"})).await;
    let (name, age) = (peer.read().await, peer.read().await);
    peer.answer(&name, json!({"action": "decline"})).await;
    let (mut answers, mut taken_back) = (0, 0);
    for _ in 0..2 {
        let message = peer.read().await;
        if message["id"] == id {
            assert_eq!(text(&message), "the user declined to answer `name`");
            answers += 1;
        } else {
            assert_eq!(message["method"], "notifications/cancelled", "{message}");
            assert_eq!(message["params"]["requestId"], age["id"]);
            taken_back += 1;
        }
    }
    assert_eq!((answers, taken_back), (1, 1));
}

#[tokio::test]
async fn a_function_that_has_not_begun_is_given_up_with_its_request() {
    let ran = Arc::new(AtomicU32::new(0));
    let count = ran.clone();
    let run = move |Answered(Name { name }): Answered<Name>| {
        count.fetch_add(1, Ordering::SeqCst);
        name
    };
    let server = server().tool(blocking_tool("run", run));
    let mut peer = Peer::legacy(&server, able(), "2025-11-25").await;
    let id = peer.send("tools/call", json!({"name": "run"})).await;
    let question = peer.read().await;
    let give_up = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id}});
    peer.say(give_up).await;
    cancelled(&mut peer, &question).await;
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    // One that is not given up runs.
    peer.send("tools/call", json!({"name": "run"})).await;
    let question = peer.read().await;
    peer.answer(&question, accept(json!({"name": "Ada"}))).await;
    assert_eq!(text(&peer.read().await), "Ada");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[test]
fn a_function_that_waits_for_its_thread_is_given_up_with_its_request() {
    let mut narrow = tokio::runtime::Builder::new_current_thread();
    let runtime = narrow.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (begin, mut begun) = tokio::sync::mpsc::channel(1);
        let (end, ended) = mpsc::channel::<()>();
        let ended = Mutex::new(ended);
        let holds = move || {
            begin.blocking_send(()).unwrap();
            ended.lock().unwrap().recv().unwrap();
            "at last"
        };
        let ran = Arc::new(AtomicU32::new(0));
        let count = ran.clone();
        let counts = move || count.fetch_add(1, Ordering::SeqCst).to_string();
        let server = Server::new("narrow", "1.0")
            .tool(blocking_tool("holds", holds))
            .tool(blocking_tool("counts", counts));
        let mut peer = Peer::legacy(&server, able(), "2025-11-25").await;
        let first = peer.send("tools/call", json!({"name": "holds"})).await;
        begun.recv().await.unwrap();
        let second = peer.send("tools/call", json!({"name": "counts"})).await;
        peer.legacy_call("ping", json!({})).await;
        peer.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": second}}))
            .await;
        peer.legacy_call("ping", json!({})).await;
        end.send(()).unwrap();
        assert_eq!(peer.read().await["id"], first);
        // The only thread has passed the second when it comes to the third.
        let third = peer.legacy_call("tools/call", json!({"name": "counts"})).await;
        assert_eq!(text(&third), "0");
    });
}

async fn does_without(ctx: Ctx) -> Result<String, ToolError> {
    let (name, roots) =
        tokio::join!(ctx.ask("name", elicit::<Name>("Who are you?")), ctx.ask("roots", roots()),);
    let roots = match roots {
        Err(error) if error.missing_capability().is_some() => Vec::new(),
        roots => roots?,
    };
    Ok(format!("{} has {}", name?.name, roots.len()))
}

async fn asks_instead(ctx: Ctx) -> Result<String, ToolError> {
    match ctx.ask("roots", roots()).await {
        Err(error) if error.missing_capability().is_some() => {
            Ok(ctx.ask("name", elicit::<Name>("Who are you?")).await?.name)
        }
        roots => Ok(roots?.len().to_string()),
    }
}

async fn says_why(ctx: Ctx) -> Result<String, ToolError> {
    let roots = ctx.ask("roots", roots()).await;
    let roots = roots.map_err(|error| match error.missing_capability() {
        Some(_) => ToolError::new("nothing to search in"),
        None => error.into(),
    });
    Ok(roots?.len().to_string())
}

async fn passes_on<E: From<turnbuckle::elicit::AskError>>(ctx: Ctx) -> Result<String, E> {
    let roots = ctx.ask("roots", roots()).await;
    let roots = roots.inspect_err(|error| assert!(error.missing_capability().is_some()));
    Ok(roots?.len().to_string())
}

#[derive(Debug)]
struct Wrapped(turnbuckle::elicit::AskError);

impl From<turnbuckle::elicit::AskError> for Wrapped {
    fn from(error: turnbuckle::elicit::AskError) -> Wrapped {
        Wrapped(error)
    }
}

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("wrapped")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn a_handler_that_looks_may_do_without() {
    let server = Server::new("fallback", "1.0")
        .tool(tool("does_without", does_without))
        .tool(tool("asks_instead", asks_instead))
        .tool(tool("says_why", says_why))
        .tool(tool("tool", passes_on::<ToolError>))
        .tool(tool("rpc", passes_on::<RpcError>))
        .tool(tool("boxed", passes_on::<Box<dyn std::error::Error + Send + Sync>>))
        .tool(tool("wrapped", passes_on::<Wrapped>));
    let mut peer = Peer::modern(&server, json!({"elicitation": {}}));
    let ada = json!({"name": accept(json!({"name": "Ada"}))});
    for (name, said) in [("does_without", "Ada has 0"), ("asks_instead", "Ada")] {
        let first = peer.tool(name, json!({})).await;
        assert_eq!(asked(&first), ["name"]);
        assert_eq!(text(&peer.retry(name, &first, ada.clone()).await), said);
    }
    let said = peer.tool("says_why", json!({})).await;
    assert_eq!((text(&said), &said["result"]["isError"]), ("nothing to search in", &json!(true)));
    for name in ["tool", "rpc", "boxed", "wrapped"] {
        let refused = peer.tool(name, json!({})).await;
        assert_eq!(code(&refused), -32021, "{name}");
        let required = json!({"requiredCapabilities": {"roots": {}}});
        assert_eq!(refused["error"]["data"], required, "{name}");
    }
}
