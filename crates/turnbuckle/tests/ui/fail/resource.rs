use turnbuckle::{Args, Server, resource};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Item {
    id: u32,
}

#[resource]
async fn nowhere() -> &'static str {
    ""
}

#[resource("readme")]
async fn without_scheme() -> &'static str {
    ""
}

#[resource("demo://items/{id")]
async fn open(id: u32) -> String {
    id.to_string()
}

#[resource("demo://items")]
async fn without_variables(id: u32) -> String {
    id.to_string()
}

#[resource("demo://items")]
async fn all_at_once(Args(item): Args<Item>) -> String {
    item.id.to_string()
}

#[resource("demo://{kind}/{number}")]
async fn other_names(kind: String, id: u32) -> String {
    format!("{kind} {id}")
}

#[resource("demo://readme", list = all)]
async fn listed() -> &'static str {
    ""
}

#[resource("demo://readme", audience = ["model"], priority = 2, last_modified)]
async fn annotated() -> &'static str {
    ""
}

/// Not what a resource returns.
#[resource("demo://count")]
async fn counted() -> i64 {
    1
}

fn main() {
    let server = Server::new("ui", "1.0").resource(nowhere).resource(without_scheme);
    let server = server.template(open).resource(without_variables).resource(all_at_once);
    let _ = server.template(other_names).resource(listed).resource(annotated).resource(counted);
}
