//! Resources and families of them: how they are listed and read.

use serde_json::{Value, json};
use turnbuckle::{Server, resource, template, types::Era};
use turnbuckle_contract::SECRET;

use crate::{
    offered::{Offered, capabilities, data},
    offers_tools::problem,
    rig::{Rig, Wire, contract},
};

contract! { everywhere unconnected on [memory stdio unix direct http sse] in [legacy modern]:
    // req: resources:capability:declared
    // req: lifecycle:initialize:capabilities:from-handlers
    resources_are_declared,
    // req: resources:list:basic, resources:annotations, mcpserver:resource:static
    resources_are_listed_with_all_they_say,
    // req: resources:templates:list, mcpserver:resource:template
    families_have_a_list_of_their_own,
    // req: resources:read:text, resources:read:blob, mcpserver:resource:static
    text_is_read_as_text_and_bytes_as_base64,
    // req: resources:read:template-vars, mcpserver:resource:template
    what_stands_in_a_uri_reaches_the_handler_by_type,
    what_does_not_fit_the_type_never_reaches_the_handler,
    // req: resources:read:unknown-uri, mcpserver:resource:unknown-uri
    what_is_not_there_is_the_error_of_the_era,
    // req: mcpserver:resource:read-throws-surfaced
    a_reader_that_fails_gives_nothing_away,
}

contract! { toolish on [memory stdio unix direct http sse] in [legacy modern]:
    // req: resources:capability:declared
    a_server_without_resources_declares_none,
}

async fn resources_are_declared(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let declared = offered.capabilities().await;
    assert_eq!(declared["resources"], json!({"listChanged": true, "subscribe": true}));
}

async fn a_server_without_resources_declares_none(rig: &Rig) {
    assert_eq!(capabilities(&rig.client, rig.era).await.get("resources"), None);
    for method in ["resources/list", "resources/templates/list", "resources/read"] {
        let error = rig.client.request(method, json!({"uri": "offer://text"})).await.unwrap_err();
        assert_eq!(error.as_rpc().unwrap().code, -32601, "{method}");
    }
}

fn annotations() -> Value {
    json!({"audience": ["user", "assistant"], "priority": 0.25,
        "lastModified": "2026-01-02T03:04:05Z"})
}

async fn resources_are_listed_with_all_they_say(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let listed = offered.listed("resources/list", ("uri", "offer://text")).await;
    let icon = json!({"src": "https://example.com/icon.png", "mimeType": "image/png"});
    let expected = json!({
        "uri": "offer://text", "name": "text", "title": "A text", "size": 6,
        "description": "Text that says what it is.", "mimeType": "text/markdown",
        "icons": [icon], "annotations": annotations(), "_meta": {"example.com/team": "shelves"},
    });
    assert_eq!(listed, expected);
    let plain = offered.listed("resources/list", ("uri", "offer://json")).await;
    assert_eq!(plain, json!({"uri": "offer://json", "name": "json"}));
}

async fn families_have_a_list_of_their_own(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let text = "offer://shelves/{language}/{number}";
    let listed = offered.listed("resources/templates/list", ("uriTemplate", text)).await;
    let expected = json!({
        "uriTemplate": text, "name": "shelf", "title": "A shelf", "mimeType": "text/plain",
        "description": "Books on a language.", "annotations": annotations(),
    });
    assert_eq!(listed, expected);
    let resources = offered.ask("resources/list", json!({})).await.to_string();
    assert!(!resources.contains("offer://shelves"), "a family is no resource: {resources}");
}

async fn text_is_read_as_text_and_bytes_as_base64(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let text = json!({"uri": "offer://text", "text": "# Text", "mimeType": "text/markdown"});
    assert_eq!(offered.read("offer://text").await, json!([text]));
    let blob = json!({"uri": "offer://bytes", "blob": "AP8QgA==", "mimeType": "image/x-own"});
    assert_eq!(offered.read("offer://bytes").await, json!([blob]));
    let value = json!({"uri": "offer://json", "text": r#"{"a":[1,null]}"#,
        "mimeType": "application/json"});
    assert_eq!(offered.read("offer://json").await, json!([value]));
    let several = json!([
        {"uri": "offer://several", "text": "one"},
        {"uri": "offer://several/2", "blob": "AP8=", "mimeType": "image/x-own"},
    ]);
    assert_eq!(offered.read("offer://several").await, several);
}

