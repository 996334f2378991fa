//! Prompts: their arguments, and what they say.

use serde_json::{Value, json};
use turnbuckle::{
    Server, prompt,
    types::{Era, Raw},
};

use crate::{
    offered::{Offered, capabilities},
    offers_tools::problem,
    rig::{Rig, Wire, contract},
};

contract! { everywhere unconnected on [memory stdio unix direct http sse] in [legacy modern]:
    // req: prompts:capability:declared
    // req: lifecycle:initialize:capabilities:from-handlers
    prompts_are_declared,
    // req: prompts:list:basic, mcpserver:prompt:decorated, mcpserver:prompt:optional-args
    prompts_are_listed_with_the_arguments_of_their_signature,
    // req: prompts:get:no-args
    a_prompt_without_arguments_needs_none,
    // req: prompts:get:with-args, mcpserver:prompt:decorated, mcpserver:prompt:optional-args
    arguments_arrive_by_name_and_type,
    // req: prompts:get:multi-message
    messages_of_both_roles_keep_their_order,
    // req: prompts:get:content:image, prompts:get:content:audio
    // req: prompts:get:content:embedded-resource
    messages_may_be_more_than_text,
    // req: prompts:get:missing-required-args, mcpserver:prompt:args-validation
    arguments_that_do_not_fit_never_reach_the_handler,
    // req: prompts:get:unknown-name, mcpserver:prompt:unknown-name
    a_prompt_that_is_not_there_is_a_wrong_parameter,
}

contract! { toolish on [memory stdio unix direct http sse] in [legacy modern]:
    // req: prompts:capability:declared
    a_server_without_prompts_declares_none,
}

async fn prompts_are_declared(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    assert_eq!(offered.capabilities().await["prompts"], json!({"listChanged": true}));
}

async fn a_server_without_prompts_declares_none(rig: &Rig) {
    assert_eq!(capabilities(&rig.client, rig.era).await.get("prompts"), None);
    for method in ["prompts/list", "prompts/get"] {
        let error = rig.client.request(method, json!({"name": "plain"})).await.unwrap_err();
        assert_eq!(error.as_rpc().unwrap().code, -32601, "{method}");
    }
}

async fn prompts_are_listed_with_the_arguments_of_their_signature(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let listed = offered.listed("prompts/list", ("name", "review")).await;
    let icon = json!({"src": "https://example.com/icon.png", "mimeType": "image/png"});
    let expected = json!({
        "name": "review", "title": "Review", "description": "Asks for a review.",
        "icons": [icon], "_meta": {"example.com/team": "words"},
        "arguments": [
            {"name": "code", "description": "The code.", "required": true},
            {"name": "language", "description": listed["arguments"][1]["description"],
                "required": true},
            {"name": "remarks", "title": "Remarks", "description": "How many remarks at most.",
                "required": false},
        ],
    });
    assert_eq!(listed, expected);
    let plain = offered.listed("prompts/list", ("name", "plain")).await;
    assert_eq!(plain, json!({"name": "plain", "description": "A greeting."}));
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": {"type": "text", "text": text}})
}

async fn a_prompt_without_arguments_needs_none(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    for params in [json!({"name": "plain"}), json!({"name": "plain", "arguments": {}})] {
        let got = offered.ask("prompts/get", params).await;
        assert_eq!(got["messages"], json!([user("Say hello.")]));
        assert_eq!(got["description"], "A greeting.");
    }
}

async fn arguments_arrive_by_name_and_type(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let all = json!({"remarks": "3", "language": "ruby", "code": "puts 1"});
    let got = offered.prompt("review", all).await;
    assert_eq!(got["messages"], json!([user("puts 1 in Ruby, Some(3) remarks")]));
    let got = offered.prompt("review", json!({"language": "rust", "code": ""})).await;
    assert_eq!(got["messages"], json!([user(" in Rust, None remarks")]));
    let got = offered.prompt("by_hand", json!({"street": "1", "city": "Ulm"})).await;
    let text = got["messages"][0]["content"]["text"].as_str().unwrap();
    let arguments: Value = serde_json::from_str(text).unwrap();
    assert_eq!(arguments, json!({"city": "Ulm", "street": "1"}));
}

