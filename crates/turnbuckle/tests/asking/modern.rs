//! The modern era: a handler that waits for answers is a result that asks for them.

use serde_json::json;
use turnbuckle::{
    Ctx, Server, ToolError,
    elicit::{Answered, Askable, Elicitation, elicit},
    server::Invocation,
    tool,
};

use crate::{
    peer::{Peer, able, accept, asked, code, message, params_of, text},
    tools::{Effects, server, server_with},
};

// req: typescript:mrtr:tools-call:write-once-roundtrip, elicitation:mrtr:form:basic, elicitation:form:basic, mcpserver:context:elicit, tools:call:elicitation-roundtrip
#[tokio::test]
async fn a_question_goes_out_as_a_result_and_the_retry_completes() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("greet", json!({})).await;
    assert_eq!(asked(&first), ["name"]);
    assert_eq!(
        first["result"]["inputRequests"]["name"],
        json!({
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Who are you?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string",
                        "description": "What people call you.", "maxLength": 20}},
                    "required": ["name"],
                },
            },
        })
    );
    assert!(first["result"].get("content").is_none(), "{first}");
    assert!(first["result"]["_meta"].is_object(), "the server is named: {first}");
    let done = peer.retry("greet", &first, json!({"name": accept(json!({"name": "Ada"}))})).await;
    assert_eq!(text(&done), "Hello, Ada!");
    assert_eq!(done["result"]["resultType"], "complete");
    assert!(done["result"].get("requestState").is_none(), "{done}");
}

// req: flow:elicitation:multi-step-form
#[tokio::test]
async fn earlier_answers_are_not_asked_for_again() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("steps", json!({})).await;
    assert_eq!(asked(&first), ["name"]);
    let second = peer.retry("steps", &first, json!({"name": accept(json!({"name": "Ada"}))})).await;
    assert_eq!(asked(&second), ["age"]);
    assert_eq!(params_of(&second, "age")["message"], "How old are you, Ada?");
    assert_ne!(first["result"]["requestState"], second["result"]["requestState"]);
    // An answer that was taken can't be changed any more.
    let answers =
        json!({"age": accept(json!({"age": 36})), "name": accept(json!({"name": "Eve"}))});
    let done = peer.retry("steps", &second, answers).await;
    assert_eq!(text(&done), "Ada is 36");
}

#[tokio::test]
async fn what_is_asked_together_is_one_round() {
    let mut peer = Peer::modern(&server(), able());
    for (tool, keys, answers, said) in [
        (
            "together",
            ["name", "roots"],
            json!({"name": accept(json!({"name": "Ada"})), "roots": {"roots": [{"uri": "file:///a"}]}}),
            r#"Ada has ["file:///a"]"#,
        ),
        (
            "arguments",
            ["age", "name"],
            json!({"name": accept(json!({"name": "Ada"})), "age": accept(json!({"age": 36}))}),
            "Ada is 36",
        ),
    ] {
        let first = peer.tool(tool, json!({})).await;
        let mut found = asked(&first);
        found.sort_unstable();
        assert_eq!(found, keys);
        assert_eq!(text(&peer.retry(tool, &first, answers).await), said);
    }
}

// req: roots:mrtr:list:basic, roots:mrtr:list:empty, roots:list:basic, roots:list:empty
#[tokio::test]
async fn roots_are_asked_for_without_params_and_may_be_none() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("together", json!({})).await;
    assert_eq!(first["result"]["inputRequests"]["roots"], json!({"method": "roots/list"}));
    let name = accept(json!({"name": "Ada"}));
    let done = peer.retry("together", &first, json!({"name": name, "roots": {"roots": []}})).await;
    assert_eq!(text(&done), "Ada has []");
    let odd = json!({"name": name, "roots": {"roots": [{"uri": "https://a.org"}]}});
    assert_eq!(code(&peer.retry("together", &first, odd).await), -32602);
}

