//! Whose clocks stand still while this side answers a question: those of the call that it is asked
//! for, and of nobody else where that can be told. The server is a script.

use std::time::Duration;

use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use turnbuckle::{
    Client, ClientBuilder,
    types::{Elicit, ElicitAction, ElicitResult, Era},
};

use crate::{
    client_input::{asks, form},
    raw::{Peer, client_with, said},
    rig::{virtually, within_moved_time},
    session::{Opened, legacy, open},
    web::{Web, launch, settle},
};

const TIME: Duration = Duration::from_secs(30);

/// A client that answers when it is told to, and tells when it is asked.
fn pondering(builder: ClientBuilder) -> (ClientBuilder, mpsc::Receiver<oneshot::Sender<()>>) {
    let (tell, told) = mpsc::channel(4);
    let builder = builder.on_elicitation(move |_: Elicit| {
        let tell = tell.clone();
        async move {
            let (answer, answered) = oneshot::channel();
            tell.send(answer).await.unwrap();
            answered.await.unwrap();
            Ok(ElicitResult::new(ElicitAction::Decline))
        }
    });
    (builder, told)
}

/// The request that is made again with answers.
async fn again(peer: &mut Peer) -> serde_json::Value {
    loop {
        let heard = peer.read().await;
        if heard["params"].get("inputResponses").is_some() {
            return heard;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_before_a_result_stops_the_clock_of_its_call_alone() {
    virtually(async {
        let (builder, mut told) = pondering(Client::builder());
        let (mut peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
        let asking = launch(client.call_tool("asks", ()).timeout(TIME));
        let request = peer.read().await;
        peer.answer(&request, asks(json!({"a": form("a")}), "s")).await;
        let answer = told.recv().await.unwrap();
        let since = Instant::now();
        let other = client.call_tool("other", ()).timeout(TIME).await.unwrap_err();
        assert!(other.is_timeout(), "{other}");
        assert_eq!(since.elapsed().as_secs(), TIME.as_secs());
        let (unanswered, cancelled) = (peer.read().await, peer.read().await);
        assert_eq!(cancelled["params"]["requestId"], unanswered["id"], "{cancelled}");
        tokio::time::advance(10 * TIME).await;
        peer.quiet().await;
        assert!(!asking.is_finished());
        answer.send(()).unwrap();
        let request = again(&mut peer).await;
        peer.answer(&request, said("done")).await;
        assert_eq!(asking.await.unwrap().unwrap().to_text(), "done");
    })
    .await;
}

/// Where several wait for one request, its questions are theirs.
#[tokio::test(start_paused = true)]
async fn what_is_asked_for_several_stops_the_clocks_of_all_of_them() {
    virtually(async {
        let (builder, mut told) = pondering(Client::builder());
        let (mut peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
        let reads =
            [0, 1].map(|_| launch(client.read_resource("a://b").timeout(TIME).idle_timeout(TIME)));
        let request = peer.read().await;
        assert_eq!(request["method"], "resources/read");
        peer.answer(&request, asks(json!({"a": form("a")}), "s")).await;
        let answer = told.recv().await.unwrap();
        tokio::time::advance(10 * TIME).await;
        peer.quiet().await;
        assert!(reads.iter().all(|read| !read.is_finished()));
        answer.send(()).unwrap();
        let request = again(&mut peer).await;
        // From here on they run.
        tokio::time::advance(TIME).await;
        for read in reads {
            assert!(read.await.unwrap().unwrap_err().is_timeout());
        }
        let cancelled = peer.read().await;
        assert_eq!(cancelled["params"]["requestId"], request["id"], "{cancelled}");
    })
    .await;
}

/// Lets time pass.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
    settle().await;
}

#[tokio::test]
async fn what_is_asked_on_the_stream_of_a_call_stops_its_clock_alone() {
    within_moved_time(async {
        let (builder, mut told) = pondering(legacy());
        let mut web = Web::new().await;
        let Opened { client, get, .. } = open(&mut web, builder).await;
        let question = |id: u64| {
            let params =
                json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
            json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
        };
        let asking = launch(client.call_tool("asks", ()).timeout(TIME));
        let post = web.post().await;
        post.stream().await;
        post.event(question(1)).await;
        let answer = told.recv().await.unwrap();
        let other = launch(client.call_tool("other", ()).timeout(TIME));
        web.post().await;
        pass(TIME).await;
        assert!(other.await.unwrap().unwrap_err().is_timeout());
        web.post().await.accept().await;
        assert!(!asking.is_finished());
        // On the server's own stream nobody can tell for whom it asks.
        get.event(question(2)).await;
        let unattributed = told.recv().await.unwrap();
        let third = launch(client.call_tool("third", ()).timeout(TIME));
        let held = web.post().await;
        pass(TIME).await;
        assert!(!asking.is_finished() && !third.is_finished());
        for answer in [answer, unattributed] {
            answer.send(()).unwrap();
            web.post().await.accept().await;
        }
        for (call, post) in [(asking, post), (third, held)] {
            let id = &post.body["id"];
            let end = json!({"jsonrpc": "2.0", "id": id, "result": said("done")});
            if post.body["params"]["name"] == "third" {
                post.result(said("done")).await;
            } else {
                post.event(end).await;
                post.end().await;
            }
            assert_eq!(call.await.unwrap().unwrap().to_text(), "done");
        }
    })
    .await;
}
