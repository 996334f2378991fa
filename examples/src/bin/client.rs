//! A client: starts a server, lists its tools, calls one.
//!
//! Try it: `cargo run --bin client -- target/debug/server`

use std::process::Command;

use serde_json::json;
use turnbuckle::Client;

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let mut words = std::env::args().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: client SERVER [ARGUMENT …]");
        std::process::exit(2)
    };
    let client = Client::spawn(Command::new(program).args(words)).await?;
    println!("connected in revision {}", client.revision());
    for tool in client.tools().all().await? {
        println!("- {}: {}", tool.name, tool.description.unwrap_or_default());
    }
    let sum = client.call_tool("add", json!({"a": 1, "b": 2})).await?;
    println!("1 + 2 = {}", sum.to_text());
    client.close().await;
    Ok(())
}