#[tokio::test]
async fn what_is_done_once_is_not_repeated_by_a_replay() {
    let effects = Effects::default();
    let mut peer = Peer::modern(&server_with(effects.clone()), able());
    let first = peer.tool("charge", json!({})).await;
    let name = json!({"name": accept(json!({"name": "Ada"}))});
    let second = peer.retry("charge", &first, name).await;
    assert_eq!(asked(&second), ["age"]);
    let done = peer.retry("charge", &second, json!({"age": accept(json!({"age": 36}))})).await;
    assert_eq!(text(&done), "Ada (36) has receipt 1");
    assert_eq!(effects.count(), 1);
    // Who begins anew is charged anew.
    peer.tool("charge", json!({})).await;
    assert_eq!(effects.count(), 2);
}

#[tokio::test]
async fn what_is_missing_is_asked_for_again_and_what_is_unknown_is_ignored() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("together", json!({})).await;
    let name = accept(json!({"name": "Ada"}));
    let second = peer.retry("together", &first, json!({"name": name, "other": 5})).await;
    assert_eq!(asked(&second), ["roots"], "the name was given");
    for nothing in [json!({}), json!(null), json!({"unknown": accept(json!({"name": "x"}))})] {
        let again = peer.retry("greet", &json!({"result": {}}), nothing.clone()).await;
        assert_eq!(asked(&again), ["name"], "{nothing}");
    }
    let done = peer.retry("together", &second, json!({"roots": {"roots": []}, "x": null})).await;
    assert_eq!(text(&done), "Ada has []");
}

#[tokio::test]
async fn answers_that_come_before_they_are_asked_for_spare_the_round() {
    let mut peer = Peer::modern(&server(), able());
    let answers = json!({"name": accept(json!({"name": "Ada"}))});
    let done = peer.retry("greet", &json!({"result": {}}), answers).await;
    assert_eq!(text(&done), "Hello, Ada!");
}

// req: elicitation:form:response-validation
#[tokio::test]
async fn a_bad_answer_is_an_error_that_names_its_key() {
    let mut peer = Peer::modern(&server(), able());
    for tool in ["greet", "careless", "arguments", "greet_politely"] {
        let first = peer.tool(tool, json!({})).await;
        for (answer, part) in [
            (json!(12345), "name"),
            (json!(null), "name"),
            (json!({"action": "perhaps"}), "perhaps"),
            (accept(json!({})), "`name` is missing"),
            (accept(json!({"name": 5})), "`name` must be text"),
            (accept(json!({"name": "a name of far too many letters"})), "`name` is longer"),
        ] {
            let refused = peer.retry(tool, &first, json!({"name": answer})).await;
            assert_eq!(code(&refused), -32602, "{tool} {answer}");
            let said = message(&refused);
            assert!(said.contains("inputResponses[\"name\"]") && said.contains(part), "{said}");
        }
    }
    for (answers, part) in [(json!([]), "an object"), (json!("x"), "an object")] {
        let refused = peer.retry("greet", &json!({"result": {}}), answers).await;
        assert_eq!(code(&refused), -32602);
        assert!(message(&refused).contains(part), "{refused}");
    }
}

// req: elicitation:mrtr:form:action:decline, elicitation:mrtr:form:action:cancel, elicitation:form:action:decline, elicitation:form:action:cancel
#[tokio::test]
async fn a_no_and_silence_are_told_apart() {
    let mut peer = Peer::modern(&server(), able());
    for (tool, action, said) in [
        ("greet", "decline", "the user declined to answer `name`"),
        ("greet", "cancel", "the user did not answer `name`"),
        ("greet_politely", "decline", "as you like"),
        ("greet_politely", "cancel", "another time"),
    ] {
        let first = peer.tool(tool, json!({})).await;
        let done = peer.retry(tool, &first, json!({"name": {"action": action}})).await;
        assert_eq!(text(&done), said);
        assert_eq!(done["result"]["isError"] == true, tool == "greet", "{done}");
    }
}

#[tokio::test]
async fn a_handler_waits_whatever_it_failed_with() {
    let mut peer = Peer::modern(&server(), able());
    assert_eq!(asked(&peer.tool("careless", json!({})).await), ["name"]);
}

/// In the legacy era it would have waited for the answer, too.
#[tokio::test]
async fn a_handler_that_goes_on_without_an_answer_has_it_asked_all_the_same() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("patient", json!({})).await;
    assert_eq!(asked(&first), ["name"]);
    let done = peer.retry("patient", &first, json!({"name": accept(json!({"name": "Ada"}))})).await;
    assert_eq!(text(&done), "Ada");
    let done = peer.retry("patient", &first, json!({"name": {"action": "decline"}})).await;
    assert_eq!(text(&done), "nobody: declined");
}

