//! What stands around a listen stream, in both eras: its opening, and all that is sent for it.

use std::sync::Arc;

use serde_json::json;
use tower::{buffer::BufferLayer, limit::ConcurrencyLimitLayer};
use turnbuckle::{
    Client, ErrorKind, RpcError, Server,
    middleware::{Response, client::Request},
    resource,
    subscribe::{Event, Filter},
    types::Era,
};

use crate::{
    support::Doing,
    watched::Numbers,
    ways::{LEGACY, Log, MODERN, WAYS, Wire, connect, eventually},
};

const NOTE: &str = "note://7";

fn noting() -> Server {
    Server::new("test", "1").resource(resource(NOTE, async || "a note"))
}

#[tokio::test]
async fn the_opening_of_a_stream_and_what_is_sent_for_it_pass_layers() {
    for way in WAYS {
        let (log, numbers) = (Log::default(), Arc::new(Numbers::default()));
        let server = noting();
        let builder = Client::builder().layer(Doing::telling("", &log)).metrics(numbers.clone());
        let client = connect(builder, &server, way).await;
        let watch = Filter::new().resources().resource(NOTE);
        let mut listening = client.listen(watch).await.unwrap();
        let (begun, ended): (&[&str], &[&str]) = match way.1.era() {
            Era::Legacy => (
                &[": subscriptions/listen -", ": resources/subscribe note://7"],
                &[": resources/unsubscribe note://7"],
            ),
            _ => (&[": subscriptions/listen -"], &[]),
        };
        assert_eq!(log.take(), begun, "{way:?}");
        server.changes().resource(NOTE);
        let happened = listening.next().await.unwrap().unwrap();
        assert_eq!(happened, Event::ResourceUpdated(NOTE.into()), "{way:?}");
        drop(listening);
        eventually(|| numbers.finished.len() == begun.len() + ended.len()).await;
        assert_eq!(log.take(), ended, "{way:?}");
        let counted: Vec<_> = begun
            .iter()
            .chain(ended)
            .map(|line| line.trim_start_matches(": ").split(' ').next().unwrap())
            .map(|method| format!("{method} - ok true"))
            .collect();
        assert_eq!(numbers.finished.take(), counted, "{way:?}");
    }
}

#[tokio::test]
async fn a_layer_can_refuse_a_stream_and_what_is_sent_for_it() {
    for way in WAYS {
        let server = noting();
        let refusing = |refused: &'static str| {
            Doing::new(move |request| match request.method() == refused {
                true => Err(Err(RpcError::new(77, "no"))),
                false => Ok(request),
            })
        };
        let builder = Client::builder().layer(refusing("subscriptions/listen"));
        let client = connect(builder, &server, way).await;
        let refused = client.listen(Filter::new().resources()).await.unwrap_err();
        assert_eq!(refused.as_rpc().unwrap().code, 77, "{way:?}");
        assert!(!refused.maybe_executed(), "{way:?}");
        if way.1.era() == Era::Legacy {
            let builder = Client::builder().layer(refusing("resources/subscribe"));
            let client = connect(builder, &server, way).await;
            let watch = Filter::new().resources().resource(NOTE);
            let listening = client.listen(watch).await.unwrap();
            let granted = serde_json::to_value(listening.granted()).unwrap();
            assert_eq!(granted, json!({"resourcesListChanged": true}), "{way:?}");
        }
    }
}

#[tokio::test]
async fn a_layer_can_change_what_is_listened_for_but_not_answer_it() {
    for way in WAYS {
        let server = noting();
        let changing = Doing::new(|mut request| {
            if request.method() == "subscriptions/listen" {
                let fewer = json!({"notifications": {"resourceSubscriptions": [NOTE]}});
                request.set_params(fewer).unwrap();
            }
            Ok(request)
        });
        let client = connect(Client::builder().layer(changing), &server, way).await;
        let listening = client.listen(Filter::new().resources()).await.unwrap();
        let granted = serde_json::to_value(listening.granted()).unwrap();
        assert_eq!(granted, json!({"resourceSubscriptions": [NOTE]}), "{way:?}");
        let answering = Doing::new(|_| Err(Ok(Response::new(json!({"notifications": {}})))));
        let client = connect(Client::builder().layer(answering), &server, way).await;
        let error = client.listen(Filter::new().resources()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{way:?}: {error}");
    }
}

/// What is sent for a stream has to get through after its opening, not within it.
#[tokio::test]
async fn one_call_at_a_time_is_enough_for_a_stream() {
    for way in [(Wire::Memory, MODERN), (Wire::Memory, LEGACY), (Wire::Http, LEGACY)] {
        let server = noting();
        let builder =
            Client::builder()
                .layer(ConcurrencyLimitLayer::new(1))
                .layer(BufferLayer::<Request>::new(4));
        let client = connect(builder, &server, way).await;
        let opening = client.listen(Filter::new().resource(NOTE));
        let bound = std::time::Duration::from_secs(20);
        let listening = tokio::time::timeout(bound, opening).await.expect("it waits for itself");
        assert_eq!(listening.unwrap().granted().resource_subscriptions, Some(vec![NOTE.into()]));
    }
}

/// What a caller adds to the opening goes with whatever is sent for it.
#[tokio::test]
async fn what_is_said_with_a_stream_is_sent_with_it() {
    for way in WAYS {
        let log = Log::default();
        let seen = log.clone();
        let looks = Doing::new(move |request| {
            let own = request.meta().value("example.com/own").map(|own| own.as_str().to_owned());
            let header = request.header("x-own").map(|own| own.to_str().unwrap().to_owned());
            seen.add(format!("{} {own:?} {header:?}", request.method()));
            Ok(request)
        });
        let client = connect(Client::builder().layer(looks), &noting(), way).await;
        let listening = client
            .listen(Filter::new().resource(NOTE))
            .meta("example.com/own", json!(7))
            .header("x-own", "eight")
            .await
            .unwrap();
        let sent = log.take();
        assert_eq!(sent[0], r#"subscriptions/listen Some("7") Some("eight")"#, "{way:?}");
        if way.1.era() == Era::Legacy {
            assert_eq!(sent[1], r#"resources/subscribe Some("7") Some("eight")"#, "{way:?}");
        }
        drop(listening);
        let wrong = client.listen(Filter::new().resource(NOTE)).header("mcp-method", "x").await;
        assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Refused, "{way:?}");
    }
}
