//! Owns a client of a server that offers one of everything, and plain ways to ask it.
//! Does not own any expectation.

use serde_json::{Value, json};
use turnbuckle::{
    Client, ClientBuilder, RpcError,
    transport::child_process::Spawn,
    types::{Era, Raw},
};
use turnbuckle_contract::{Fixture, offers};

use crate::rig::{Wire, pinned, program, reach};

pub(crate) struct Offered {
    pub(crate) client: Client,
    pub(crate) era: Era,
}

impl Offered {
    pub(crate) async fn new(wire: Wire, era: Era) -> Offered {
        Offered::with(wire, era, Client::builder()).await
    }

    pub(crate) async fn with(wire: Wire, era: Era, builder: ClientBuilder) -> Offered {
        let fixture = Fixture::default();
        let mut child = program();
        child.args(["--offers", "1"]);
        let builder = builder.revision(pinned(era));
        let server = offers(&fixture);
        let client = reach(wire, builder, (&server, &fixture), Spawn::new(child)).await;
        Offered { client, era }
    }

    /// The result of a request.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let what = format!("{method} {params}");
        match self.client.request(method, params).await {
            Ok(result) => result.decode().unwrap(),
            Err(error) => panic!("{what}: {error}"),
        }
    }

    /// The error that a request is answered with.
    pub(crate) async fn refused(&self, method: &str, params: Value) -> RpcError {
        let what = format!("{method} {params}");
        match self.client.request(method, params).await {
            Ok(result) => panic!("{what}: {}", result.as_str()),
            Err(error) => error.as_rpc().unwrap_or_else(|| panic!("{what}: {error}")).clone(),
        }
    }

    /// The result of a call.
    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// The text that a tool answers with.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments).await;
        assert_ne!(result["isError"], true, "{name}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// What a URI holds.
    pub(crate) async fn read(&self, uri: &str) -> Value {
        self.ask("resources/read", json!({"uri": uri})).await["contents"].take()
    }

    /// What a prompt says.
    pub(crate) async fn prompt(&self, name: &str, arguments: Value) -> Value {
        self.ask("prompts/get", json!({"name": name, "arguments": arguments})).await
    }

    /// How often the handlers of this key ran.
    pub(crate) async fn runs(&self, key: &str) -> String {
        self.text("started", json!({"key": key})).await
    }

    /// What the server says that it can do.
    pub(crate) async fn capabilities(&self) -> Value {
        capabilities(&self.client, self.era).await
    }

    /// The entry of a list whose `member` is `value`.
    pub(crate) async fn listed(&self, list: &str, (member, value): (&str, &str)) -> Value {
        let mut listed = self.ask(list, json!({})).await;
        let items = listed.as_object_mut().unwrap().values_mut().find_map(Value::as_array_mut);
        let mut found = items.unwrap().drain(..).filter(|item| item[member] == value);
        let only = found.next().unwrap_or_else(|| panic!("no {value} in {list}"));
        assert_eq!(found.next(), None, "{value} is listed once");
        only
    }
}

/// What a server says that it can do.
pub(crate) async fn capabilities(client: &Client, era: Era) -> Value {
    match era {
        Era::Legacy => serde_json::to_value(client.server_capabilities().unwrap()).unwrap(),
        _ => serde_json::to_value(client.discover().await.unwrap().capabilities).unwrap(),
    }
}

/// What came with an error.
pub(crate) fn data(error: &RpcError) -> Value {
    error.data.as_ref().map(Raw::decode).transpose().unwrap().unwrap_or_default()
}
