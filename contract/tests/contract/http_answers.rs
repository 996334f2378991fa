//! How a client reads what a modern server answers over HTTP: JSON, streams, refusals, and
//! everything that is none of them.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle::{Client, ClientBuilder, Error, ErrorKind, Limits, Result, types::CallToolResult};

use crate::{
    raw::said,
    rig::within,
    web::{Post, Web, chunk, client, launch, modern, progress, settle},
};

/// Calls a tool under the id 7 and answers as the script says.
async fn answered(
    builder: ClientBuilder,
    script: impl AsyncFnOnce(&Post),
) -> (Result<CallToolResult>, Client, Web) {
    let mut web = Web::new().await;
    let client = builder.connect(web.url()).await.unwrap();
    let call = launch(client.call_tool("t", ()).request_id(7));
    let post = web.post().await;
    script(&post).await;
    (call.await.unwrap(), client, web)
}

async fn failed(builder: ClientBuilder, script: impl AsyncFnOnce(&Post)) -> Error {
    answered(builder, script).await.0.unwrap_err()
}

fn answer(text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "result": said(text)})
}

// req: client-transport:http:json-response-parsed
#[tokio::test]
async fn a01_json_is_read_however_it_is_split() {
    within(async {
        let text = answer("whole").to_string();
        for split in 0..text.len() {
            let (one, two) = text.as_bytes().split_at(split);
            let (result, ..) = answered(modern(), async |post| {
                post.say("HTTP/1.1 200 OK\r\nContent-Type: Application/JSON; charset=utf-8\r\n")
                    .await;
                post.say("transfer-encoding: chunked\r\n\r\n").await;
                if !one.is_empty() {
                    post.chunk(one).await;
                }
                post.chunk(two).await;
                post.end().await;
            })
            .await;
            assert_eq!(result.unwrap().to_text(), "whole", "{split}");
        }
    })
    .await;
}