async fn what_stands_in_a_uri_reaches_the_handler_by_type(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let uri = "offer://shelves/python/200";
    let read = json!([{"uri": uri, "text": "Python 200", "mimeType": "text/plain"}]);
    assert_eq!(offered.read(uri).await, read);
    for (uri, text) in [
        ("offer://titles/a%20b%2Fc", r#""a b/c" None"#),
        ("offer://titles/%E2%82%AC?edition=3", r#""€" Some(3)"#),
    ] {
        assert_eq!(offered.read(uri).await, json!([{"uri": uri, "text": text}]));
    }
}

async fn what_does_not_fit_the_type_never_reaches_the_handler(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    for (uri, name) in [
        ("offer://shelves/cobol/1", "language"),
        ("offer://shelves/rust/256", "number"),
        ("offer://shelves/rust/-1", "number"),
        ("offer://shelves/rust/201", "`number` must be at most 200, is 201"),
        ("offer://titles/a%20title%20of%20too%20many%20letters", "`title` must have at most 20"),
        ("offer://titles/a?edition=0", "`edition` must be at least 1, is 0"),
    ] {
        let error = offered.refused("resources/read", json!({"uri": uri})).await;
        assert_eq!(error.code, -32602, "{uri}");
        assert!(error.message.contains(name), "{uri}: {error:?}");
    }
    assert_eq!(offered.runs("shelf").await, "0");
}

async fn what_is_not_there_is_the_error_of_the_era(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let code = match era {
        Era::Legacy => -32002,
        _ => -32602,
    };
    // Nothing fits; a handler says so; what looks like a family has a part too many.
    for uri in ["offer://nowhere", "offer://gone", "offer://shelves/rust/0", "offer://titles/a/b"] {
        let error = offered.refused("resources/read", json!({"uri": uri})).await;
        assert_eq!((error.code, data(&error)), (code, json!({"uri": uri})), "{error:?}");
    }
    let error = offered.refused("resources/read", json!({})).await;
    assert_eq!(error.code, -32602, "no URI at all is another mistake");
}

async fn a_reader_that_fails_gives_nothing_away(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    let error = offered.refused("resources/read", json!({"uri": "offer://broken"})).await;
    assert_eq!((error.code, &*error.message, &error.data), (-32603, "internal error", &None));
    assert!(!format!("{error:?}").contains(SECRET));
    // Unless its author wrote it to be read.
    let error = offered.refused("resources/read", json!({"uri": "offer://told"})).await;
    assert_eq!((error.code, &*error.message), (-32603, "closed"));
}

// req: mcpserver:resource:duplicate-name
#[test]
fn two_resources_for_one_uri_are_told_with_both_places() {
    let one = |server: Server| server.resource(resource("note://1", async || "one"));
    let server = Server::new("s", "1");
    let first = line!() + 1;
    let server = server.resource(resource("note://1", async || "one"));
    let second = line!() + 1;
    let server = server.resource(resource("note://1", async || "two").name("another"));
    let told = problem(&server);
    assert!(told.contains("two resources named `note://1`"), "{told}");
    for line in [first, second] {
        assert!(told.contains(&format!("offers_resources.rs:{line}")), "{line}: {told}");
    }
    // A resource that a family has too is its own.
    one(Server::new("s", "1")).template(template("note://{id}", async || "any")).check().unwrap();
}

// req: mcpserver:resource:duplicate-name
#[test]
fn families_that_can_not_be_told_apart_are_told_with_both_places() {
    for (one, other) in [
        ("note://{id}", "note://{id}"),
        ("note://{id}", "note://{name}"),
        ("note://{a}/x", "note://{b}/x"),
    ] {
        let server = Server::new("s", "1");
        let first = line!() + 1;
        let server = server.template(template(one, async || "one"));
        let second = line!() + 1;
        let server = server.template(template(other, async || "other"));
        let told = problem(&server);
        assert!(told.contains(&format!("`{one}`")) && told.contains(other), "{told}");
        for line in [first, second] {
            assert!(told.contains(&format!("offers_resources.rs:{line}")), "{line}: {told}");
        }
    }
    let apart = Server::new("s", "1")
        .template(template("note://a/{id}", async || "a"))
        .template(template("note://b/{id}", async || "b"));
    apart.check().unwrap();
}