// req: elicitation:form:not-supported, elicitation:capability:server-respects-mode, elicitation:capability:empty-is-form, elicitation:url:not-supported, roots:list:not-supported
#[tokio::test]
async fn what_a_client_can_not_answer_is_not_asked() {
    let elicits = json!({"elicitation": {}});
    for (tool, capabilities, required) in [
        ("greet", json!({}), json!({"elicitation": {"form": {}}})),
        ("arguments", json!({}), json!({"elicitation": {"form": {}}})),
        ("careless", json!({"sampling": {}}), json!({"elicitation": {"form": {}}})),
        ("greet", json!({"elicitation": {"url": {}}}), json!({"elicitation": {"form": {}}})),
        ("pay", elicits.clone(), json!({"elicitation": {"url": {}}})),
        ("together", elicits.clone(), json!({"roots": {}})),
    ] {
        let mut peer = Peer::modern(&server(), capabilities);
        let refused = peer.tool(tool, json!({})).await;
        assert_eq!(code(&refused), -32021, "{tool}");
        assert_eq!(refused["error"]["data"], json!({"requiredCapabilities": required}), "{tool}");
    }
    let mut peer = Peer::modern(&server(), elicits);
    assert_eq!(asked(&peer.tool("greet", json!({})).await), ["name"], "{{}} means forms");
    let mut peer = Peer::modern(&server(), json!({}));
    let patient = peer.tool("patient", json!({})).await;
    assert_eq!(text(&patient), "nobody: elicitation.form", "a handler may do without");
}

// req: typescript:mrtr:url-elicitation:no-32042-on-2026, elicitation:url:basic, elicitation:url:action:accept-no-content
#[tokio::test]
async fn a_page_is_asked_for_like_anything_else() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("pay", json!({})).await;
    assert_eq!(asked(&first), ["pay"]);
    let page = json!({"mode": "url", "message": "Please pay", "url": "https://pay.example.com/7"});
    assert_eq!(params_of(&first, "pay"), &page);
    // No word of a completed elicitation: the answer is the next message.
    let done = peer.retry("pay", &first, json!({"pay": {"action": "accept"}})).await;
    assert_eq!(text(&done), "thank you");
}

// req: elicitation:url:decline, elicitation:url:cancel
#[tokio::test]
async fn a_page_may_be_declined_and_left() {
    let mut peer = Peer::modern(&server(), able());
    for (action, said) in [
        ("decline", "the user declined to answer `pay`"),
        ("cancel", "the user did not answer `pay`"),
    ] {
        let first = peer.tool("pay", json!({})).await;
        let done = peer.retry("pay", &first, json!({"pay": {"action": action}})).await;
        assert_eq!((text(&done), &done["result"]["isError"]), (said, &json!(true)));
    }
}

// req: typescript:mrtr:push-api:loud-fail-2026
#[tokio::test]
async fn requests_of_a_server_fail_with_advice_before_anything_is_sent() {
    let mut peer = Peer::modern(&server(), able());
    let refused = peer.tool("push", json!({})).await;
    assert_eq!(refused["result"]["isError"], true);
    assert!(text(&refused).contains("Ctx::ask"), "{refused}");
}

#[tokio::test]
async fn a_form_that_is_not_flat_is_the_server_s_fault() {
    let mut peer = Peer::modern(&server(), able());
    let failed = peer.tool("deep", json!({})).await;
    assert_eq!((&failed["result"]["isError"], text(&failed)), (&json!(true), "internal error"));
}

#[test]
fn an_argument_that_has_no_form_is_refused_when_the_server_starts() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Deep {
        inner: Vec<String>,
    }
    impl Askable for Deep {
        const KEY: &'static str = "deep";
        type Question = Elicitation<Deep>;
        fn question(_: &Invocation) -> Elicitation<Deep> {
            elicit("?")
        }
    }
    async fn deep(Answered(deep): Answered<Deep>) -> String {
        deep.inner.concat()
    }
    let why = Server::new("deep", "1.0").tool(tool("deep", deep)).check().unwrap_err().to_string();
    assert!(why.contains("`deep`") && why.contains("`inner` is a list"), "{why}");
}

