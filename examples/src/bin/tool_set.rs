//! Tools that share state: methods of one type.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::Relaxed},
};

use serde_json::json;
use turnbuckle::{Client, Server, ToolError, tools};

/// A number that its tools change.
#[derive(Default)]
struct Counter {
    value: AtomicI64,
}

#[tools]
impl Counter {
    /// Add to the counter.
    #[tool(title = "Add")]
    async fn add(
        &self,
        /// How much, at most 100 at once.
        #[arg(min = 1, max = 100)]
        amount: i64,
    ) -> i64 {
        self.value.fetch_add(amount, Relaxed) + amount
    }

    /// Set the counter to zero. A sync method runs where it may block.
    #[tool(destructive, idempotent)]
    fn reset(&self) -> Result<(), ToolError> {
        self.value.store(0, Relaxed);
        Ok(())
    }

    /// What the counter says.
    #[resource("counter://value", mime_type = "text/plain")]
    async fn value(&self) -> String {
        self.value.load(Relaxed).to_string()
    }
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    // The program keeps a handle of its own.
    let counter = Arc::new(Counter::default());
    let server = Server::new("counter", "1.0").group(counter.clone());

    let client = Client::in_process(&server).await?;
    println!("added: {}", client.call_tool("add", json!({"amount": 40})).await?.to_text());
    println!("{}", client.call_tool("add", json!({"amount": 400})).await?.to_text());
    println!("read: {}", client.read_resource("counter://value").await?.to_text());
    client.call_tool("reset", ()).await?;
    println!("reset: {}", counter.value.load(Relaxed));
    Ok(())
}
