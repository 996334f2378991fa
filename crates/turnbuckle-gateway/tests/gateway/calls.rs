//! Calls, progress, logs, errors and cancellation, in every pair of wires and eras.

use std::{
    future::IntoFuture as _,
    sync::{Arc, Mutex},
};

use serde_json::json;
use turnbuckle::{Client, types::LogLevel};

use crate::support::{Fixture, LEGACY, through, ways};

// req: flow:proxy:forward-tools-resources
#[tokio::test]
async fn a_gateway_looks_like_the_server_behind_it() {
    for way in ways() {
        let client = through(way, &Fixture::default(), Client::builder()).await;
        assert_eq!(client.revision(), way.downstream.1, "{way:?}");
        let tools = client.tools().all().await.unwrap();
        assert_eq!(tools.len(), 8, "{way:?}");
        let read = client.read_resource("note://2").await.unwrap();
        assert_eq!(read.contents.len(), 1, "{way:?}");
        if way.downstream.1 == LEGACY {
            let info = client.server_info().unwrap();
            assert_eq!((&*info.name, &*info.version), ("behind", "7.1"), "{way:?}");
            assert_eq!(client.instructions().as_deref(), Some("Ask nicely."), "{way:?}");
            client.ping().await.unwrap();
        } else {
            let found = client.discover().await.unwrap();
            assert_eq!(found.supported_versions.len(), 5, "{way:?}");
            assert_eq!(found.meta.server_info().unwrap().unwrap().name, "behind", "{way:?}");
            assert!(found.capabilities.resources.unwrap().subscribe.unwrap(), "{way:?}");
        }
    }
}

#[tokio::test]
async fn a_client_that_pins_nothing_finds_the_newest_era() {
    for way in ways() {
        let gateway = crate::support::gateway(&Fixture::default().server(), way.upstream).await;
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move { gateway.serve(theirs).await });
        let client = Client::over(ours).await.unwrap();
        assert_eq!(client.revision(), turnbuckle::Revision::LATEST);
        assert_eq!(client.server_info().unwrap().name, "behind");
    }
}

#[tokio::test]
async fn a_hundred_calls_at_once_find_their_own_answers() {
    for way in ways() {
        let client = through(way, &Fixture::default(), Client::builder()).await;
        let calls: Vec<_> = (0..100)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move {
                    let arguments = json!({"number": number});
                    let result = client.call_tool("echo", &arguments).await.unwrap();
                    assert_eq!(result.to_text(), arguments.to_string());
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        }
    }
}

#[tokio::test]
async fn progress_arrives_in_order_before_the_result_and_only_if_it_was_asked_for() {
    for way in ways() {
        let client = through(way, &Fixture::default(), Client::builder()).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let call = client.call_tool("count", ()).on_progress(move |progress| {
            sink.lock().unwrap().push((progress.progress, progress.message.unwrap_or_default()));
        });
        assert_eq!(call.await.unwrap().to_text(), "counted", "{way:?}");
        let steps = [1.0, 2.0, 3.0].map(|step| (step, format!("step {step}")));
        assert_eq!(*seen.lock().unwrap(), steps, "{way:?}");
    }
}

#[tokio::test]
async fn logs_reach_the_call_in_order_with_its_progress() {
    for way in ways() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let builder = Client::builder().on_notification(move |method, params| {
            let params: serde_json::Value = params.unwrap().decode().unwrap();
            let what = match method {
                "notifications/message" => params["data"].to_string(),
                _ => params["progress"].to_string(),
            };
            sink.lock().unwrap().push(what);
        });
        let client = through(way, &Fixture::default(), builder).await;
        let mut call = client.call_tool("count", ()).on_progress(|_| {});
        if way.downstream.1 == LEGACY {
            client.request("logging/setLevel", json!({"level": "info"})).await.unwrap();
        } else {
            let level = serde_json::to_value(LogLevel::Info).unwrap();
            call = call.meta("io.modelcontextprotocol/logLevel", &level);
        }
        call.await.unwrap();
        let expected = ["1.0", "\"did 1\"", "2.0", "\"did 2\"", "3.0", "\"did 3\""];
        let seen = seen.lock().unwrap();
        let plain: Vec<_> = seen.iter().map(|what| what.replace(".0", "")).collect();
        assert_eq!(plain, expected.map(|what| what.replace(".0", "")), "{way:?}");
    }
}

