//! The server of Turnbuckle's README, built by `cargo xtask bench --build`.

use turnbuckle::{Server, tool};

/// Add two integers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    Server::new("calc", "1.0").tool(add).serve_stdio().await
}
