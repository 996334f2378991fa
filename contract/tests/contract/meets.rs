//! What a client and a server know of each other, and what passes between them as it is.

use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};
use turnbuckle::{
    Client, Ctx, Server, ToolError, tool,
    types::{
        ClientCapabilities, ElicitAction, ElicitResult, Era, Implementation, Progress, Raw,
        RootsCapability,
    },
};

use crate::{
    live::connect,
    rig::{Rig, Wire, contract},
};

contract! { everywhere unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: lifecycle:initialize:basic, lifecycle:initialize:server-info
    // req: lifecycle:initialize:instructions, lifecycle:initialize:client-info
    // req: lifecycle:initialize:client-capabilities, lifecycle:discover:basic
    each_side_knows_who_the_other_is,
    // req: meta:request-to-handler, meta:result-to-client, protocol:meta:related-task
    meta_passes_both_ways_whatever_it_is_about,
}

contract! { asked unconnected on [memory unix direct http sse] in [legacy]:
    // req: protocol:progress:client-to-server
    a_clients_progress_reaches_the_handler_that_asked,
}

contract! { lines on [memory stdio unix http sse] in [legacy modern]:
    // req: transport:stdio, transport:stdio:no-embedded-newlines, tools:call:content:text
    text_of_many_lines_arrives_as_it_was,
}

async fn each_side_knows_who_the_other_is(wire: Wire, era: Era) {
    let mut info = Implementation::new("whole", "1.2.3");
    info.title = Some("The whole".to_owned());
    let server = Server::new("part", "0").info(info.clone()).instructions("Be kind.").tool(tool(
        "who",
        async |ctx: Ctx| {
            let able = serde_json::to_value(ctx.client_capabilities()).unwrap();
            let client = ctx.client_info().unwrap();
            json!({"name": client.name, "version": client.version, "able": able}).to_string()
        },
    ));
    let builder = Client::builder()
        .info("host", "4.5")
        .on_elicitation(async |_| Ok(ElicitResult::new(ElicitAction::Cancel)));
    let client = connect(builder, &server, wire, era).await;
    let (told, instructions) = match era {
        // A client that is told what its server speaks has not asked who it is.
        Era::Modern => {
            let discovered = client.discover().await.unwrap();
            let meta = serde_json::to_value(&discovered.meta).unwrap();
            let told = meta["io.modelcontextprotocol/serverInfo"].clone();
            (serde_json::from_value(told).unwrap(), discovered.instructions)
        }
        _ => (client.server_info().unwrap(), client.instructions()),
    };
    assert_eq!((told, instructions.as_deref()), (info, Some("Be kind.")));
    let who = client.call_tool("who", ()).await.unwrap().to_text();
    let who: Value = serde_json::from_str(&who).unwrap();
    assert_eq!((&who["name"], &who["version"]), (&json!("host"), &json!("4.5")));
    let able = &who["able"];
    assert!(able["elicitation"].is_object() && able.get("sampling").is_none(), "{who}");
}

/// The mark of a task is as good as any other: it belongs to whoever wrote it.
async fn meta_passes_both_ways_whatever_it_is_about(wire: Wire, era: Era) {
    const TASK: &str = "io.modelcontextprotocol/related-task";
    let server = Server::new("mirror", "1").tool(tool("mirror", async |ctx: Ctx| {
        for key in [TASK, "example.com/own"] {
            let came = ctx.meta().value(key).cloned().unwrap();
            ctx.set_meta(key, came);
        }
    }));
    let client = connect(Client::builder(), &server, wire, era).await;
    let (task, own) = (json!({"taskId": "t-1"}), json!([1, {"two": null}]));
    let call = client
        .call_tool("mirror", ())
        .meta(TASK, task.clone())
        .meta("example.com/own", own.clone());
    let result = serde_json::to_value(call.await.unwrap().meta).unwrap();
    assert_eq!((&result[TASK], &result["example.com/own"]), (&task, &own), "{result}");
}

async fn a_clients_progress_reaches_the_handler_that_asked(wire: Wire, era: Era) {
    async fn ask(ctx: Ctx) -> Result<String, ToolError> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = heard.clone();
        let on_progress = move |step: Progress| {
            hears.lock().unwrap().push((step.progress, step.total, step.message));
        };
        let params = json!({"_meta": {"example.com/own": 1}});
        let asked = ctx.request_with_progress("roots/list", params, on_progress);
        let answer = asked.await.map_err(|error| ToolError::new(error.to_string()))?;
        let heard = heard.lock().unwrap().clone();
        Ok(format!("{} {}", answer.as_str(), json!(heard)))
    }
    let server = Server::new("asks", "1").tool(tool("ask", ask));
    let ours = Arc::new(OnceLock::<Client>::new());
    let answering = ours.clone();
    let mut able = ClientCapabilities::new();
    able.roots = Some(RootsCapability::new());
    let builder = Client::builder().capabilities(able).on_request(move |question| {
        let ours = answering.clone();
        async move {
            let client = ours.get().unwrap();
            let params: Value = question.params.unwrap().decode().unwrap();
            assert_eq!(params["_meta"]["example.com/own"], 1);
            let token = &params["_meta"]["progressToken"];
            for step in 1..=3 {
                let said = json!({"progressToken": token, "progress": step, "total": 3, "message": "so far"});
                client.notify("notifications/progress", said).await.unwrap();
                // That of a question that nobody asks is nobody's.
                let other = json!({"progressToken": "another", "progress": 99});
                client.notify("notifications/progress", other).await.unwrap();
            }
            Ok(Raw::from(json!({"roots": []})))
        }
    });
    let client = connect(builder, &server, wire, era).await;
    ours.set(client.clone()).unwrap();
    let told = client.call_tool("ask", ()).await.unwrap().to_text();
    let steps = json!([[1.0, 3.0, "so far"], [2.0, 3.0, "so far"], [3.0, 3.0, "so far"]]);
    assert_eq!(told, format!("{{\"roots\":[]}} {steps}"));
}

async fn text_of_many_lines_arrives_as_it_was(rig: &Rig) {
    for text in ["one\ntwo\n", "\r\n", "data: x\n\nid: 7\n\n", "\u{2028}\u{85}\u{b}\0"] {
        assert_eq!(rig.text("echo", json!({"text": text})).await, text);
    }
    assert_eq!(rig.client.counters().unreadable, 0);
}
