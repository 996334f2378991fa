//! Servers at an address that can't be reached for a while.

use std::{future::IntoFuture, net::SocketAddr, time::Duration};

use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use turnbuckle::{
    Client, ClientBuilder, ErrorKind, Limits,
    client::{ConnectionState, Reconnect, Retry},
    types::Era,
};
use turnbuckle_contract::{Fixture, server};
use turnbuckle_host::{ClientGroup, Status};

use crate::{
    raw::said,
    rig::{pinned, within},
    web::{Web, launch, modern, settle},
};

/// A server that can be stopped, and started again at the same address.
struct Place {
    address: SocketAddr,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Place {
    async fn new() -> Place {
        let mut place = Place { address: ([127, 0, 0, 1], 0).into(), running: None };
        place.start().await;
        place
    }

    async fn start(&mut self) {
        let (stop, stopped) = oneshot::channel();
        let serving = server(&Fixture::default(), Limits::default()).serve_http(self.address);
        let serving = serving.with_shutdown(async {
            let _ = stopped.await;
        });
        let bound = serving.bind().await.unwrap();
        self.address = bound.local_addr().unwrap();
        let task = tokio::spawn(async {
            bound.into_future().await.unwrap();
        });
        self.running = Some((stop, task));
    }

    async fn stop(&mut self) {
        let (stop, task) = self.running.take().unwrap();
        stop.send(()).unwrap();
        task.await.unwrap();
    }

    async fn client(&self, builder: ClientBuilder) -> Client {
        builder.no_proxy().connect(format!("http://{}/mcp", self.address)).await.unwrap()
    }
}

/// Tries often and soon.
fn patient() -> Reconnect {
    let pause = Duration::from_millis(20);
    Reconnect::new().attempts(1000).first_pause(pause).longest_pause(pause)
}

/// Gives up soon.
fn hasty() -> Reconnect {
    Reconnect::new().attempts(2).first_pause(Duration::from_millis(1))
}

async fn reconnecting(client: &Client) {
    let mut states = client.states();
    while !matches!(states.next().await, Some(ConnectionState::Reconnecting { .. })) {}
}

async fn echo(client: &Client) -> turnbuckle::Result<String> {
    let result = client.call_tool("echo", json!({"text": "here"})).await;
    result.map(|result| result.to_text())
}

#[tokio::test]
async fn calls_wait_until_the_server_is_back_in_either_era_pinned_or_not() {
    within(async {
        for era in [Some(Era::Legacy), Some(Era::Modern), None] {
            let mut place = Place::new().await;
            let mut builder = Client::builder().reconnect(patient());
            if let Some(era) = era {
                builder = builder.revision(pinned(era));
            }
            let client = place.client(builder).await;
            assert_eq!(echo(&client).await.unwrap(), "here");
            place.stop().await;
            let calls: Vec<_> = (0..10)
                .map(|_| launch(client.call_tool("echo", json!({"text": "here"}))))
                .collect();
            reconnecting(&client).await;
            place.start().await;
            for call in calls {
                assert_eq!(call.await.unwrap().unwrap().to_text(), "here", "{era:?}");
            }
            assert!(matches!(client.state(), ConnectionState::Ready { .. }), "{era:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stays_away_fails_calls_but_not_the_client() {
    within(async {
        for era in [Era::Legacy, Era::Modern] {
            let mut place = Place::new().await;
            let builder = Client::builder().revision(pinned(era)).reconnect(hasty());
            let client = place.client(builder).await;
            assert_eq!(echo(&client).await.unwrap(), "here");
            place.stop().await;
            for _ in 0..2 {
                let error = echo(&client).await.unwrap_err();
                assert!(error.is_closed() && !error.maybe_executed(), "{error}");
                assert!(error.to_string().contains("the call was not sent"), "{error}");
                assert!(matches!(client.state(), ConnectionState::Unreachable { .. }));
            }
            place.start().await;
            assert_eq!(echo(&client).await.unwrap(), "here");
            assert!(matches!(client.state(), ConnectionState::Ready { .. }));
        }
    })
    .await;
}

/// Nobody looks for it before somebody calls: a group says so, and not that it is being looked for.
#[tokio::test]
async fn a_group_tells_that_a_server_can_not_be_reached() {
    within(async {
        let mut place = Place::new().await;
        let client = place.client(modern().reconnect(hasty())).await;
        assert_eq!(echo(&client).await.unwrap(), "here");
        let group = ClientGroup::new();
        group.add("away", client.clone()).unwrap();
        let mut health = group.health();
        assert_eq!(health.next().await.unwrap().status, Status::Ready);
        place.stop().await;
        let call = launch(client.call_tool("echo", json!({"text": "here"})));
        let why = loop {
            match health.next().await.unwrap().status {
                Status::Reconnecting => {}
                Status::Unreachable(why) => break why,
                other => panic!("{other:?}"),
            }
        };
        assert!(why.contains("could not be made again"), "{why}");
        call.await.unwrap().unwrap_err();
        place.start().await;
        assert_eq!(echo(&client).await.unwrap(), "here");
        while health.next().await.unwrap().status != Status::Ready {}
    })
    .await;
}

/// A call that does not wait still has the client find out that the server is back.
#[tokio::test]
async fn a_call_that_wants_no_retry_is_made_at_once() {
    within(async {
        let mut place = Place::new().await;
        let client = place.client(modern().reconnect(hasty())).await;
        assert_eq!(echo(&client).await.unwrap(), "here");
        place.stop().await;
        let once = || client.call_tool("echo", json!({"text": "here"})).retry(Retry::Never);
        let error = once().await.unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
        assert!(matches!(client.state(), ConnectionState::Ready { .. }), "nobody was to look");
        echo(&client).await.unwrap_err();
        place.start().await;
        assert_eq!(once().await.unwrap().to_text(), "here");
        let mut states = client.states();
        while !matches!(states.next().await, Some(ConnectionState::Ready { .. })) {}
    })
    .await;
}

#[tokio::test]
async fn without_reconnects_each_call_stands_for_itself() {
    within(async {
        let mut place = Place::new().await;
        let client = place.client(modern().reconnect(Reconnect::never())).await;
        place.stop().await;
        assert!(echo(&client).await.unwrap_err().is_closed());
        place.start().await;
        assert_eq!(echo(&client).await.unwrap(), "here");
        assert!(matches!(client.state(), ConnectionState::Ready { generation: 1, .. }));
    })
    .await;
}

#[tokio::test]
async fn a_first_connection_that_is_refused_is_not_tried_again() {
    within(async {
        let mut place = Place::new().await;
        place.stop().await;
        let builder = Client::builder().no_proxy().reconnect(patient());
        let url = format!("http://{}/mcp", place.address);
        let error = builder.connect(url).await.unwrap_err();
        assert!(error.to_string().contains("can't reach"), "{error}");
        // With a pinned revision the first call is the first that is said.
        let client = place.client(modern().reconnect(patient())).await;
        let error = echo(&client).await.unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
        assert!(matches!(client.state(), ConnectionState::Ready { generation: 1, .. }));
    })
    .await;
}

/// However many calls wait, one request finds out that the server is back.
#[tokio::test]
async fn many_calls_wait_for_one_that_asks() {
    within(async {
        let (mut web, listener) = Web::unserved();
        let client = modern().reconnect(patient()).connect(web.url()).await.unwrap();
        let call = launch(client.call_tool("t", ()));
        web.hub().take(listener.accept().await.unwrap().0);
        let post = web.post().await;
        post.result(said("ok")).await;
        call.await.unwrap().unwrap();
        post.hang_up().await;
        post.closed().await;
        drop(listener);
        let calls: Vec<_> = (0..50).map(|_| launch(client.call_tool("t", ()))).collect();
        reconnecting(&client).await;
        // All of them have found out, too.
        settle().await;
        let (hub, listener) = (web.hub(), TcpListener::bind(web.address()).await.unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                hub.take(stream);
            }
        });
        let probe = web.post().await;
        assert_eq!(probe.method(), "server/discover");
        settle().await;
        assert!(!web.has_more(), "somebody did not wait");
        probe.error(200, -32601, serde_json::Value::Null).await;
        for _ in 0..50 {
            let post = web.post().await;
            assert_eq!(post.method(), "tools/call");
            post.result(said("ok")).await;
        }
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
        }
        assert!(!web.has_more());
    })
    .await;
}

/// What a gateway says when it finds nobody behind it.
#[tokio::test]
async fn a_gateway_without_a_server_is_an_error_unless_a_repetition_does_no_harm() {
    within(async {
        let mut web = Web::new().await;
        let client = modern().reconnect(patient()).connect(web.url()).await.unwrap();
        let unavailable = "HTTP/1.1 503 Unavailable\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n";
        for call in [
            launch(client.call_tool("t", ()).retry(Retry::Idempotent)),
            launch(client.call_tool("t", ())),
        ] {
            web.post().await.say(unavailable).await;
            let error = call.await.unwrap().unwrap_err();
            assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(503)));
            assert!(error.maybe_executed());
            assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        }
        let list = launch(client.list_tools().retry(Retry::Idempotent));
        web.post().await.say(unavailable).await;
        // The first that is asked is still the gateway.
        let probe = web.post().await;
        assert_eq!(probe.method(), "server/discover");
        probe.answer(502, "text/plain", "").await;
        let probe = web.post().await;
        assert_eq!(probe.method(), "server/discover");
        probe.error(200, -32601, serde_json::Value::Null).await;
        let post = web.post().await;
        assert_eq!(post.method(), "tools/list");
        post.result(
            json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}),
        )
        .await;
        assert!(list.await.unwrap().unwrap().tools.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_call_that_was_cancelled_is_not_made_again() {
    within(async {
        let mut web = Web::new().await;
        let client = modern().reconnect(patient()).connect(web.url()).await.unwrap();
        let list = launch(client.list_tools().request_id(7).retry(Retry::Idempotent));
        web.post().await;
        client.notify("notifications/cancelled", json!({"requestId": 7})).await.unwrap();
        let error = list.await.unwrap().unwrap_err();
        assert!(error.maybe_executed(), "{error}");
        settle().await;
        assert!(!web.has_more());
        assert!(matches!(client.state(), ConnectionState::Ready { generation: 1, .. }));
    })
    .await;
}