#[tokio::test]
async fn logs_that_nobody_asked_for_do_not_reach_a_modern_client() {
    for way in ways().into_iter().filter(|way| way.downstream.1 != LEGACY) {
        let seen = Arc::new(Mutex::new(0));
        let sink = seen.clone();
        let builder = Client::builder().on_notification(move |method, _| {
            *sink.lock().unwrap() += usize::from(method == "notifications/message");
        });
        let client = through(way, &Fixture::default(), builder).await;
        let level = serde_json::to_value(LogLevel::Info).unwrap();
        let loud = client.call_tool("count", ()).meta("io.modelcontextprotocol/logLevel", &level);
        loud.await.unwrap();
        assert_eq!(*seen.lock().unwrap(), 3, "{way:?}");
        client.call_tool("count", ()).await.unwrap();
        let error = serde_json::to_value(LogLevel::Error).unwrap();
        let picky = client.call_tool("count", ()).meta("io.modelcontextprotocol/logLevel", &error);
        picky.await.unwrap();
        assert_eq!(*seen.lock().unwrap(), 3, "{way:?}");
    }
}

// req: protocol:error:data-roundtrip
#[tokio::test]
async fn errors_cross_with_code_message_and_data() {
    for way in ways() {
        let client = through(way, &Fixture::default(), Client::builder()).await;
        let error = client.call_tool("fail", ()).await.unwrap_err();
        let rpc = error.as_rpc().unwrap_or_else(|| panic!("{way:?}: {error}"));
        assert_eq!((rpc.code, &*rpc.message), (-31_999, "not today"), "{way:?}");
        let data = rpc.data.as_ref().unwrap().as_str();
        assert_eq!(data, r#"{"why":1.50,"big":123456789012345678901234567890}"#, "{way:?}");
        let unknown = client.request("acme/unknown", json!({"a": 1})).await.unwrap_err();
        assert_eq!(unknown.as_rpc().unwrap().code, -32_601, "{way:?}");
    }
}

#[tokio::test]
async fn dropping_a_call_drops_its_handler_on_the_server() {
    for way in ways() {
        let fixture = Fixture::default();
        let client = through(way, &fixture, Client::builder()).await;
        let call = tokio::spawn(client.call_tool("hang", ()).into_future());
        fixture.wait("started").await;
        call.abort();
        fixture.wait("dropped").await;
        assert_eq!(client.call_tool("echo", ()).await.unwrap().to_text(), "{}", "{way:?}");
    }
}

/// On a stream by its end, over HTTP by that of the requests, in a session by its DELETE.
#[tokio::test]
async fn a_client_that_leaves_takes_its_calls_along() {
    for way in ways() {
        let fixture = Fixture::default();
        let client = through(way, &fixture, Client::builder()).await;
        let call = tokio::spawn(client.call_tool("hang", ()).into_future());
        fixture.wait("started").await;
        client.close().await;
        fixture.wait("dropped").await;
        assert!(call.await.unwrap().is_err(), "{way:?}");
    }
}

// req: resources:read:unknown-uri
#[tokio::test]
async fn a_resource_that_is_not_there_has_the_code_of_the_clients_era() {
    for way in ways() {
        let client = through(way, &Fixture::default(), Client::builder()).await;
        let error = client.read_resource("note://9").await.unwrap_err();
        let rpc = error.as_rpc().unwrap_or_else(|| panic!("{way:?}: {error}"));
        let code = if way.downstream.1 == LEGACY { -32_002 } else { -32_602 };
        assert_eq!(rpc.code, code, "{way:?}");
        let data: serde_json::Value = rpc.data.as_ref().unwrap().decode().unwrap();
        assert_eq!(data["uri"], "note://9", "{way:?}");
    }
}
