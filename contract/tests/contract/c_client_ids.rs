//! Requests that are named over modern Streamable HTTP: by an outgoing cancel (CANCELLATION C, 23
//! to 28), by their ids (A, 3 to 7).

use std::{
    future::IntoFuture,
    task::{Context, Waker},
};

use serde_json::{Value, json};
use turnbuckle::{Client, ErrorKind, types::RequestId};

use crate::{
    raw::said,
    rig::{poll_once, within},
    web::{Web, abandon, client, launch, modern, progress, settle},
};

async fn cancel(client: &Client, params: Value) {
    client.notify("notifications/cancelled", params).await.unwrap();
}

#[tokio::test]
async fn c23_an_outgoing_cancel_closes_the_post_it_names_and_is_not_sent() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        for (id, named) in [(RequestId::from(1), json!(1)), ("x".into(), json!("x"))] {
            let call = launch(client.call_tool("t", ()).request_id(id));
            let post = web.post().await;
            cancel(&client, json!({"requestId": named, "reason": "enough"})).await;
            let error = call.await.unwrap().unwrap_err();
            assert!(error.is_closed() && error.maybe_executed(), "{error}");
            post.closed().await;
        }
        // In the middle of a stream, too.
        let call = launch(client.call_tool("t", ()).request_id(3));
        let post = web.post().await;
        post.stream().await;
        settle().await;
        cancel(&client, json!({"requestId": 3})).await;
        assert!(call.await.unwrap().unwrap_err().is_closed());
        post.closed().await;
        assert_eq!(web.ends_with(client).await, 3);
    })
    .await;
}

#[tokio::test]
async fn c23_here_ids_are_matched_by_their_type() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let number = launch(client.call_tool("t", ()).request_id(1));
        let posts = web.post().await;
        let text = launch(client.call_tool("t", ()).request_id("2"));
        let post = web.post().await;
        for named in [json!("1"), json!(2), json!(true), json!(1.0), json!(null), json!([1])] {
            cancel(&client, json!({"requestId": named})).await;
        }
        settle().await;
        assert!(!number.is_finished() && !text.is_finished());
        posts.result(said("number")).await;
        post.result(said("text")).await;
        assert_eq!(number.await.unwrap().unwrap().to_text(), "number");
        assert_eq!(text.await.unwrap().unwrap().to_text(), "text");
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[tokio::test]
async fn c24_a_cancel_that_names_no_post_is_swallowed() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let call = launch(client.call_tool("t", ()).request_id(1));
        web.post().await.result(said("answered")).await;
        call.await.unwrap().unwrap();
        for params in [
            json!({"requestId": 1}),
            json!({"requestId": "unknown"}),
            json!({"requestId": true}),
            json!({"requestId": {"a": 1}}),
            json!({"reason": "no id"}),
            json!({}),
            Value::Null,
        ] {
            cancel(&client, params).await;
        }
        // Another notification is posted, with what the last request was sent under.
        let note = client.notify("notifications/other", json!({"x": 1}));
        let answered = async {
            let post = web.post().await;
            assert_eq!(post.body["method"], "notifications/other");
            assert_eq!(post.header("mcp-protocol-version"), Some("2026-07-28"));
            assert_eq!(post.header("mcp-method"), Some("notifications/other"));
            post.say("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
        };
        tokio::join!(note, answered).0.unwrap();
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[tokio::test]
async fn c24_a_cancel_from_inside_a_callback_is_no_different() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let inside = client.clone();
        let call = client.call_tool("t", ()).request_id(1).on_progress(move |progress| {
            // First one that is unknown, then the very call that is being told.
            let named = if progress.progress < 2.0 { 99 } else { 1 };
            let mut cancel = std::pin::pin!(cancel(&inside, json!({"requestId": named})));
            let mut context = Context::from_waker(Waker::noop());
            assert!(cancel.as_mut().poll(&mut context).is_ready(), "it waits for something");
        });
        let call = launch(call);
        let post = web.post().await;
        post.stream().await;
        post.event(progress(&post, 1)).await;
        settle().await;
        assert!(!call.is_finished());
        post.event(progress(&post, 2)).await;
        assert!(call.await.unwrap().unwrap_err().is_closed());
        post.closed().await;
        assert_eq!(web.ends_with(client).await, 1);
    })
    .await;
}

