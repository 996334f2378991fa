//! What a server offers while it runs, as clients hear of it; and a directory, which changes by
//! itself. Owns the way to a server of a test's own, too.

use serde_json::{Value, json};
use tokio::sync::mpsc;
use turnbuckle::{
    Client, ClientBuilder, RpcError, Server, prompt, resource,
    subscribe::{Event, Filter, Listening},
    template, tool,
    types::{Era, PromptArgument},
};

use crate::rig::{Wire, contract, pinned};

contract! { late unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: mcpserver:register:post-connect, mcpserver:list-changed:debounce, tools:list-changed
    what_is_added_later_is_offered_and_told_once,
}

contract! { handles unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: mcpserver:handle:enable-disable, mcpserver:tool:handle-update, mcpserver:resource:handle-update-remove, mcpserver:prompt:handle-update-remove, prompts:list-changed, resources:list-changed
    a_handle_replaces_hides_and_removes,
}

contract! { streams unconnected on [memory unix direct http] in [modern]:
    // req: tools:listen:list-changed, prompts:listen:list-changed, resources:listen:list-changed
    a_stream_tells_of_every_list_that_changed,
}

contract! { directories unconnected on [memory unix direct http sse] in [legacy modern]:
    a_directory_is_served_and_nothing_outside_of_it,
}

/// A client of a server of one's own.
pub(crate) async fn connected(server: &Server, wire: Wire, era: Era) -> Client {
    connect(Client::builder(), server, wire, era).await
}

pub(crate) async fn connect(
    builder: ClientBuilder,
    server: &Server,
    wire: Wire,
    era: Era,
) -> Client {
    let builder = builder.revision(pinned(era));
    let client = match wire {
        Wire::Memory => {
            let (ours, theirs) = tokio::io::duplex(4096);
            tokio::spawn(server.serve(theirs).into_future());
            builder.over(ours).await
        }
        Wire::Unix => {
            let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
            tokio::spawn(server.serve(theirs).into_future());
            builder.over(ours).await
        }
        Wire::Direct => builder.in_process(server).await,
        Wire::Http | Wire::Sse => {
            let bound = server.serve_http("127.0.0.1:0").with_sse("/sse").bind().await.unwrap();
            let url = match wire {
                Wire::Sse => bound.url().replace("/mcp", "/sse"),
                _ => bound.url(),
            };
            tokio::spawn(bound.into_future());
            builder.no_proxy().connect(url).await
        }
        Wire::Stdio => panic!("a process has a server of its own"),
    };
    client.unwrap()
}

/// The result of a request.
pub(crate) async fn asked(client: &Client, method: &str, params: Value) -> Value {
    let result = client.request(method, &params).await;
    result.unwrap_or_else(|error| panic!("{method} {params}: {error}")).decode().unwrap()
}

/// The error of a request.
pub(crate) async fn refused(client: &Client, method: &str, params: Value) -> RpcError {
    match client.request(method, &params).await {
        Ok(result) => panic!("{method} {params}: {result}"),
        Err(error) => error.as_rpc().unwrap_or_else(|| panic!("{error}")).clone(),
    }
}

/// What a client hears of, in either era.
pub(crate) enum Heard {
    Legacy(mpsc::Receiver<String>),
    Modern(Box<Listening>),
}

impl Heard {
    /// A client that hears of every list and, in the modern era, of these resources.
    pub(crate) async fn connect(
        server: &Server,
        wire: Wire,
        era: Era,
        uris: impl IntoIterator<Item = &str>,
    ) -> (Client, Heard) {
        Heard::connect_as(Client::builder(), server, (wire, era), uris).await
    }

    /// The same with settings of one's own.
    pub(crate) async fn connect_as(
        builder: ClientBuilder,
        server: &Server,
        (wire, era): (Wire, Era),
        uris: impl IntoIterator<Item = &str>,
    ) -> (Client, Heard) {
        let (sender, receiver) = mpsc::channel(64);
        let builder = builder.on_notification(move |method, params| {
            let uri =
                || params.unwrap().decode::<Value>().unwrap()["uri"].as_str().unwrap().to_owned();
            let heard = match method {
                "notifications/tools/list_changed" => "tools".to_owned(),
                "notifications/prompts/list_changed" => "prompts".to_owned(),
                "notifications/resources/list_changed" => "resources".to_owned(),
                "notifications/resources/updated" => uri(),
                _ => return,
            };
            sender.try_send(heard).unwrap();
        });
        let client = connect(builder, server, wire, era).await;
        let heard = match era {
            Era::Legacy => Heard::Legacy(receiver),
            _ => {
                let watch = Filter::new().tools().prompts().resources();
                let watch = uris.into_iter().fold(watch, Filter::resource);
                Heard::Modern(Box::new(client.listen(watch).await.unwrap()))
            }
        };
        (client, heard)
    }

