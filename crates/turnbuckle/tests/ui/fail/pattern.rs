use turnbuckle::{Server, tool};

#[tool]
async fn add((a, b): (i64, i64)) -> i64 {
    a + b
}

#[tool]
async fn ignore(_: Vec<String>) {}

fn main() {
    let _ = Server::new("ui", "1.0").tool(add).tool(ignore);
}
