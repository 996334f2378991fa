//! Layers around resources, and whoever wants to hear of those.

use std::future::IntoFuture as _;

use serde_json::json;
use tokio::sync::watch;
use turnbuckle::{
    Client, Revision, RpcError, Server,
    middleware::{
        Response,
        server::{Next, Request},
    },
    resource,
    server::Group,
    subscribe::{Event, Filter},
    template, tool,
};

use crate::support::{Guard, LEGACY, Log, MODERN, WAYS, Wire, connect};

async fn done() -> &'static str {
    "done"
}

/// The ways of the era that has streams of changes.
fn modern() -> impl Iterator<Item = Wire> {
    WAYS.into_iter().filter(|(_, revision)| *revision == MODERN).map(|(wire, _)| wire)
}

/// Which of these someone may hear of.
async fn granted(client: &Client, uris: &[&str]) -> Vec<String> {
    let watch = uris.iter().fold(Filter::new(), |watch, uri| watch.resource(*uri));
    let listening = client.listen(watch).await.unwrap();
    listening.granted().resource_subscriptions.clone().unwrap_or_default()
}

/// Which of these someone may hear of in either era, asked as that era asks.
async fn heard_of(client: &Client, revision: Revision, uris: &[&str]) -> Vec<String> {
    if revision == MODERN {
        return granted(client, uris).await;
    }
    let mut heard_of = Vec::new();
    for uri in uris {
        if client.request("resources/subscribe", json!({"uri": uri})).await.is_ok() {
            heard_of.push((*uri).to_owned());
        }
    }
    heard_of
}

/// What a request for one resource is, in each era.
fn method(revision: Revision) -> &'static str {
    if revision == MODERN { "subscriptions/listen" } else { "resources/subscribe" }
}

#[tokio::test]
async fn nobody_hears_of_what_a_layer_refuses() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let refusing = || Guard::refusing(-32_050, &log);
        let server = Server::new("test", "1")
            .resource(resource("test://one", done).layer(refusing()))
            .template(template("test://{id}/x", done).layer(refusing()))
            .group(Group::new().resource(resource("test://two", done)).layer(refusing()))
            .resource(resource("test://three", done));
        let client = connect(&server, wire, revision).await;
        let uris = ["test://one", "test://7/x", "test://three", "test://two"];
        let heard_of = heard_of(&client, revision, &uris).await;
        assert_eq!(heard_of, ["test://three"], "{wire:?} {revision}");
        assert_eq!(log.take(), [method(revision); 3], "{wire:?}");
        if revision == LEGACY {
            let refused = client.request("resources/subscribe", json!({"uri": "test://one"})).await;
            assert_eq!(refused.unwrap_err().as_rpc().unwrap().code, -32_050, "{wire:?}");
        }
    }
}

#[tokio::test]
async fn what_is_not_granted_is_not_told_and_what_is_granted_is() {
    let log = Log::default();
    let server = Server::new("test", "1")
        .resource(resource("test://one", done).layer(Guard::refusing(7, &log)))
        .resource(resource("test://two", done));
    for wire in modern() {
        let client = connect(&server, wire, MODERN).await;
        let watch = Filter::new().resource("test://one").resource("test://two");
        let mut listening = client.listen(watch).await.unwrap();
        for uri in ["test://one", "test://two"] {
            server.changes().resource(uri);
        }
        let told = listening.next().await.unwrap().unwrap();
        assert_eq!(told, Event::ResourceUpdated("test://two".to_owned()), "{wire:?}");
    }
}