    pub(crate) async fn next(&mut self) -> String {
        match self {
            Heard::Legacy(receiver) => receiver.recv().await.unwrap(),
            Heard::Modern(listening) => match listening.next().await.unwrap().unwrap() {
                Event::ToolsChanged => "tools".to_owned(),
                Event::PromptsChanged => "prompts".to_owned(),
                Event::ResourcesChanged => "resources".to_owned(),
                Event::ResourceUpdated(uri) => uri,
                other => panic!("{other:?}"),
            },
        }
    }

    /// The resources that a stream was granted.
    pub(crate) fn granted(&self) -> Option<Vec<String>> {
        match self {
            Heard::Legacy(_) => None,
            Heard::Modern(listening) => listening.granted().resource_subscriptions.clone(),
        }
    }
}

/// How many things a list has.
async fn count(client: &Client, method: &str, list: &str) -> usize {
    asked(client, method, json!({})).await[list].as_array().unwrap().len()
}

async fn what_is_added_later_is_offered_and_told_once(wire: Wire, era: Era) {
    let server = Server::new("s", "1");
    let registry = server.registry().unwrap();
    let (client, mut heard) = Heard::connect(&server, wire, era, []).await;
    assert!(client.server_capabilities().is_none_or(|able| able.tools.is_some()));
    assert_eq!(count(&client, "tools/list", "tools").await, 0);
    for number in 0..50 {
        registry.add_tool(tool(format!("t{number}"), async || "called")).unwrap();
    }
    assert_eq!(heard.next().await, "tools");
    assert_eq!(count(&client, "tools/list", "tools").await, 50);
    let called = asked(&client, "tools/call", json!({"name": "t49"})).await;
    assert_eq!(called["content"][0]["text"], "called");
    let p = prompt("p", async || "got").argument(PromptArgument::new("x"));
    registry.add_prompt(p.complete_values("x", ["y"])).unwrap();
    assert_eq!(heard.next().await, "prompts", "a burst is told once");
    assert_eq!(count(&client, "prompts/list", "prompts").await, 1);
    asked(&client, "prompts/get", json!({"name": "p"})).await;
    registry.add_resource(resource("x:1", async || "read")).unwrap();
    registry.add_template(template("y://{id}", async || "read")).unwrap();
    assert_eq!(heard.next().await, "resources");
    for uri in ["x:1", "y://1"] {
        let read = asked(&client, "resources/read", json!({"uri": uri})).await;
        assert_eq!(read["contents"][0]["text"], "read");
    }
    assert_eq!(count(&client, "resources/templates/list", "resourceTemplates").await, 1);
}

async fn a_handle_replaces_hides_and_removes(wire: Wire, era: Era) {
    let server = Server::new("s", "1")
        .tool(tool("t", async || "old"))
        .prompt(prompt("p", async || "old"))
        .resource(resource("x:1", async || "old"))
        .template(template("y://{id}", async || "old"));
    let registry = server.registry().unwrap();
    let (client, mut heard) = Heard::connect(&server, wire, era, []).await;
    macro_rules! lived_through {
        ($kind:ident $name:literal $new:expr, $list:literal $member:literal, $told:literal,
         $method:literal $params:tt $said:literal) => {{
            let handle = registry.$kind($name).unwrap();
            let params = json!($params);
            let old = asked(&client, $method, params.clone()).await;
            assert_eq!(old.pointer($said), Some(&json!("old")), "{old}");
            handle.replace($new).unwrap();
            assert_eq!(heard.next().await, $told);
            let new = asked(&client, $method, params.clone()).await;
            assert_eq!(new.pointer($said), Some(&json!("new")), "{new}");
            let list = asked(&client, $list, json!({})).await;
            assert_eq!(list[$member][0]["description"], "New.");
            handle.disable();
            assert_eq!(heard.next().await, $told);
            assert_eq!(count(&client, $list, $member).await, 0);
            refused(&client, $method, params.clone()).await;
            handle.enable();
            assert_eq!(heard.next().await, $told);
            assert_eq!(count(&client, $list, $member).await, 1);
            asked(&client, $method, params.clone()).await;
            handle.remove();
            assert_eq!(heard.next().await, $told);
            assert_eq!(count(&client, $list, $member).await, 0);
            refused(&client, $method, params).await;
        }};
    }
    lived_through!(tool "t" tool("t", async || "new").description("New."),
        "tools/list" "tools", "tools", "tools/call" {"name": "t"} "/content/0/text");
    lived_through!(prompt "p" prompt("p", async || "new").description("New."),
        "prompts/list" "prompts", "prompts", "prompts/get" {"name": "p"} "/messages/0/content/text");
    lived_through!(resource "x:1" resource("x:1", async || "new").description("New."),
        "resources/list" "resources", "resources",
        "resources/read" {"uri": "x:1"} "/contents/0/text");
    lived_through!(template "y://{id}" template("y://{id}", async || "new").description("New."),
        "resources/templates/list" "resourceTemplates", "resources",
        "resources/read" {"uri": "y://1"} "/contents/0/text");
}

