//! Completion: of arguments of prompts, and of places in templates.

use serde_json::{Value, json};
use turnbuckle::{
    Args, Client, Server, prompt, template,
    types::{Era, PromptArgument},
};
use turnbuckle_contract::MANY;

use crate::{
    offered::{Offered, capabilities},
    rig::{Rig, Wire, contract, pinned, within},
};

contract! { everywhere unconnected on [memory stdio unix direct http sse] in [legacy modern]:
    // req: completion:capability:declared
    completion_is_declared,
    // req: completion:prompt-arg
    arguments_of_prompts_are_completed,
    // req: completion:resource-template-arg
    places_in_templates_are_completed,
    // req: completion:context-arguments
    a_completer_sees_what_was_chosen_before,
    // req: completion:result-shape
    no_more_than_a_hundred_are_sent_and_how_many_there_are_is_said,
    // req: completion:error:invalid-ref
    what_is_not_there_is_a_wrong_parameter,
    a_completer_that_fails_is_an_error,
}

contract! { toolish on [memory stdio unix direct http sse] in [legacy modern]:
    // req: completion:complete:not-supported, completion:capability:declared
    without_a_completer_there_is_no_such_method,
}

const SHELVES: &str = "offer://shelves/{language}/{number}";

fn of_prompt(name: &str, argument: &str, typed: &str) -> Value {
    json!({"ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": argument, "value": typed}})
}

fn of_template(uri: &str, argument: &str, typed: &str) -> Value {
    json!({"ref": {"type": "ref/resource", "uri": uri},
        "argument": {"name": argument, "value": typed}})
}

async fn completed(offered: &Offered, params: Value) -> Value {
    offered.ask("completion/complete", params).await["completion"].take()
}

fn whole(values: &[&str]) -> Value {
    json!({"values": values, "total": values.len(), "hasMore": false})
}

async fn completion_is_declared(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    assert_eq!(offered.capabilities().await["completions"], json!({}));
}

async fn without_a_completer_there_is_no_such_method(rig: &Rig) {
    assert_eq!(capabilities(&rig.client, rig.era).await.get("completions"), None);
    let params = of_prompt("review", "language", "r");
    let error = rig.client.request("completion/complete", params).await.unwrap_err();
    assert_eq!(error.as_rpc().unwrap().code, -32601);
}

async fn arguments_of_prompts_are_completed(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    for (typed, values) in [
        ("", &["rust", "ruby", "python"][..]),
        ("ru", &["rust", "ruby"]),
        ("RUS", &["rust"]),
        ("rust", &["rust"]),
        ("x", &[]),
    ] {
        let params = of_prompt("review", "language", typed);
        assert_eq!(completed(&offered, params).await, whole(values), "{typed}");
    }
    let cities = completed(&offered, of_prompt("by_hand", "city", "uL")).await;
    assert_eq!(cities, whole(&["Ulm", "ulcer"]));
    // An argument that nobody completes is known all the same.
    assert_eq!(completed(&offered, of_prompt("review", "code", "f")).await, whole(&[]));
}

async fn places_in_templates_are_completed(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let languages = completed(&offered, of_template(SHELVES, "language", "p")).await;
    assert_eq!(languages, whole(&["python"]));
    let nothing = of_template("offer://titles/{title}{?edition}", "edition", "1");
    assert_eq!(completed(&offered, nothing).await, whole(&[]));
}

