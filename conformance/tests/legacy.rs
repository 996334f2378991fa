//! What the suite's legacy scenarios look at, without the suite: the two programs with each other,
//! and with scripts.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle::{
    Client, ClientBuilder, Json, Revision, Server,
    server::RawArgs,
    tool,
    types::{
        CreateMessage, CreateMessageResult, ElicitAction, ElicitForm, ElicitResult, Raw, Role,
        TextContent,
    },
};
use turnbuckle_conformance::{
    client::{act, host},
    server::server,
};

async fn connected(builder: ClientBuilder, server: &Server) -> Client {
    builder.revision(Revision::V2025_11_25).in_process(server).await.unwrap()
}

/// A client that answers every question with this, and what it was asked.
fn answering(answer: Value) -> (ClientBuilder, Arc<Mutex<Vec<Value>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let able = serde_json::from_value(json!({"sampling": {}, "elicitation": {}})).unwrap();
    let builder = Client::builder().capabilities(able).on_request(move |question| {
        seen.lock().unwrap().push(question.params.unwrap().decode().unwrap());
        std::future::ready(Ok(Raw::from(&answer)))
    });
    (builder, asked)
}

/// Calls a tool that asks, and returns the question and what the tool says in the end.
async fn asked_by(tool: &str, arguments: Value, answer: Value) -> (Value, String) {
    let (builder, asked) = answering(answer);
    let client = connected(builder, &server()).await;
    let said = client.call_tool(tool, arguments).await.unwrap();
    assert_eq!(said.is_error, None, "{}", said.to_text());
    (asked.lock().unwrap().pop().unwrap(), said.to_text())
}

// req: tools:call:sampling-roundtrip, sampling:create:basic
#[tokio::test]
async fn sampling() {
    let answer = json!({"role": "assistant", "content": {"type": "text", "text": "Paris"},
        "model": "m"});
    let (question, said) = asked_by("test_sampling", json!({"prompt": "Capital?"}), answer).await;
    let message = json!({"role": "user", "content": {"type": "text", "text": "Capital?"}});
    assert_eq!(question, json!({"messages": [message], "maxTokens": 100}));
    assert_eq!(said, "LLM response: Paris");
}

// req: tools:call:elicitation-roundtrip, elicitation:form:basic, elicitation:form:action:accept
#[tokio::test]
async fn elicitation() {
    let content = json!({"username": "ada", "email": "ada@example.com"});
    let answer = json!({"action": "accept", "content": content});
    let (question, said) = asked_by("test_elicitation", json!({"message": "Who?"}), answer).await;
    assert_eq!(question["message"], "Who?");
    let schema = &question["requestedSchema"];
    assert_eq!(schema["required"], json!(["username", "email"]));
    assert_eq!(schema["properties"]["email"]["type"], "string");
    assert!(said.contains("ada@example.com"), "{said}");
}

// req: elicitation:form:defaults, elicitation:form:action:cancel
#[tokio::test]
async fn elicitation_with_defaults() {
    let answer = json!({"action": "cancel"});
    let (question, said) = asked_by("test_elicitation_sep1034_defaults", json!({}), answer).await;
    assert_eq!(
        question["requestedSchema"]["properties"],
        json!({
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"],
                "default": "active"},
            "verified": {"type": "boolean", "default": true},
        })
    );
    assert!(said.contains("Cancel"), "{said}");
}

// req: elicitation:form:schema:enum-variants
#[tokio::test]
async fn elicitation_with_choices() {
    let answer = json!({"action": "decline"});
    let (question, _) = asked_by("test_elicitation_sep1330_enums", json!({}), answer).await;
    let fields = &question["requestedSchema"]["properties"];
    let has = |field: &str, member: &str| fields[field].get(member).is_some();
    assert!(has("untitledSingle", "enum") && !has("untitledSingle", "oneOf"));
    assert!(!has("untitledSingle", "enumNames"));
    assert!(has("titledSingle", "oneOf") && !has("titledSingle", "enum"));
    assert_eq!(fields["legacyEnum"]["enum"].as_array().unwrap().len(), 2);
    assert_eq!(fields["legacyEnum"]["enumNames"].as_array().unwrap().len(), 2);
    let items = |field: &str| &fields[field]["items"];
    assert_eq!(items("untitledMulti")["type"], "string");
    assert!(items("untitledMulti").get("anyOf").is_none());
    assert_eq!(items("titledMulti")["anyOf"][0]["title"], "First Option");
    assert!(items("titledMulti").get("enum").is_none());
}