#[tokio::test]
async fn each_resource_passes_the_layers_of_server_group_and_its_own() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let around = |name| Guard::telling(name, &log);
        let group = Group::new()
            .layer(around("group"))
            .resource(resource("test://one", done).layer(around("resource")))
            .template(template("test://{id}/x", done).layer(around("template")));
        let server = Server::new("test", "1")
            .layer(around("server"))
            .group(group)
            .resource(resource("test://two", done));
        let client = connect(&server, wire, revision).await;
        log.take();
        let uris = ["test://two", "test://one", "test://7/x"];
        assert_eq!(heard_of(&client, revision, &uris).await, uris, "{wire:?} {revision}");
        let method = method(revision);
        let mut passed = log.take();
        if revision == MODERN {
            // The stream itself, before what it names.
            assert_eq!(passed.remove(0), "server: subscriptions/listen -", "{wire:?}");
        }
        let expected = [
            ("server", "test://two"),
            ("server", "test://one"),
            ("group", "test://one"),
            ("resource", "test://one"),
            ("server", "test://7/x"),
            ("group", "test://7/x"),
            ("template", "test://7/x"),
        ];
        let expected = expected.map(|(layer, uri)| format!("{layer}: {method} {uri}"));
        assert_eq!(passed, expected, "{wire:?} {revision}");
    }
}

#[tokio::test]
async fn a_layer_of_the_server_refuses_one_resource_of_a_stream() {
    let secret = tower_layer::layer_fn(|next: Next| {
        tower::service_fn(move |request: Request| {
            let mut next = next.clone();
            async move {
                if request.name() == Some("test://secret") {
                    return Err(RpcError::new(7, "nobody may"));
                }
                tower_service::Service::call(&mut next, request).await
            }
        })
    });
    let server = Server::new("test", "1")
        .layer(secret)
        .resource(resource("test://secret", done))
        .resource(resource("test://open", done));
    for (wire, revision) in WAYS {
        let client = connect(&server, wire, revision).await;
        let heard_of = heard_of(&client, revision, &["test://secret", "test://open"]).await;
        assert_eq!(heard_of, ["test://open"], "{wire:?} {revision}");
    }
}

/// Neither an answer that a layer makes up nor a panic is a way to a resource.
#[tokio::test]
async fn only_what_passes_every_layer_is_granted() {
    let made_up = tower_layer::layer_fn(|_: Next| {
        tower::service_fn(async |_: Request| Ok::<_, RpcError>(Response::new(json!({}))))
    });
    let panics = tower_layer::layer_fn(|_: Next| {
        tower::service_fn(async |request: Request| -> Result<Response, RpcError> {
            panic!("on purpose, at {:?}", request.name())
        })
    });
    let late = tower_layer::layer_fn(|next: Next| {
        tower::service_fn(move |request: Request| {
            let mut next = next.clone();
            async move {
                tower_service::Service::call(&mut next, request).await?;
                Err::<Response, _>(RpcError::new(7, "too late"))
            }
        })
    });
    let server = Server::new("test", "1")
        .resource(resource("test://made-up", done).layer(made_up))
        .resource(resource("test://panics", done).layer(panics))
        .resource(resource("test://late", done).layer(late))
        .resource(resource("test://open", done));
    for wire in modern() {
        let client = connect(&server, wire, MODERN).await;
        let uris = ["test://made-up", "test://panics", "test://late", "test://open"];
        assert_eq!(granted(&client, &uris).await, ["test://open"], "{wire:?}");
    }
}

#[tokio::test]
async fn a_layer_that_takes_its_time_keeps_nobody_else_waiting() {
    for wire in modern() {
        let (open, gate) = watch::channel(false);
        let waits = tower_layer::layer_fn(move |next: Next| {
            let gate = gate.clone();
            tower::service_fn(move |request: Request| {
                let (mut next, mut gate) = (next.clone(), gate.clone());
                async move {
                    gate.wait_for(|open| *open).await.unwrap();
                    tower_service::Service::call(&mut next, request).await
                }
            })
        });
        let server = Server::new("test", "1")
            .resource(resource("test://one", done).layer(waits))
            .tool(tool("t", done));
        let client = connect(&server, wire, MODERN).await;
        let mut listening =
            Box::pin(client.listen(Filter::new().resource("test://one")).into_future());
        let called = client.call_tool("t", json!({})).into_future();
        let told = tokio::select! {
            biased;
            _ = &mut listening => panic!("it listens past its layer: {wire:?}"),
            told = called => told.unwrap(),
        };
        assert_eq!(told.to_text(), "done", "{wire:?}");
        open.send(true).unwrap();
        let granted = listening.await.unwrap().granted().resource_subscriptions.clone();
        assert_eq!(granted.unwrap(), ["test://one"], "{wire:?}");
    }
}