async fn a_completer_sees_what_was_chosen_before(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    for (chosen, values) in [
        (json!({"language": "rust"}), json!(["11"])),
        (json!({"language": "ruby"}), json!([])),
        (json!({}), json!([])),
    ] {
        let mut params = of_template(SHELVES, "number", "11");
        params["context"] = json!({"arguments": chosen});
        assert_eq!(completed(&offered, params).await["values"], values, "{chosen}");
    }
    let mut params = of_prompt("by_hand", "street", "Elm");
    params["context"] = json!({"arguments": {"city": "Ulm"}});
    let streets = completed(&offered, params).await;
    assert_eq!(streets["values"][0], r#"Elm 0 {"city":"Ulm"}"#);
}

async fn no_more_than_a_hundred_are_sent_and_how_many_there_are_is_said(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let streets = completed(&offered, of_prompt("by_hand", "street", "Elm")).await;
    assert_eq!(streets["values"].as_array().unwrap().len(), 100);
    assert_eq!(streets["values"][99], "Elm 99 {}");
    assert_eq!((&streets["total"], &streets["hasMore"]), (&json!(MANY), &json!(true)));
    // A completer knows better how many there are.
    let mut params = of_template(SHELVES, "number", "1");
    params["context"] = json!({"arguments": {"language": "rust"}});
    let numbers = completed(&offered, params).await;
    assert_eq!(numbers["values"].as_array().unwrap().len(), 10);
    assert_eq!((&numbers["total"], &numbers["hasMore"]), (&json!(1000), &json!(true)));
}

async fn what_is_not_there_is_a_wrong_parameter(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    for params in [
        of_prompt("nowhere", "language", ""),
        of_prompt("review", "nothing", ""),
        of_template("offer://nowhere/{id}", "id", ""),
        of_template(SHELVES, "nothing", ""),
        // A resource is no template, and has nothing to complete.
        of_template("offer://text", "id", ""),
        json!({"ref": {"type": "ref/tool", "name": "weigh"}, "argument": {"name": "name", "value": ""}}),
        json!({"ref": {"type": "ref/prompt", "name": "review"}}),
        json!({}),
    ] {
        let error = offered.refused("completion/complete", params.clone()).await;
        assert_eq!(error.code, -32602, "{params}: {error:?}");
    }
}

async fn a_completer_that_fails_is_an_error(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let params = of_prompt("by_hand", "house", "");
    assert_eq!(offered.refused("completion/complete", params).await.code, -32099);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Plain {
    #[expect(dead_code, reason = "only its type is looked at")]
    code: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Chosen {
    #[expect(dead_code, reason = "only its type is looked at")]
    colour: Option<Colour>,
}

/// A choice whose values are described, which makes another schema of it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Colour {
    /// Like blood.
    Red,
    /// Like the sky.
    Blue,
}

/// The servers that complete something, with what they are asked.
fn completing() -> [(Server, Value); 4] {
    let server = || Server::new("s", "1");
    let city = || prompt("p", async || "").argument(PromptArgument::new("city"));
    [
        (server().prompt(city().complete_values("city", ["red"])), of_prompt("p", "city", "")),
        (
            server().prompt(city().complete("city", async || vec!["red"])),
            of_prompt("p", "city", ""),
        ),
        (
            server().template(template("x://{id}", async || "").complete_values("id", ["red"])),
            of_template("x://{id}", "id", ""),
        ),
        (server().prompt(prompt("p", async |_: Args<Chosen>| "")), of_prompt("p", "colour", "r")),
    ]
}

// req: mcpserver:completion:capability-auto
#[tokio::test]
async fn one_completer_is_enough_and_a_choice_is_one() {
    within(async {
        for era in [Era::Legacy, Era::Modern] {
            for (server, params) in completing() {
                let builder = Client::builder().revision(pinned(era));
                let client = builder.in_process(&server).await.unwrap();
                assert_eq!(capabilities(&client, era).await["completions"], json!({}));
                let result = client.request("completion/complete", params.clone()).await.unwrap();
                let result: Value = result.decode().unwrap();
                assert_eq!(result["completion"], whole(&["red"]), "{params}");
            }
        }
    })
    .await;
}

// req: mcpserver:completion:capability-auto, completion:complete:not-supported
#[tokio::test]
async fn prompts_and_templates_alone_complete_nothing() {
    within(async {
        for era in [Era::Legacy, Era::Modern] {
            let server = Server::new("s", "1")
                .prompt(prompt("p", async |_: Args<Plain>| ""))
                .template(template("x://{id}", async || ""));
            let client = Client::builder().revision(pinned(era)).in_process(&server).await.unwrap();
            assert_eq!(capabilities(&client, era).await.get("completions"), None);
            let params = of_prompt("p", "code", "");
            let error = client.request("completion/complete", params).await.unwrap_err();
            assert_eq!(error.as_rpc().unwrap().code, -32601);
        }
    })
    .await;
}
