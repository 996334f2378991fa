use turnbuckle::{Server, tool};

#[tool(readonly)]
async fn first() {}

#[tool(name, title = 3, read_only = "yes", idempotent, idempotent)]
async fn second() {}

#[tool("third")]
async fn third() {}

fn main() {
    let _ = Server::new("ui", "1.0").tool(first).tool(second).tool(third);
}
