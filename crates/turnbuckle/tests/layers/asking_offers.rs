//! Layers around what groups and single offers ask their clients.

use serde_json::{Value, json};
use turnbuckle::{
    Args, Client, Ctx, RpcError, Server,
    elicit::roots,
    prompt, resource,
    server::{Group, Typed},
    template, tool,
    types::{Era, Raw, Resource, Revision, Root},
};

use crate::{
    questions::Told,
    support::{LEGACY, Log, MODERN, WAYS, Wire, connect_as},
};

async fn places(ctx: Ctx) -> Result<String, RpcError> {
    let places = ctx.ask("places", roots()).await?;
    Ok(places.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
}

async fn connect(server: &Server, wire: Wire, revision: Revision) -> Client {
    let builder = Client::builder().roots([Root::new("file:///srv")]);
    connect_as(builder, server, wire, revision).await
}

/// What layers of these names see of one question, the first closest to the handler. Where answers
/// come with another request, the question waits for that.
fn seen(revision: Revision, layers: &[&str]) -> Vec<String> {
    let rounds: &[&str] = match revision.era() {
        Era::Legacy => &["is answered"],
        Era::Modern => &["has to wait", "is answered"],
    };
    let mut seen = Vec::new();
    for end in rounds {
        seen.extend(layers.iter().map(|layer| format!("{layer} asks roots/list")));
        seen.extend(layers.iter().rev().map(|layer| format!("{layer} {end}")));
    }
    seen
}

#[tokio::test]
async fn a_question_passes_the_offer_then_its_groups_then_the_server() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let told = |name| Told::new(name, &log);
        let inner = Group::new()
            .tool(
                tool("deep", places)
                    .input_request_layer(told("tool 1"))
                    .input_request_layer(told("tool 2")),
            )
            .prompt(prompt("deep", places).input_request_layer(told("prompt")))
            .resource(resource("test://deep", places).input_request_layer(told("resource")))
            .template(template("test://{id}/x", places).input_request_layer(told("template")))
            .input_request_layer(told("inner 1"))
            .input_request_layer(told("inner 2"));
        let server = Server::new("test", "1")
            .input_request_layer(told("server 1"))
            // The layers of a group are around what is added after them as well.
            .group(
                Group::new()
                    .input_request_layer(told("outer"))
                    .group(inner)
                    .tool(tool("flat", places)),
            )
            .tool(tool("free", places))
            .tool(tool("own", places).input_request_layer(told("own")))
            .input_request_layer(told("server 2"));
        let client = connect(&server, wire, revision).await;
        let around = ["inner 1", "inner 2", "outer", "server 1", "server 2"];
        for (method, params, own) in [
            ("tools/call", json!({"name": "deep"}), vec!["tool 1", "tool 2"]),
            ("prompts/get", json!({"name": "deep"}), vec!["prompt"]),
            ("resources/read", json!({"uri": "test://deep"}), vec!["resource"]),
            ("resources/read", json!({"uri": "test://7/x"}), vec!["template"]),
        ] {
            let way = format!("{method} {params} over {wire:?} in {revision}");
            let answered = ask(&client, method, &params).await;
            assert!(answered.as_str().contains("file:///srv"), "{way}: {}", answered.as_str());
            let layers = [own, around.to_vec()].concat();
            assert_eq!(log.take(), seen(revision, &layers), "{way}");
        }
        for (name, layers) in [
            ("flat", &around[2..]),
            ("free", &around[3..]),
            ("own", &["own", "server 1", "server 2"]),
        ] {
            client.call_tool(name, json!({})).await.unwrap();
            assert_eq!(log.take(), seen(revision, layers), "{name} over {wire:?} in {revision}");
        }
    }
}

/// Asks with what verbs do: questions are answered.
async fn ask(client: &Client, method: &str, params: &Value) -> Raw {
    let text = |key: &str| params[key].as_str().unwrap().to_owned();
    let result = match method {
        "tools/call" => json!(client.call_tool(&text("name"), json!({})).await.unwrap()),
        "prompts/get" => json!(client.get_prompt(&text("name"), json!({})).await.unwrap()),
        _ => json!(client.read_resource(text("uri")).await.unwrap()),
    };
    result.into()
}

#[tokio::test]
async fn what_takes_the_place_of_an_offer_asks_through_the_layers_of_its_group() {
    for revision in [MODERN, LEGACY] {
        let log = Log::default();
        let group =
            Group::new().tool(tool("t", places)).input_request_layer(Told::new("group", &log));
        let server = Server::new("test", "1").group(group);
        let registry = server.registry().unwrap();
        let other = tool("t", places).input_request_layer(Told::new("other", &log));
        registry.tool("t").unwrap().replace(other).unwrap();
        let client = connect(&server, Wire::Memory, revision).await;
        client.call_tool("t", json!({})).await.unwrap();
        assert_eq!(log.take(), seen(revision, &["other", "group"]), "{revision}");
    }
}

/// Completers and listers can ask where a question is a request.
#[tokio::test]
async fn what_completers_and_listers_ask_passes_the_layers_of_their_offer() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Review {
        #[expect(dead_code, reason = "only its name matters")]
        language: String,
    }
    async fn asked(ctx: Ctx) -> Vec<String> {
        let asked = ctx.request("roots/list", json!({})).await;
        vec![asked.map_or_else(|error| error.to_string(), |_| "done".to_owned())]
    }
    async fn suggest(ctx: Ctx, Typed(_): Typed) -> Vec<String> {
        asked(ctx).await
    }
    async fn list(ctx: Ctx) -> Vec<Resource> {
        asked(ctx).await.into_iter().map(|name| Resource::new("test://7/x", name)).collect()
    }
    let log = Log::default();
    let told = |name| Told::new(name, &log);
    let review = |Args(_): Args<Review>| async { "review" };
    let server = Server::new("test", "1")
        .prompt(
            prompt("p", review).complete("language", suggest).input_request_layer(told("prompt")),
        )
        .template(
            template("test://{id}/x", places).list(list).input_request_layer(told("template")),
        )
        .template(template("test://{id}/y", places).list(list));
    for wire in [Wire::Memory, Wire::Direct, Wire::Http, Wire::Sse] {
        let client = connect(&server, wire, LEGACY).await;
        let complete = json!({
            "ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "language", "value": ""},
        });
        let completed = client.request("completion/complete", complete).await.unwrap();
        assert!(completed.as_str().contains("done"), "{wire:?}: {}", completed.as_str());
        assert_eq!(log.take(), seen(LEGACY, &["prompt"]), "{wire:?}");
        client.request("resources/list", json!({})).await.unwrap();
        assert_eq!(log.take(), seen(LEGACY, &["template"]), "{wire:?}");
    }
}
