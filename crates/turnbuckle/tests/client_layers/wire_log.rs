//! The log of what travels.

use std::{future::IntoFuture as _, time::Duration};

use serde_json::json;
use turnbuckle::{
    Args, Client, Ctx, Server, ToolError, client::WireLog, elicit::roots, tool, types::Root,
};

use crate::{
    support::{Said, holding},
    ways::{LEGACY, Log, MODERN, WAYS, Wire, connect, eventually},
};

const SECRET: &str = "7h1515453cr37";

fn logged(log: &Log) -> WireLog {
    let log = log.clone();
    WireLog::new(move |line| log.add(line.to_string()))
}

/// The first words of each line: direction, kind, and method.
fn kinds(lines: &[String]) -> Vec<String> {
    let kind = |line: &String| {
        let words = line.split(' ').filter(|word| !word.starts_with('#'));
        words.take(3).collect::<Vec<_>>().join(" ")
    };
    lines.iter().map(kind).collect()
}

async fn asks(ctx: Ctx) -> Result<String, ToolError> {
    ctx.progress(1).await;
    let roots = ctx.ask("roots", roots()).await?;
    Ok(json!({"roots": roots.len(), "token": SECRET}).to_string())
}

#[tokio::test]
async fn every_message_is_told_once_in_order() {
    for way in WAYS {
        let log = Log::default();
        let builder = Client::builder().wire_log(logged(&log)).roots([Root::new("file:///srv")]);
        let server = Server::new("test", "1").tool(tool("asks", asks));
        let client = connect(builder, &server, way).await;
        if way.1 == LEGACY {
            let mut opening = kinds(&log.take());
            // That of the other wire, which was refused.
            opening.retain(|line| line != "-> closed");
            let expected = [
                "-> opened",
                "-> request initialize",
                "<- result initialize",
                "-> notification notifications/initialized",
            ];
            assert_eq!(opening[opening.len() - 4..], expected, "{way:?}");
        } else {
            assert_eq!(log.take(), ["-> opened"], "{way:?}");
        }
        client.call_tool("asks", ()).await.unwrap();
        let mut told = kinds(&log.take());
        // Progress has no order with what goes another way.
        let progress = told.iter().filter(|line| line.contains("notifications/progress")).count();
        told.retain(|line| !line.contains("notifications/progress"));
        match way.1 {
            LEGACY => {
                assert_eq!(progress, 1, "{way:?}");
                let expected = [
                    "-> request tools/call",
                    "<- request roots/list",
                    "-> result roots/list",
                    "<- result tools/call",
                ];
                assert_eq!(told, expected, "{way:?}");
            }
            _ => {
                assert_eq!(progress, 2, "{way:?}");
                let round = ["-> request tools/call", "<- result tools/call"];
                assert_eq!(told, [round, round].concat(), "{way:?}");
            }
        }
        client.call_tool("none", ()).await.unwrap_err();
        let told = kinds(&log.take());
        assert_eq!(told, ["-> request tools/call", "<- error tools/call"], "{way:?}");
        client.close().await;
        assert_eq!(kinds(&log.take()), ["-> closed"], "{way:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_told() {
    for way in WAYS {
        let (server, mut told) = holding();
        let log = Log::default();
        let client = connect(Client::builder().wire_log(logged(&log)), &server, way).await;
        log.take();
        let call = tokio::spawn(client.call_tool("holds", ()).no_timeouts().into_future());
        assert_eq!(told.recv().await, Some("begun"), "{way:?}");
        call.abort();
        assert_eq!(told.recv().await, Some("dropped"), "{way:?}");
        eventually(|| log.len() == 2).await;
        let lines = log.take();
        assert_eq!(kinds(&lines), ["-> request tools/call", "-> cancelled tools/call"], "{way:?}");
        let id =
            |line: &String| line.split(' ').find(|word| word.starts_with('#')).map(str::to_owned);
        assert!(id(&lines[0]).is_some() && id(&lines[0]) == id(&lines[1]), "{way:?}: {lines:?}");
        let late = client.call_tool("holds", ()).timeout(Duration::from_millis(20));
        late.await.unwrap_err();
        assert!(log.take()[1].ends_with("timed out after 20ms"), "{way:?}");
    }
}

#[tokio::test]
async fn secrets_are_not_told() {
    async fn leaks(Args(said): Args<Said>, ctx: Ctx) -> String {
        ctx.log(turnbuckle::types::LogLevel::Error, json!({"password": said.text})).await;
        format!("postgres://me:{}@db/x and {}", said.text, json!({"api_key": said.text}))
    }
    for way in WAYS {
        let log = Log::default();
        let builder = Client::builder().wire_log(logged(&log));
        let builder = match way.0 {
            Wire::Http | Wire::Sse => builder.header("authorization", format!("Bearer {SECRET}")),
            _ => builder,
        };
        let server = Server::new("test", "1").tool(tool("leaks", leaks));
        let client = connect(builder, &server, way).await;
        let call = client.call_tool("leaks", json!({"text": SECRET, "token": SECRET}));
        let call = call.meta("example.com/authorization", json!(format!("Bearer {SECRET}")));
        assert!(call.await.unwrap().to_text().contains(SECRET));
        let arguments = json!({"name": "leaks", "arguments": {"password": SECRET}});
        let _ = client.request("tools/call", arguments).await;
        let lines = log.take();
        assert!(lines.len() >= 4, "{way:?}");
        // The one member that nothing gives away is the caller's own.
        let rest = lines.join("\n").replace(&format!(r#""text":"{SECRET}""#), "");
        assert!(!rest.contains(SECRET), "{way:?}: {rest}");
    }
}

#[tokio::test]
async fn a_server_that_is_lost_is_told() {
    let log = Log::default();
    let (ours, theirs) = tokio::io::duplex(4096);
    let server = holding().0;
    let serving = tokio::spawn(server.serve(theirs).into_future());
    let builder = Client::builder().wire_log(logged(&log)).revision(MODERN);
    let client = builder.over(ours).await.unwrap();
    client.list_tools().await.unwrap();
    serving.abort();
    eventually(|| kinds(&log.take()).iter().any(|line| line.starts_with("<- lost"))).await;
}