#[tokio::test]
async fn logging_is_heard_by_those_who_asked() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    let builder = Client::builder().on_notification(move |method, _| {
        log.lock().unwrap().push(method.to_owned());
    });
    let client = connected(builder, &server()).await;
    client.request("logging/setLevel", json!({"level": "debug"})).await.unwrap();
    client.call_tool("test_tool_with_logging", ()).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), ["notifications/message"; 3]);
}

#[tokio::test]
async fn every_tool_is_described() {
    let client = connected(Client::builder(), &server()).await;
    let tools = client.tools().all().await.unwrap();
    assert_eq!(tools[0].name, "test_simple_text", "the suite calls the first");
    for tool in tools {
        assert!(tool.description.is_some(), "{}", tool.name);
    }
}

/// A server like those that the suite has for clients.
fn script(heard: &Arc<Mutex<Vec<Value>>>) -> Server {
    let (numbers, schemas, answers) = (heard.clone(), heard.clone(), heard.clone());
    let contact = json!({"$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object", "$defs": {"address": {"$anchor": "a", "type": "object"}},
        "properties": {"name": {"$ref": "#/$defs/address"}}, "additionalProperties": false});
    let note = |heard: Arc<Mutex<Vec<Value>>>| {
        move |RawArgs(arguments): RawArgs| {
            heard.lock().unwrap().push(arguments.decode().unwrap());
            std::future::ready(Json(8))
        }
    };
    Server::new("script", "1")
        .tool(tool("add_numbers", note(numbers)))
        .tool(tool("json_schema_2020_12_tool", async |_: RawArgs| ()).input_schema(contact))
        .tool(tool("json_schema_echo", note(schemas)))
        .tool(tool("test_reconnection", async || "here"))
        .tool(tool("test_client_elicitation_defaults", move |ctx: turnbuckle::Ctx| {
            let answers = answers.clone();
            async move {
                let form: ElicitForm = serde_json::from_value(json!({
                    "message": "?",
                    "requestedSchema": {"type": "object", "properties": {
                        "name": {"type": "string", "default": "John Doe"},
                        "age": {"type": "integer", "default": 30},
                        "status": {"type": "string", "enum": ["on", "off"], "default": "on"},
                    }},
                }))
                .unwrap();
                let answer = ctx.request("elicitation/create", form).await.unwrap();
                answers.lock().unwrap().push(answer.decode().unwrap());
            }
        }))
}

#[tokio::test]
async fn the_client_does_what_each_scenario_expects() {
    for (scenario, expected) in [
        ("initialize", None),
        ("sse-retry", None),
        ("tools_call", Some(json!({"a": 5, "b": 3}))),
        (
            "elicitation-sep1034-client-defaults",
            Some(json!({"action": "accept",
                "content": {"name": "John Doe", "age": 30, "status": "on"}})),
        ),
    ] {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let client = connected(host(), &script(&heard)).await;
        act(&client, scenario).await.unwrap();
        assert_eq!(heard.lock().unwrap().pop(), expected, "{scenario}");
    }
}

#[tokio::test]
async fn a_schema_comes_back_as_it_was_sent() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let client = connected(host(), &script(&heard)).await;
    act(&client, "json-schema-2020-12-preservation").await.unwrap();
    let schema = heard.lock().unwrap().pop().unwrap();
    for member in ["$schema", "$defs", "additionalProperties"] {
        assert!(schema["schema"].get(member).is_some(), "{schema}");
    }
    assert_eq!(schema["schema"]["$defs"]["address"]["$anchor"], "a");
}

// req: sampling:create:basic, sampling:capability:declare
#[tokio::test]
async fn the_programs_get_along_with_each_other() {
    let host = host().on_sampling(async |question: CreateMessage| {
        let text = TextContent::new(format!("{} tokens", question.max_tokens));
        Ok(CreateMessageResult::new(Role::Assistant, text, "m"))
    });
    let client = connected(host, &server()).await;
    let said = client.call_tool("test_sampling", json!({"prompt": "?"})).await.unwrap();
    assert_eq!(said.to_text(), "LLM response: 100 tokens");
    let said = client.call_tool("test_elicitation_sep1034_defaults", ()).await.unwrap();
    assert!(said.to_text().contains(r#"name: "John Doe""#), "{}", said.to_text());
    let answer = ElicitResult::new(ElicitAction::Accept);
    assert!(answer.content.is_none(), "the defaults are the SDK's work");
}
