//! Many servers: starts all of an `mcp.json`, says which are there, lists their tools as a model
//! would see them, calls one.
//!
//! Try it: `cargo run --bin group -- ~/.cursor/mcp.json`

use std::time::Duration;

use serde_json::json;
use turnbuckle::Client;
use turnbuckle_host::{ClientGroup, McpConfig, Status};

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: group MCP.JSON");
        std::process::exit(2)
    };
    let config = McpConfig::read(path)?;
    let group = ClientGroup::start_all(&config, |_| Client::builder().info("example", "1.0"))?;
    for health in group.settled().await {
        match health.status {
            Status::Ready => println!("{}: ready", health.server),
            Status::Failed(why) => println!("{}: {why}", health.server),
            other => println!("{}: {other:?}", health.server),
        }
    }
    let tools = group.tools().await.tools;
    for tool in &tools {
        println!("- {} is {} of {}", tool.name, tool.tool.name, tool.server);
    }
    if let Some(add) = tools.iter().find(|tool| tool.tool.name == "add") {
        let sum = group.call_tool(&add.name, json!({"a": 1, "b": 2})).await?;
        println!("1 + 2 = {}", sum.to_text());
    }
    let report = group.stop_all(Duration::from_secs(5)).await;
    println!("stopped: {}", report.stopped.len());
    Ok(())
}