// req: errors:wire:protocolerror-invalid-params, protocol:error:data-roundtrip
#[tokio::test]
async fn a01_the_error_of_a_peer_arrives_as_it_is() {
    within(async {
        let error = json!({"code": -32099, "message": "so", "data": {"a": [1]}});
        let answer = json!({"jsonrpc": "2.0", "id": 7, "error": error});
        for status in [200, 400, 404, 500] {
            let error = failed(modern(), async |post| {
                post.answer(status, "application/json", answer.to_string()).await;
            })
            .await;
            assert_eq!(error.kind(), ErrorKind::Remote);
            let rpc = error.as_rpc().unwrap();
            assert_eq!((rpc.code, &*rpc.message), (-32099, "so"));
            assert_eq!(rpc.data.as_ref().unwrap().as_str(), r#"{"a":[1]}"#);
            assert_eq!(error.status(), (status != 200).then_some(status));
        }
        let error = failed(modern(), async |post| {
            post.stream().await;
            post.event(answer.clone()).await;
            post.end().await;
        })
        .await;
        assert_eq!(error.as_rpc().unwrap().code, -32099);
    })
    .await;
}

/// A call with a stream for an answer; what progress it was told of, in order.
async fn told(stream: impl AsyncFnOnce(&Post)) -> (Vec<f64>, String, Client) {
    let mut web = Web::new().await;
    let client = client(&web).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = told.clone();
    let call = client
        .call_tool("t", ())
        .request_id(7)
        .on_progress(move |progress| tells.lock().unwrap().push(progress.progress));
    let call = launch(call);
    let post = web.post().await;
    post.stream().await;
    stream(&post).await;
    let text = call.await.unwrap().unwrap().to_text();
    let told = told.lock().unwrap().clone();
    assert_eq!(web.requests(), 1, "something was answered");
    (told, text, client)
}

// req: transport:streamable-http:notifications
#[tokio::test]
async fn a01_progress_comes_in_order_and_then_the_result() {
    within(async {
        let (told, text, _) = told(async |post| {
            for done in 1..=100 {
                post.event(progress(post, done)).await;
            }
            post.last_event(said("done")).await;
            post.event(progress(post, 101)).await;
            post.end().await;
        })
        .await;
        assert_eq!(told, (1..=100).map(f64::from).collect::<Vec<_>>());
        assert_eq!(text, "done");
    })
    .await;
}

#[tokio::test]
async fn a01_a_stream_is_read_however_it_is_written_and_split() {
    fn script(post: &Post) -> Vec<u8> {
        let two = progress(post, 2).to_string();
        let (head, tail) = two.split_once(',').unwrap();
        format!(
            "\u{feff}: hello\r\n\r\nid: 1\rretry: 5\revent: message\rdata: {one}\r\r:\n\n\
             event: other\ndata: {one}\n\ndata:{head},\r\ndata:{tail}\r\n\r\nx\n\ndata: {last}\n\n",
            one = progress(post, 1),
            last = answer("ü"),
        )
        .into_bytes()
    }
    within(async {
        let (told_of, text, _) = told(async |post| {
            let pieces: Vec<u8> = script(post).iter().flat_map(|byte| chunk([*byte])).collect();
            post.say(pieces).await;
            post.end().await;
        })
        .await;
        assert_eq!((&told_of[..], &*text), (&[1.0, 2.0][..], "ü"));
        let mut split = 1;
        loop {
            let mut length = 0;
            let (told_of, text, _) = told(async |post| {
                let script = script(post);
                length = script.len();
                let (one, two) = script.split_at(split);
                post.say([chunk(one), chunk(two)].concat()).await;
                post.end().await;
            })
            .await;
            assert_eq!((&told_of[..], &*text), (&[1.0, 2.0][..], "ü"), "{split}");
            split += 1;
            if split == length {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a08_what_is_not_for_this_call_is_dropped_and_counted() {
    within(async {
        let (_, text, client) = told(async |post| {
            post.chunk("data: nonsense\n\n").await;
            post.chunk("data: [1]\n\n").await;
            post.event(json!({"jsonrpc": "2.0", "id": 8, "result": said("not ours")})).await;
            post.event(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
            let question = json!({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {}});
            post.event(question).await;
            post.event(json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "m"}})).await;
            post.last_event(said("ours")).await;
            post.end().await;
        })
        .await;
        assert_eq!(text, "ours");
        let counters = client.counters();
        assert_eq!(counters.unreadable, 2);
        assert_eq!(counters.late_answers, 1);
        assert_eq!(counters.dropped_requests, 2);
        assert_eq!(counters.stray_errors, 1);
    })
    .await;
}

#[tokio::test]
async fn a10_a_progress_callback_that_panics_costs_only_itself() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let call = client.call_tool("t", ()).on_progress(|_| panic!("as the test wishes"));
        let call = launch(call);
        let post = web.post().await;
        post.stream().await;
        post.event(progress(&post, 1)).await;
        post.event(progress(&post, 2)).await;
        post.last_event(said("done")).await;
        post.end().await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "done");
    })
    .await;
}

#[tokio::test]
async fn a12b_cancelled_and_progress_still_reach_observers() {
    within(async {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sees = seen.clone();
        let builder =
            modern().on_notification(move |method, _| sees.lock().unwrap().push(method.to_owned()));
        let (result, ..) = answered(builder, async |post| {
            post.stream().await;
            post.event(progress(post, 1)).await;
            let cancelled = json!({"requestId": 7});
            post.event(
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}),
            )
            .await;
            post.last_event(said("done")).await;
            post.end().await;
        })
        .await;
        assert_eq!(result.unwrap().to_text(), "done", "a server can't cancel a call");
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen, ["notifications/progress", "notifications/cancelled"]);
    })
    .await;
}

