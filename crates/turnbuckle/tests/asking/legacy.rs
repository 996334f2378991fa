//! The legacy era: the same handlers ask while they run.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use turnbuckle::{
    Ctx, RpcError, Server, State, ToolError,
    elicit::{elicit, elicit_url, roots, sample},
    prompt, tool,
    types::{ElicitUrl, UrlElicitationRequired, code::URL_ELICITATION_REQUIRED},
};

use crate::{
    peer::{Peer, able, accept, code, message, text},
    tools::{Effects, Name, server, server_with},
};

/// Calls a tool and reads its first question.
async fn asks(peer: &mut Peer, tool: &str) -> Value {
    peer.send("tools/call", json!({"name": tool})).await;
    let question = peer.read().await;
    assert!(question["method"].is_string(), "no question: {question}");
    question
}

// req: mcpserver:context:elicit, elicitation:form:basic, elicitation:form:mode-omitted-default, elicitation:form:action:accept
#[tokio::test]
async fn a_question_is_a_request_in_the_words_of_the_revision() {
    for (version, mode) in [("2025-11-25", json!("form")), ("2025-06-18", json!(null))] {
        let mut peer = Peer::legacy(&server(), json!({"elicitation": {}}), version).await;
        let question = asks(&mut peer, "greet").await;
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["mode"], mode, "{version}");
        assert_eq!(question["params"]["message"], "Who are you?");
        let field =
            json!({"type": "string", "description": "What people call you.", "maxLength": 20});
        let form = json!({"type": "object", "properties": {"name": field}, "required": ["name"]});
        assert_eq!(question["params"]["requestedSchema"], form);
        peer.answer(&question, accept(json!({"name": "Ada", "more": 1}))).await;
        let done = peer.read().await;
        assert_eq!(text(&done), "Hello, Ada!");
        assert!(!done.to_string().contains("resultType"), "{done}");
    }
}