async fn messages_of_both_roles_keep_their_order(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let got = offered.prompt("talk", json!({})).await;
    let paris = json!({"role": "assistant", "content": {"type": "text", "text": "Paris."}});
    let said = json!([user("What is the capital of France?"), paris, user("And of Spain?")]);
    assert_eq!((&got["messages"], &got["description"]), (&said, &json!("Capitals.")));
}

async fn messages_may_be_more_than_text(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let resource = json!({"uri": "offer://bytes", "blob": "AP8QgA==", "mimeType": "image/x-own"});
    let expected = json!([
        {"role": "user",
            "content": {"type": "image", "data": "AP8QgA==", "mimeType": "image/png"}},
        {"role": "assistant",
            "content": {"type": "audio", "data": "AP8QgA==", "mimeType": "audio/wav"}},
        {"role": "user", "content": {"type": "resource", "resource": resource}},
    ]);
    assert_eq!(offered.prompt("media", json!({})).await["messages"], expected);
}

async fn arguments_that_do_not_fit_never_reach_the_handler(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    for (arguments, name) in [
        (json!({"language": "rust"}), "code"),
        (json!({"code": "x"}), "language"),
        (json!({}), "code"),
        (json!({"code": "x", "language": "cobol"}), "language"),
        (json!({"code": "x", "language": "rust", "remarks": "many"}), "remarks"),
        (json!({"code": "x", "language": "rust", "remarks": "-1"}), "remarks"),
        // What the type's schema says beside the type.
        (json!({"code": "x", "language": "rust", "remarks": "10"}), "`remarks` must be at most 9"),
        (json!({"code": "x".repeat(41), "language": "rust"}), "`code` must have at most 40"),
        (json!({"code": "\t", "language": "rust"}), "`code` must match the pattern"),
        // The protocol has only texts here.
        (json!({"code": "x", "language": "rust", "remarks": 3}), ""),
    ] {
        let params = json!({"name": "review", "arguments": arguments});
        let error = offered.refused("prompts/get", params).await;
        assert_eq!(error.code, -32602, "{arguments}");
        assert!(error.message.contains(name), "{arguments}: {error:?}");
    }
    let error = offered.refused("prompts/get", json!({"name": "review"})).await;
    assert_eq!(error.code, -32602, "no arguments at all");
    let twice = r#"{"code":"x","language":"rust","language":"ruby"}"#;
    let error = offered.client.get_prompt("review", Raw::from_json(twice).unwrap()).await;
    let error = error.unwrap_err().as_rpc().cloned().unwrap();
    assert_eq!(error.code, -32602, "an argument that is given twice");
    assert!(error.message.contains("language"), "{error:?}");
    assert_eq!(offered.runs("review").await, "0");
}

async fn a_prompt_that_is_not_there_is_a_wrong_parameter(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let error = offered.refused("prompts/get", json!({"name": "nowhere"})).await;
    assert_eq!(error.code, -32602);
    assert!(error.message.contains("`nowhere`"), "{error:?}");
    let error = offered.refused("prompts/get", json!({})).await;
    assert_eq!(error.code, -32602, "no name at all");
}

// req: mcpserver:prompt:duplicate-name
#[test]
fn two_prompts_of_one_name_are_told_with_both_places() {
    let server = Server::new("s", "1");
    let first = line!() + 1;
    let server = server.prompt(prompt("p", async || "one"));
    let second = line!() + 1;
    let server = server.prompt(prompt("p", async || "two").title("another"));
    let told = problem(&server);
    assert!(told.contains("two prompts named `p`"), "{told}");
    for line in [first, second] {
        assert!(told.contains(&format!("offers_prompts.rs:{line}")), "{line}: {told}");
    }
}