async fn a_stream_tells_of_every_list_that_changed(wire: Wire, era: Era) {
    let server = Server::new("s", "1");
    let registry = server.registry().unwrap();
    let (_client, mut heard) = Heard::connect(&server, wire, era, []).await;
    registry.add_template(template("y://{id}", async || "")).unwrap();
    registry.add_prompt(prompt("p", async || "")).unwrap();
    registry.add_tool(tool("t", async || ())).unwrap();
    let told = [heard.next().await, heard.next().await, heard.next().await];
    assert_eq!(told, ["tools", "prompts", "resources"]);
}

/// A directory that goes when the test does.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new(wire: Wire, era: Era) -> Directory {
        let name = format!("turnbuckle-served-{}-{wire:?}-{era:?}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(path.join("docs/guide")).unwrap();
        Directory(path)
    }

    fn write(&self, path: &str, text: &[u8]) {
        std::fs::write(self.0.join(path), text).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn a_directory_is_served_and_nothing_outside_of_it(wire: Wire, era: Era) {
    let directory = Directory::new(wire, era);
    for path in ["secret.txt", "docs/.hidden", "docs/guide/start.md", "docs/100%41 #1?.txt"] {
        directory.write(path, path.as_bytes());
    }
    directory.write("docs/dot.png", &[0x89, 0x50]);
    #[cfg(unix)]
    std::os::unix::fs::symlink(directory.0.join("secret.txt"), directory.0.join("docs/link"))
        .unwrap();
    let server = Server::new("s", "1").directory("docs://all/", directory.0.join("docs"));
    let client = connected(&server, wire, era).await;
    let listed = asked(&client, "resources/list", json!({})).await;
    let uris: Vec<_> = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["uri"].as_str().unwrap())
        .collect();
    let odd = "docs://all/100%2541%20%231%3F.txt";
    assert_eq!(uris, [odd, "docs://all/dot.png", "docs://all/guide/start.md"]);
    assert_eq!(listed["resources"][2]["mimeType"], "text/markdown");
    assert_eq!(
        (&listed["resources"][2]["name"], &listed["resources"][1]["size"]),
        (&json!("start.md"), &json!(2))
    );
    for (uri, text) in [(odd, "docs/100%41 #1?.txt"), (uris[2], "docs/guide/start.md")] {
        let read = asked(&client, "resources/read", json!({"uri": uri})).await;
        assert_eq!(
            (&read["contents"][0]["text"], &read["contents"][0]["uri"]),
            (&json!(text), &json!(uri))
        );
    }
    let read = asked(&client, "resources/read", json!({"uri": uris[1]})).await;
    assert_eq!(read["contents"][0]["blob"], "iVA=");
    for path in [
        "../secret.txt",
        "%2e%2e/secret.txt",
        "%2e%2e%2fsecret.txt",
        "guide/../../secret.txt",
        "guide/..%2f..%2fsecret.txt",
        "..%5csecret.txt",
        "%252e%252e/secret.txt",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "file:///etc/passwd",
        "link",
        ".hidden",
        "guide",
        "guide/",
        "guide/start.md/x",
        "guide/start.md%00",
        "none.txt",
        ".",
        "",
        "C:/x",
        "~/x",
    ] {
        let uri = format!("docs://all/{path}");
        let error = refused(&client, "resources/read", json!({"uri": uri})).await;
        let code = if era == Era::Legacy { -32002 } else { -32602 };
        assert_eq!(
            (error.code, error.message.as_ref()),
            (code, "there is no such resource"),
            "{path}"
        );
    }
    // It is what it is at that moment.
    directory.write("docs/later.txt", b"later");
    assert_eq!(count(&client, "resources/list", "resources").await, 4);
    let missing = Server::new("s", "1").directory("docs://all", directory.0.join("none"));
    let problem = missing.check().unwrap_err().to_string();
    assert!(problem.contains("is not a directory"), "{problem}");
}
