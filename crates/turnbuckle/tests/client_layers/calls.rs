//! Layers around calls.

use std::future::IntoFuture as _;

use serde_json::json;
use turnbuckle::{
    Client, ErrorKind, RpcError, Server,
    middleware::Response,
    tool,
    types::{Elicit, ElicitAction, ElicitResult, PromptReference},
};

use crate::{
    support::{Doing, echoing, holding},
    ways::{LEGACY, Log, MODERN, WAYS, Wire, connect},
};

#[tokio::test]
async fn every_call_passes_layers_in_order() {
    for way in WAYS {
        let log = Log::default();
        let builder = Client::builder()
            .layer(Doing::telling("first", &log))
            .layer(Doing::telling("second", &log));
        let client = connect(builder, &echoing(), way).await;
        assert_eq!(log.take(), [""; 0], "what opens a connection is no call: {way:?}");
        let said = client.call_tool("echo", json!({"text": "hello"})).await.unwrap();
        assert_eq!(said.to_text(), "hello", "{way:?}");
        assert_eq!(log.take(), ["first: tools/call echo", "second: tools/call echo"], "{way:?}");
        client.tools().all().await.unwrap();
        client.request("tools/list", json!({})).await.unwrap();
        client.request("no/such", json!({})).await.unwrap_err();
        client.read_resource("a://b").await.unwrap_err();
        client.complete(PromptReference::new("p"), "a", "b").await.unwrap_err();
        let first: Vec<_> =
            log.take().into_iter().filter(|line| line.starts_with("first")).collect();
        assert_eq!(
            first,
            [
                "first: tools/list -",
                "first: tools/list -",
                "first: no/such -",
                "first: resources/read a://b",
                "first: completion/complete p",
            ],
            "{way:?}"
        );
    }
}

#[tokio::test]
async fn a_layer_can_change_what_is_sent() {
    for way in WAYS {
        let doing = Doing::new(|mut request| {
            request.meta_mut().insert("example.com/tenant", json!("blue"));
            request.set_params(json!({"name": "seen", "arguments": {}})).unwrap();
            assert_eq!(request.name(), Some("seen"));
            request.set_header("x-tenant", "blue").unwrap();
            assert!(request.set_params(json!([])).is_err());
            assert!(request.set_params(json!({"_meta": {}})).is_err());
            assert!(request.set_header("mcp-method", "x").is_err());
            Ok(request)
        });
        let seen = async |ctx: turnbuckle::Ctx| {
            let tenant = ctx.meta().value("example.com/tenant");
            tenant.map(|raw| raw.as_str().to_owned()).unwrap_or_default()
        };
        let server = echoing().tool(tool("seen", seen));
        let client = connect(Client::builder().layer(doing), &server, way).await;
        let said = client.call_tool("echo", json!({"text": "hello"})).await.unwrap();
        assert_eq!(said.to_text(), r#""blue""#, "{way:?}");
    }
}

#[tokio::test]
async fn a_layer_can_answer_and_refuse_by_itself() {
    for way in [(Wire::Memory, MODERN), (Wire::Http, LEGACY)] {
        let doing = Doing::new(|request| match request.name() {
            Some("mine") => Err(Ok(Response::new(json!({
                "content": [{"type": "text", "text": "from here"}],
                "resultType": "complete",
            })))),
            Some("broken") => Err(Ok(Response::new(json!(7)))),
            _ => Err(Err(RpcError::new(77, "nothing passes"))),
        });
        let client = connect(Client::builder().layer(doing), &echoing(), way).await;
        let said = client.call_tool("mine", ()).await.unwrap();
        assert_eq!(said.to_text(), "from here");
        let broken = client.call_tool("broken", ()).await.unwrap_err();
        assert_eq!(broken.kind(), ErrorKind::Protocol, "{broken}");
        let refused = client.call_tool("echo", json!({"text": "x"})).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert_eq!(refused.as_rpc().unwrap().code, 77);
        assert!(!refused.maybe_executed());
        assert!(refused.to_string().contains("nothing passes"), "{refused}");
    }
}

#[tokio::test]
async fn an_error_of_the_server_comes_through_as_it_is() {
    for way in WAYS {
        let log = Log::default();
        let builder = Client::builder().layer(Doing::telling("", &log));
        let client = connect(builder, &echoing(), way).await;
        let error = client.call_tool("none", json!({})).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Remote, "{way:?}: {error}");
        assert_eq!(error.as_rpc().unwrap().code, -32602);
    }
}

#[tokio::test]
async fn dropping_a_call_cancels_it_through_layers() {
    for way in WAYS {
        let (server, mut told) = holding();
        let log = Log::default();
        let builder =
            Client::builder().layer(Doing::telling("", &log)).layer(Doing::telling("", &log));
        let client = connect(builder, &server, way).await;
        let call = tokio::spawn(client.call_tool("holds", ()).no_timeouts().into_future());
        assert_eq!(told.recv().await, Some("begun"), "{way:?}");
        call.abort();
        assert_eq!(told.recv().await, Some("dropped"), "{way:?}");
    }
}

#[tokio::test]
async fn a_call_with_questions_passes_once() {
    async fn asks(ctx: turnbuckle::Ctx) -> Result<String, turnbuckle::ToolError> {
        for key in ["one", "two"] {
            ctx.ask(key, turnbuckle::elicit::elicit::<crate::support::Said>("Which?")).await?;
        }
        Ok("done".to_owned())
    }
    for way in WAYS {
        let log = Log::default();
        let builder =
            Client::builder().layer(Doing::telling("", &log)).on_elicitation(async |_: Elicit| {
                let mut answer = ElicitResult::new(ElicitAction::Accept);
                answer.content = Some(json!({"text": "this"}).into());
                Ok(answer)
            });
        let server = Server::new("test", "1").tool(tool("asks", asks));
        let client = connect(builder, &server, way).await;
        assert_eq!(client.call_tool("asks", ()).await.unwrap().to_text(), "done", "{way:?}");
        assert_eq!(log.take(), [": tools/call asks"], "{way:?}");
    }
}