#[tokio::test]
async fn c25_a_probe_that_is_named_is_closed_under_its_own_era() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        // The first request ever: nothing else says what is spoken.
        let probe = launch(client.discover().request_id("probe"));
        let post = web.post().await;
        cancel(&client, json!({"requestId": "probe"})).await;
        assert!(probe.await.unwrap().unwrap_err().is_closed());
        post.closed().await;
        assert_eq!(web.ends_with(client).await, 1);
    })
    .await;
}

#[tokio::test]
async fn c26_a_cancel_that_follows_at_once_finds_its_post() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let mut call = client.call_tool("never", ()).request_id(1).into_future();
        assert!(poll_once(&mut call).await.is_none());
        cancel(&client, json!({"requestId": 1})).await;
        assert!(call.await.unwrap_err().is_closed());
        let later = launch(client.call_tool("later", ()).request_id(1));
        let post = web.post().await;
        assert_eq!(post.body["params"]["name"], "later", "a cancelled call was sent");
        post.result(said("later")).await;
        later.await.unwrap().unwrap();
        assert_eq!(web.ends_with(client).await, 1);
    })
    .await;
}

#[tokio::test]
async fn c27_a_finished_post_that_unwinds_leaves_its_successor_alone() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        // Answered, but its future still exists.
        let mut first = client.call_tool("first", ()).request_id(1).into_future();
        assert!(poll_once(&mut first).await.is_none());
        let (answer, post) = tokio::join!(&mut first, async {
            let post = web.post().await;
            post.stream().await;
            post.last_event(said("first")).await;
            post
        });
        assert_eq!(answer.unwrap().to_text(), "first");
        let second = launch(client.call_tool("second", ()).request_id(1));
        let successor = web.post().await;
        drop(first);
        post.end().await;
        settle().await;
        assert!(!second.is_finished() && !successor.is_closed());
        // Its handle is still there.
        let taken = client.call_tool("third", ()).request_id("1").await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::Refused);
        cancel(&client, json!({"requestId": 1})).await;
        assert!(second.await.unwrap().unwrap_err().is_closed());
        successor.closed().await;
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[tokio::test]
async fn c28_a_probe_decides_what_a_message_without_a_version_is_sent_under() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(Client::builder().no_proxy().connect(web.url()));
        let discovered = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
        web.post().await.result(discovered).await;
        let client = connecting.await.unwrap().unwrap();
        cancel(&client, json!({"requestId": 1})).await;
        let note = client.notify("notifications/other", ());
        let answered = async {
            let post = web.post().await;
            assert_eq!(post.body, json!({"jsonrpc": "2.0", "method": "notifications/other"}));
            assert_eq!(post.header("mcp-protocol-version"), Some("2026-07-28"));
            post.say("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
        };
        tokio::join!(note, answered).0.unwrap();
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[tokio::test]
async fn c28_a_version_that_was_chosen_is_known_from_the_start() {
    within(async {
        let mut web = Web::new().await;
        let prior = serde_json::from_str(r#"{"revision":"2026-07-28"}"#).unwrap();
        for builder in [modern(), Client::builder().no_proxy().discovery(prior)] {
            let client = builder.connect(web.url()).await.unwrap();
            cancel(&client, json!({"requestId": 1})).await;
            let note = client.notify("notifications/first", ());
            let answered = async {
                let post = web.post().await;
                assert_eq!(post.method(), "notifications/first");
                assert_eq!(post.header("mcp-protocol-version"), Some("2026-07-28"));
                post.say("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
            };
            tokio::join!(note, answered).0.unwrap();
        }
        assert_eq!(web.requests(), 2);
    })
    .await;
}

#[tokio::test]
async fn a03_ids_stand_in_the_body_as_they_were_given() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        for (id, token) in [
            (RequestId::from("7"), r#""id":"7""#),
            (7.into(), r#""id":7"#),
            ("07".into(), r#""id":"07""#),
            (u64::MAX.into(), r#""id":18446744073709551615"#),
        ] {
            let call = launch(client.call_tool("t", ()).request_id(id));
            let post = web.post().await;
            let bytes = String::from_utf8(web.bytes(post.connection)).unwrap();
            assert!(bytes.contains(token), "{bytes}");
            post.result(said("ok")).await;
            call.await.unwrap().unwrap();
        }
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        assert!(post.body["id"].is_u64(), "an integer is minted");
        abandon(call).await;
        assert_eq!(web.ends_with(client).await, 5);
    })
    .await;
}

#[tokio::test]
async fn a04_an_id_in_flight_is_refused_and_free_again_after_any_end() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let mut sent = 0;
        for end in ["result", "error", "stream", "lost", "dropped", "cancelled"] {
            let call = launch(client.call_tool("t", ()).request_id("7"));
            let post = web.post().await;
            sent += 1;
            for taken in [RequestId::from("7"), 7.into()] {
                let refused = client.call_tool("t", ()).request_id(taken).await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Refused);
                assert!(refused.to_string().contains('7') && !refused.maybe_executed());
            }
            match end {
                "result" => post.result(said("ok")).await,
                "error" => post.error(400, -32602, Value::Null).await,
                "stream" => {
                    post.stream().await;
                    post.end().await;
                }
                "lost" => post.hang_up().await,
                "dropped" => {
                    abandon(call).await;
                    continue;
                }
                _ => cancel(&client, json!({"requestId": "7"})).await,
            }
            assert_eq!(call.await.unwrap().is_ok(), end == "result", "{end}");
        }
        assert_eq!(web.ends_with(client).await, sent);
    })
    .await;
}