#[tokio::test]
async fn a12a_an_error_without_an_id_refuses_the_call_it_answers() {
    within(async {
        let stray = Arc::new(Mutex::new(Vec::new()));
        for id in [",\"id\":null", ""] {
            let body =
                format!(r#"{{"jsonrpc":"2.0"{id},"error":{{"code":-32700,"message":"what?"}}}}"#);
            stray.lock().unwrap().clear();
            let strays = stray.clone();
            let builder =
                modern().on_stray_error(move |error| strays.lock().unwrap().push(error.code));
            let (result, client, _) = answered(builder, async |post| {
                post.answer(400, "application/json", &body).await;
            })
            .await;
            let error = result.unwrap_err();
            assert_eq!(error.as_rpc().unwrap().code, -32700);
            assert_eq!(error.status(), Some(400));
            assert!(!error.maybe_executed());
            assert_eq!(client.counters().stray_errors, 1);
            assert_eq!(*stray.lock().unwrap(), [-32700]);
        }
    })
    .await;
}

#[tokio::test]
async fn a01_a_stream_that_ends_before_its_answer_may_have_run() {
    within(async {
        let early = async |post: &Post| {
            post.stream().await;
            post.event(progress(post, 1)).await;
        };
        let ended = failed(modern(), async |post| {
            early(post).await;
            post.end().await;
        });
        let cut = failed(modern(), async |post| {
            early(post).await;
            post.hang_up().await;
        });
        let in_an_event = failed(modern(), async |post| {
            post.stream().await;
            post.chunk(format!("data: {}", answer("never ended"))).await;
            post.end().await;
        });
        let in_json = failed(modern(), async |post| {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n";
            post.say(format!("{head}{}", answer("cut"))).await;
            post.hang_up().await;
        });
        let before_the_head = failed(modern(), async |post| post.hang_up().await);
        let in_the_head = failed(modern(), async |post| {
            post.say("HTTP/1.1 200 OK\r\ncontent-").await;
            post.hang_up().await;
        });
        let errors = [
            ended.await,
            cut.await,
            in_an_event.await,
            in_json.await,
            before_the_head.await,
            in_the_head.await,
        ];
        for (which, error) in errors.iter().enumerate() {
            assert!(error.is_closed() && error.maybe_executed(), "{which}: {error}");
            assert!(error.to_string().contains("127.0.0.1"), "{error}");
        }
    })
    .await;
}

#[tokio::test]
async fn a01_a_call_that_reached_nobody_certainly_did_not_run() {
    within(async {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", gone.local_addr().unwrap());
        drop(gone);
        let client = modern().connect(url).await.unwrap();
        let error = client.call_tool("t", ()).await.unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a01_nothing_is_sent_twice() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let first = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.result(said("first")).await;
        first.await.unwrap().unwrap();
        settle().await;
        // On a connection that was used before: it was read, so it may have run.
        let second = launch(client.call_tool("t", ()));
        let again = web.post().await;
        assert_eq!(again.connection, post.connection);
        again.hang_up().await;
        let error = second.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        // An idle connection that the server closes costs nothing.
        let third = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.result(said("third")).await;
        third.await.unwrap().unwrap();
        post.hang_up().await;
        settle().await;
        let fourth = launch(client.call_tool("t", ()));
        web.post().await.result(said("fourth")).await;
        assert_eq!(fourth.await.unwrap().unwrap().to_text(), "fourth");
        assert_eq!(web.ends_with(client).await, 4);
    })
    .await;
}

// req: errors:http:sdkhttperror-status, client-transport:http:404-surfaces
#[tokio::test]
async fn a01_a_status_without_a_message() {
    within(async {
        for (status, executed) in
            [(400, false), (401, false), (404, false), (429, false), (500, true), (503, true)]
        {
            for (kind, body) in [
                ("text/plain", ""),
                ("text/html", "<html><body>no</body></html>"),
                ("application/json", r#"{"error":"not found"}"#),
                ("text/event-stream", "data: {}\n\n"),
            ] {
                let error =
                    failed(modern(), async |post| post.answer(status, kind, body).await).await;
                let expected = match status {
                    401 => ErrorKind::AuthorizationRequired,
                    _ => ErrorKind::Http,
                };
                assert_eq!(error.kind(), expected, "{status} {kind}");
                assert_eq!(error.status(), Some(status));
                assert!(error.as_rpc().is_none());
                assert_eq!(error.maybe_executed(), executed, "{status}");
                assert!(error.to_string().contains(&status.to_string()), "{error}");
                assert!(!error.to_string().contains('<'), "{error}");
                let advises = error.to_string().contains("`ClientBuilder::auth`");
                assert_eq!(advises, status == 401, "{error}");
            }
        }
        let error = failed(modern(), async |post| {
            post.answer(429, "text/plain", "come back\n tomorrow").await;
        })
        .await;
        assert!(error.to_string().contains("come back tomorrow"), "{error}");
        assert!(error.is_retryable());
    })
    .await;
}

#[tokio::test]
async fn a01_a_success_that_is_no_answer() {
    within(async {
        let cases: [(u16, &str, &str); 7] = [
            (202, "text/plain", ""),
            (204, "application/json", ""),
            (200, "text/html", "<html></html>"),
            (200, "text/plain", r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            (200, "application/json", "{}"),
            (200, "application/json", r#"{"jsonrpc":"2.0","id":8,"result":{}}"#),
            (200, "application/json", r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#),
        ];
        for (status, kind, body) in cases {
            let error = failed(modern(), async |post| {
                if status == 204 {
                    post.say("HTTP/1.1 204 No\r\n\r\n").await;
                } else {
                    post.answer(status, kind, body).await;
                }
            })
            .await;
            assert_eq!(error.kind(), ErrorKind::Protocol, "{status} {kind} {body}: {error}");
            assert!(error.maybe_executed(), "{error}");
        }
        let error = failed(modern(), async |post| {
            post.stream().await;
            post.event(json!({"jsonrpc": "2.0", "id": 7, "result": 5, "error": 6})).await;
            post.end().await;
        })
        .await;
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    })
    .await;
}

/// The answers of several calls share one budget. Beyond it a call fails, and the others go on.
#[tokio::test]
async fn law08_answers_that_are_being_read_share_one_budget() {
    within(async {
        let limited = || modern().limits(Limits::default().memory_bytes(50_000));
        for events in [false, true] {
            let mut web = Web::new().await;
            let client = limited().connect(web.url()).await.unwrap();
            let part = "x".repeat(60_000);
            let begin = async |post: &Post| {
                if events {
                    post.stream().await;
                    post.chunk("data: ").await;
                } else {
                    post.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n").await;
                    post.say("transfer-encoding: chunked\r\n\r\n").await;
                }
                let id = &post.body["id"];
                post.chunk(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{part}"#)).await;
            };
            let mut calls = [(); 2].map(|()| launch(client.call_tool("t", ())));
            let posts = [web.post().await, web.post().await];
            for post in &posts {
                begin(post).await;
            }
            // The call that reads second is refused.
            let [one, two] = &mut calls;
            let failed = tokio::select! { failed = one => failed, failed = two => failed };
            let error = failed.unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
            assert!(error.to_string().contains("memory_bytes"), "{error}");
            let other = calls.into_iter().find(|call| !call.is_finished()).unwrap();
            for post in posts.iter().filter(|post| !post.is_closed()) {
                post.chunk(r#""}],"resultType":"complete"}}"#).await;
                if events {
                    post.chunk("\n\n").await;
                }
                post.end().await;
            }
            assert_eq!(other.await.unwrap().unwrap().to_text(), part);
        }
    })
    .await;
}

#[tokio::test]
async fn law08_an_answer_has_its_bounds() {
    within(async {
        let limited = || modern().limits(Limits::default().line_bytes(1000).stream_bytes(5000));
        let long = answer(&"x".repeat(1000));
        let json = failed(limited(), async |post| {
            post.answer(200, "application/json", long.to_string()).await;
        });
        let event = failed(limited(), async |post| {
            post.stream().await;
            post.event(long.clone()).await;
        });
        // It need not end to be too long.
        let endless = failed(limited(), async |post| {
            post.stream().await;
            post.chunk(format!("data: {}", "x".repeat(1000))).await;
        });
        let many = failed(limited(), async |post| {
            post.stream().await;
            for done in 0..100 {
                post.event(progress(post, done)).await;
            }
        });
        let comments = failed(limited(), async |post| {
            post.stream().await;
            for _ in 0..51 {
                post.chunk(format!(":{}\n", "x".repeat(98))).await;
            }
        });
        let named = ["line_bytes", "line_bytes", "line_bytes", "stream_bytes", "stream_bytes"];
        let errors = [json.await, event.await, endless.await, many.await, comments.await];
        for (error, limit) in errors.iter().zip(named) {
            assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
            assert!(error.to_string().contains(limit) && error.maybe_executed(), "{error}");
        }
        // What is just short enough is read, and the connection that brought too much is gone.
        let (result, client, mut web) = answered(limited(), async |post| {
            post.answer(200, "application/json", answer(&"x".repeat(800)).to_string()).await;
        })
        .await;
        assert_eq!(result.unwrap().to_text().len(), 800);
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.stream().await;
        post.chunk(format!("data: {}", "x".repeat(1000))).await;
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Limit);
        post.closed().await;
    })
    .await;
}

/// Makes calls one after another, each answered by the script; how many connections that took.
async fn one_by_one(script: impl AsyncFn(&Post)) -> usize {
    let mut web = Web::new().await;
    let client = client(&web).await;
    for _ in 0..20 {
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        script(&post).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
        settle().await;
    }
    let connections = web.connections();
    assert_eq!(web.ends_with(client).await, 20);
    connections
}

#[tokio::test]
async fn connections_are_used_again() {
    within(async {
        assert_eq!(one_by_one(async |post| post.result(said("ok")).await).await, 1);
        let together = one_by_one(async |post| {
            post.stream().await;
            let last = json!({"jsonrpc": "2.0", "id": post.body["id"], "result": said("ok")});
            let mut bytes = chunk(format!("data: {last}\n\n"));
            bytes.extend_from_slice(b"0\r\n\r\n");
            post.say(bytes).await;
        });
        assert_eq!(together.await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_refusal_spoils_no_connection() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        for _ in 0..20 {
            let call = launch(client.call_tool("t", ()));
            web.post().await.error(400, -32602, Value::Null).await;
            assert_eq!(call.await.unwrap().unwrap_err().status(), Some(400));
            settle().await;
        }
        assert_eq!(web.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_connection_is_used_again_when_the_end_of_its_stream_trails() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        for _ in 0..20 {
            let call = launch(client.call_tool("t", ()));
            let post = web.post().await;
            post.stream().await;
            post.last_event(said("ok")).await;
            // The call has its answer before the stream has its end.
            assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
            post.end().await;
            settle().await;
        }
        assert_eq!(web.connections(), 1);
        // A server that does not end it is not waited for.
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.stream().await;
        post.last_event(said("ok")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
        post.closed().await;
        assert_eq!(web.ends_with(client).await, 21);
    })
    .await;
}

// req: client-transport:http:json-response-parsed
#[tokio::test]
async fn many_calls_are_in_flight_at_once() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let calls: Vec<_> = (0..50).map(|_| launch(client.call_tool("t", ()))).collect();
        let mut posts = Vec::new();
        for _ in 0..50 {
            posts.push(web.post().await);
        }
        for post in posts.iter().rev() {
            post.result(said(&post.body["id"].to_string())).await;
        }
        let mut texts = Vec::new();
        for call in calls {
            texts.push(call.await.unwrap().unwrap().to_text());
        }
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 50, "an answer went to another call");
        assert_eq!(web.ends_with(client).await, 50);
    })
    .await;
}