#[tokio::test]
async fn prompts_and_resources_ask_as_tools_do() {
    let mut peer = Peer::modern(&server(), able());
    let answers = json!({"name": accept(json!({"name": "Ada"}))});
    for (method, params, part, said) in [
        (
            "prompts/get",
            json!({"name": "review"}),
            "/result/messages/0/content/text",
            "Review the code of Ada.",
        ),
        (
            "resources/read",
            json!({"uri": "demo://secret"}),
            "/result/contents/0/text",
            "for Ada only",
        ),
        (
            "resources/read",
            json!({"uri": "demo://secrets/7"}),
            "/result/contents/0/text",
            "for Ada only",
        ),
    ] {
        let first = peer.call(method, params.clone()).await;
        assert_eq!(asked(&first), ["name"]);
        let mut again = params.clone();
        again["inputResponses"] = answers.clone();
        again["requestState"] = first["result"]["requestState"].clone();
        assert_eq!(peer.call(method, again.clone()).await.pointer(part), Some(&json!(said)));
        again["inputResponses"] = json!({"name": {"action": "decline"}});
        let declined = peer.call(method, again).await;
        assert_eq!(code(&declined), -32603);
        assert!(message(&declined).contains("declined"), "{declined}");
        let mut other = Peer::modern(&server(), json!({}));
        assert_eq!(code(&other.call(method, params).await), -32021);
    }
}

#[tokio::test]
async fn nothing_else_ever_asks() {
    let mut peer = Peer::modern(&server(), able());
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let params = json!({"inputResponses": {}, "requestState": "x"});
        let listed = peer.call(method, params).await;
        assert_eq!(listed["result"]["resultType"], "complete", "{method}");
    }
}

/// One field of each kind that a form can have.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Profile {
    name: String,
    age: u8,
    score: f64,
    is_member: bool,
}

// req: elicitation:mrtr:form:schema:primitives
#[tokio::test]
async fn a_form_has_fields_of_every_kind() {
    let server = Server::new("s", "1").tool(tool("profile", async |ctx: Ctx| {
        let Profile { name, age, score, is_member } = ctx.ask("p", elicit("Fill it in.")).await?;
        Ok::<_, ToolError>(format!("{name} {age} {score} {is_member}"))
    }));
    let mut peer = Peer::modern(&server, able());
    let first = peer.tool("profile", json!({})).await;
    let fields = &params_of(&first, "p")["requestedSchema"]["properties"];
    for (field, kind) in
        [("name", "string"), ("age", "integer"), ("score", "number"), ("is_member", "boolean")]
    {
        assert_eq!(fields[field]["type"], kind, "{fields}");
    }
    let filled = json!({"name": "Ada", "age": 36, "score": 9.5, "is_member": true});
    let done = peer.retry("profile", &first, json!({"p": accept(filled)})).await;
    assert_eq!(text(&done), "Ada 36 9.5 true");
}

/// 2026-07-28 names `_meta` in the params of `roots/list`, and leaves those of other questions open.
#[tokio::test]
async fn questions_carry_the_trace_of_their_request_in_meta() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let mut peer = Peer::modern(&server(), able());
    let params = json!({"name": "together", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": able(),
        "traceparent": parent,
        "tracestate": "a=1",
    }});
    let first = peer.legacy_call("tools/call", params).await;
    assert_eq!(asked(&first), ["name", "roots"]);
    let trace = json!({"traceparent": parent, "tracestate": "a=1"});
    assert_eq!(params_of(&first, "roots"), &json!({"_meta": trace}));
    assert_eq!(params_of(&first, "name")["_meta"], trace);
    assert_eq!(params_of(&first, "name")["message"], "Who are you?");
    // The answers are the same with and without one.
    let answers = json!({"name": accept(json!({"name": "Ada"})), "roots": {"roots": []}});
    assert_eq!(text(&peer.retry("together", &first, answers).await), "Ada has []");
    let untraced = peer.tool("together", json!({})).await;
    assert_eq!(params_of(&untraced, "roots"), &json!(null));
}