#[tokio::test]
async fn a05_an_answer_may_spell_an_id_the_other_way() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        for (id, echoed) in [(RequestId::from("7"), json!(7)), (7.into(), json!("7"))] {
            let answer = json!({"jsonrpc": "2.0", "id": echoed, "result": said("ok")});
            let call = launch(client.call_tool("t", ()).request_id(id.clone()));
            let post = web.post().await;
            post.answer(200, "application/json", answer.to_string()).await;
            assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
            let call = launch(client.call_tool("t", ()).request_id(id));
            let post = web.post().await;
            post.stream().await;
            post.event(answer).await;
            post.end().await;
            assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
        }
        // These are never ids.
        for wrong in [json!("07"), json!(true), json!(7.0), json!([7])] {
            let call = launch(client.call_tool("t", ()).request_id(7));
            let post = web.post().await;
            post.stream().await;
            post.event(json!({"jsonrpc": "2.0", "id": wrong, "result": said("not ours")})).await;
            post.last_event(said("ours")).await;
            post.end().await;
            assert_eq!(call.await.unwrap().unwrap().to_text(), "ours", "{wrong}");
        }
    })
    .await;
}

#[tokio::test]
async fn a06_minted_ids_skip_what_was_chosen() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let probe = launch(client.call_tool("t", ()));
        let next = web.post().await.body["id"].as_u64().unwrap() + 1;
        abandon(probe).await;
        let chosen = [RequestId::from(next.to_string()), (next + 1).into()];
        let chosen = chosen.map(|id| launch(client.call_tool("chosen", ()).request_id(id)));
        let (_one, _two) = (web.post().await, web.post().await);
        let minted = launch(client.call_tool("minted", ()));
        assert_eq!(web.post().await.body["id"], next + 2);
        for call in chosen.into_iter().chain([minted]) {
            abandon(call).await;
        }
        assert_eq!(web.ends_with(client).await, 4);
    })
    .await;
}