// req: roots:list:basic
#[tokio::test]
async fn what_is_asked_together_is_in_flight_together() {
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    let name = asks(&mut peer, "together").await;
    let roots = peer.read().await;
    assert_eq!(roots["method"], "roots/list");
    peer.answer(&roots, json!({"roots": [{"uri": "file:///a"}]})).await;
    peer.answer(&name, accept(json!({"name": "Ada"}))).await;
    assert_eq!(text(&peer.read().await), r#"Ada has ["file:///a"]"#);
    let name = asks(&mut peer, "arguments").await;
    let age = peer.read().await;
    peer.answer(&name, accept(json!({"name": "Ada"}))).await;
    peer.answer(&age, accept(json!({"age": 36}))).await;
    assert_eq!(text(&peer.read().await), "Ada is 36");
}

#[tokio::test]
async fn steps_and_effects_go_in_their_order_once() {
    let effects = Effects::default();
    let mut peer = Peer::legacy(&server_with(effects.clone()), able(), "2025-11-25").await;
    let name = asks(&mut peer, "charge").await;
    assert_eq!(effects.count(), 1);
    peer.answer(&name, accept(json!({"name": "Ada"}))).await;
    let age = peer.read().await;
    peer.answer(&age, accept(json!({"age": 36}))).await;
    assert_eq!(text(&peer.read().await), "Ada (36) has receipt 1");
    assert_eq!(effects.count(), 1);
}

// req: elicitation:form:action:decline, elicitation:form:action:cancel, elicitation:form:response-validation
#[tokio::test]
async fn a_no_and_silence_and_nonsense_are_told_apart() {
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    for (tool, answer, said) in [
        ("greet", json!({"action": "decline"}), "the user declined to answer `name`"),
        ("greet", json!({"action": "cancel"}), "the user did not answer `name`"),
        ("greet_politely", json!({"action": "decline"}), "as you like"),
        ("greet_politely", json!({"action": "cancel"}), "another time"),
        (
            "greet",
            accept(json!({"name": 5})),
            "the answer to `name` does not fit: `name` must be text",
        ),
        (
            "greet",
            json!({"action": "accept"}),
            "the answer to `name` does not fit: `name` is missing",
        ),
    ] {
        let question = asks(&mut peer, tool).await;
        peer.answer(&question, answer.clone()).await;
        let done = peer.read().await;
        assert_eq!(text(&done), said);
        assert_eq!(done["result"]["isError"] == true, tool == "greet", "{answer}");
    }
}

// req: sampling:error:user-rejected, roots:list:client-error
#[tokio::test]
async fn an_error_of_the_client_reaches_the_handler() {
    async fn rejected(ctx: Ctx) -> String {
        let sampled = ctx.ask("model", sample("?")).await.unwrap_err();
        let listed = ctx.ask("roots", roots()).await.unwrap_err();
        let codes = [&sampled, &listed].map(|error| error.as_rpc().map(|error| error.code));
        assert!(!sampled.is_declined() && !sampled.is_suspended());
        format!("{codes:?}: {sampled}")
    }
    let server = Server::new("rejected", "1.0").tool(tool("rejected", rejected));
    let mut peer = Peer::legacy(&server, able(), "2025-11-25").await;
    let sampling = asks(&mut peer, "rejected").await;
    peer.refuse(&sampling, json!({"code": -1, "message": "User rejected sampling request"})).await;
    let listing = peer.read().await;
    peer.refuse(&listing, json!({"code": -32603, "message": "no"})).await;
    assert_eq!(text(&peer.read().await), "[Some(-1), Some(-32603)]: `model` got no answer");
}

// req: elicitation:form:not-supported, elicitation:url:not-supported, elicitation:capability:server-respects-mode, roots:list:not-supported
#[tokio::test]
async fn what_a_client_can_not_answer_is_not_asked() {
    for (version, capabilities, tool, lacks) in [
        ("2025-11-25", json!({}), "greet", "`elicitation.form`"),
        ("2025-11-25", json!({"elicitation": {"url": {}}}), "greet", "`elicitation.form`"),
        ("2025-11-25", json!({"elicitation": {}}), "pay", "`elicitation.url`"),
        ("2025-06-18", json!({"elicitation": {}}), "pay", "`elicitation.url`"),
        ("2025-03-26", json!({}), "greet", "`elicitation.form`"),
    ] {
        let mut peer = Peer::legacy(&server(), capabilities, version).await;
        // The answer is the next message: nothing was asked.
        let refused = peer.legacy_call("tools/call", json!({"name": tool})).await;
        assert_eq!(refused["result"]["isError"], true);
        assert!(text(&refused).contains(lacks), "{refused}");
    }
    let mut peer = Peer::legacy(&server(), json!({}), "2025-11-25").await;
    let prompt = peer.legacy_call("prompts/get", json!({"name": "review"})).await;
    assert_eq!(code(&prompt), -32603);
    assert!(message(&prompt).contains("`elicitation.form`"), "{prompt}");
}

// req: elicitation:url:basic, elicitation:url:complete-notification, elicitation:url:action:accept-no-content, elicitation:url:decline, elicitation:url:cancel
#[tokio::test]
async fn a_page_has_a_name_and_is_told_to_be_over() {
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    let question = asks(&mut peer, "pay").await;
    let page = json!({"mode": "url", "message": "Please pay", "url": "https://pay.example.com/7",
        "elicitationId": "page-7"});
    assert_eq!(question["params"], page);
    peer.answer(&question, json!({"action": "accept"})).await;
    let over = peer.read().await;
    assert_eq!(over["method"], "notifications/elicitation/complete");
    assert_eq!(over["params"], json!({"elicitationId": "page-7"}));
    assert_eq!(text(&peer.read().await), "thank you");
    for (action, said) in [("decline", "declined"), ("cancel", "did not answer")] {
        let question = asks(&mut peer, "pay").await;
        peer.answer(&question, json!({"action": action})).await;
        let done = peer.read().await;
        assert!(text(&done).contains(said), "{done}");
    }
}

// req: flow:elicitation:url-at-session-init
#[tokio::test]
async fn nothing_is_asked_before_the_first_request_which_may_ask() {
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    // The answer is the next message: the handshake alone makes nobody ask.
    let pong = peer.legacy_call("ping", json!({})).await;
    assert_eq!(pong["result"], json!({}));
    let question = asks(&mut peer, "pay").await;
    assert_eq!(question["params"]["mode"], "url");
}

// req: typescript:mrtr:legacy-32042-freeze, elicitation:url:required-error, flow:elicitation:url-required-then-retry
#[tokio::test]
async fn a_page_may_be_required_first_and_told_to_be_over_after_the_request() {
    type Contexts = mpsc::Sender<Ctx>;
    async fn locked(ctx: Ctx, State(contexts): State<Contexts>) -> Result<String, RpcError> {
        contexts.send(ctx).await.unwrap();
        let mut page = ElicitUrl::new("Log in", "https://login.example.com");
        page.elicitation_id = Some("login-1".to_owned());
        let pages = UrlElicitationRequired::new([page]);
        Err(RpcError::new(URL_ELICITATION_REQUIRED, "log in first").with_data(&pages))
    }
    let (contexts, mut seen) = mpsc::channel::<Ctx>(4);
    let server = Server::new("locked", "1.0").state(contexts).tool(tool("locked", locked));
    let mut peer = Peer::legacy(&server, able(), "2025-11-25").await;
    let refused = peer.legacy_call("tools/call", json!({"name": "locked"})).await;
    assert_eq!(code(&refused), -32042);
    let page = json!({"mode": "url", "message": "Log in", "url": "https://login.example.com",
        "elicitationId": "login-1"});
    assert_eq!(refused["error"]["data"], json!({"elicitations": [page]}));
    seen.recv().await.unwrap().elicitation_complete("login-1").await;
    let over = peer.read().await;
    assert_eq!(over["method"], "notifications/elicitation/complete");
    assert_eq!(over["params"], json!({"elicitationId": "login-1"}));
}

#[tokio::test]
async fn a_cancelled_request_takes_its_question_back() {
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    let id = peer.send("tools/call", json!({"name": "greet"})).await;
    let question = peer.read().await;
    let params = json!({"requestId": id});
    peer.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await;
    let taken_back = peer.read().await;
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
}

// req: elicitation:form:schema:enum-variants, elicitation:form:defaults
#[tokio::test]
async fn a_choice_of_several_is_a_choice_of_one_where_that_is_all_there_is() {
    #[derive(serde::Deserialize, schemars::JsonSchema, Debug)]
    enum Day {
        /// The first.
        Monday,
        Tuesday,
    }
    fn one() -> u8 {
        1
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Days {
        days: Vec<Day>,
        #[serde(default = "one")]
        weeks: u8,
    }
    async fn plan(ctx: Ctx) -> Result<String, ToolError> {
        let Days { days, weeks } = ctx.ask("days", elicit("When?")).await?;
        Ok(format!("{days:?} for {weeks}"))
    }
    let server = Server::new("plan", "1.0").tool(tool("plan", plan));
    for (version, kind, default, answer) in [
        ("2025-11-25", "array", json!(1), json!(["Tuesday"])),
        ("2025-06-18", "string", json!(null), json!("Tuesday")),
    ] {
        let mut peer = Peer::legacy(&server, able(), version).await;
        let question = asks(&mut peer, "plan").await;
        let fields = &question["params"]["requestedSchema"]["properties"];
        assert_eq!(
            (&fields["days"]["type"], &fields["weeks"]["default"]),
            (&json!(kind), &default)
        );
        peer.answer(&question, accept(json!({"days": answer}))).await;
        assert_eq!(text(&peer.read().await), "[Tuesday] for 1", "{version}");
    }
}

#[tokio::test]
async fn one_key_has_one_answer() {
    async fn twice(ctx: Ctx) -> Result<String, ToolError> {
        let first: Name = ctx.ask("name", elicit("Who are you?")).await?;
        let second: Name = ctx.ask("name", elicit("Who?")).await?;
        Ok(format!("{} {}", first.name, second.name))
    }
    let server = Server::new("twice", "1.0").tool(tool("twice", twice));
    let mut peer = Peer::legacy(&server, able(), "2025-11-25").await;
    let question = asks(&mut peer, "twice").await;
    peer.answer(&question, accept(json!({"name": "Ada"}))).await;
    assert_eq!(text(&peer.read().await), "Ada Ada");
}

#[tokio::test]
async fn what_only_the_modern_era_has_is_nothing_here() {
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    let params = json!({"name": "greet", "requestState": "forged", "inputResponses": 5});
    peer.send("tools/call", params).await;
    let question = peer.read().await;
    assert_eq!(question["method"], "elicitation/create", "it is asked all the same");
}

#[tokio::test]
async fn a_page_that_is_no_url_is_the_server_s_fault() {
    async fn nowhere(ctx: Ctx) -> Result<String, RpcError> {
        ctx.ask("page", elicit_url("Go", "nowhere")).await?;
        Ok("been there".to_owned())
    }
    let server = Server::new("nowhere", "1.0").prompt(prompt("nowhere", nowhere));
    let mut peer = Peer::legacy(&server, able(), "2025-11-25").await;
    let failed = peer.legacy_call("prompts/get", json!({"name": "nowhere"})).await;
    assert_eq!((code(&failed), message(&failed)), (-32603, "internal error"));
}

// req: roots:list-changed
#[tokio::test]
async fn a_hook_that_waits_holds_up_nobody_and_hears_of_a_burst_once() {
    let (began, mut begun) = mpsc::channel::<Option<&'static str>>(8);
    let gate = Arc::new(Semaphore::new(0));
    let hold = gate.clone();
    let server = server().on_roots_changed(move |changed| {
        let (began, hold) = (began.clone(), hold.clone());
        async move {
            began.send(changed.extension()).await.unwrap();
            hold.acquire().await.unwrap().forget();
        }
    });
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    tokio::spawn(server.serve(theirs).extension("mine").into_future());
    let mut peer = Peer::open(ours, able(), "2025-11-25").await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    peer.say(changed.clone()).await;
    assert_eq!(begun.recv().await, Some(Some("mine")), "whose connection it is");
    for _ in 0..5 {
        peer.say(changed.clone()).await;
    }
    // They have been read once this is answered, while the first is still being heard of.
    assert_eq!(peer.legacy_call("ping", json!({})).await["result"], json!({}));
    begun.try_recv().unwrap_err();
    gate.add_permits(1);
    assert_eq!(begun.recv().await, Some(Some("mine")));
    gate.add_permits(1);
    assert_eq!(peer.legacy_call("ping", json!({})).await["result"], json!({}));
    begun.try_recv().unwrap_err();
    peer.say(changed).await;
    assert_eq!(begun.recv().await, Some(Some("mine")), "and of the next change");
}

// req: roots:list-changed
#[tokio::test]
async fn a_hook_that_panics_hears_of_the_next_change() {
    let (began, mut begun) = mpsc::channel(8);
    let server = server().on_roots_changed(move |_| {
        began.try_send(()).unwrap();
        async { panic!("a bug of its own") }
    });
    let mut peer = Peer::legacy(&server, able(), "2025-11-25").await;
    for _ in 0..2 {
        peer.say(json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})).await;
        begun.recv().await.unwrap();
        // What runs on this thread ends before its answer is read.
        assert_eq!(peer.legacy_call("ping", json!({})).await["result"], json!({}));
    }
}

// req: roots:list-changed
#[tokio::test]
async fn roots_that_have_changed_are_seen_by_whoever_asks_next() {
    let server = Server::new("s", "1").tool(tool("roots", async |ctx: Ctx| {
        let roots = ctx.ask("roots", roots()).await?;
        Ok::<_, ToolError>(roots.iter().map(|root| root.uri.as_str()).collect::<String>())
    }));
    let mut peer = Peer::legacy(&server, able(), "2025-11-25").await;
    for uri in ["file:///before", "file:///after"] {
        let question = asks(&mut peer, "roots").await;
        peer.answer(&question, json!({"roots": [{"uri": uri}]})).await;
        assert_eq!(text(&peer.read().await), uri);
        let changed = "notifications/roots/list_changed";
        peer.say(json!({"jsonrpc": "2.0", "method": changed})).await;
    }
}
