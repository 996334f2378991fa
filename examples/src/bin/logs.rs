//! What a handler logs with `tracing`, told to the client that made the request, as far as it asked.

use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};
use turnbuckle::{
    Client, Server,
    middleware::ForwardLogs,
    tool,
    types::{LogLevel, LogMessage},
};

/// Sell some apples.
#[tool]
async fn sell(apples: u32) -> String {
    tracing::debug!(apples, "not severe enough");
    tracing::warn!(left = 5 - apples, "running low");
    format!("{apples} apples")
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    // Beside it stands whatever else listens, such as a layer that writes to standard error.
    tracing_subscriber::registry().with(ForwardLogs::new()).init();

    let server = Server::new("shop", "1.0").tool(sell);
    let client = Client::builder()
        .on_notification(|_, params| {
            if let Some(Ok(LogMessage { level, logger, data, .. })) = params.map(|it| it.decode()) {
                println!("{level} from {}: {data}", logger.unwrap_or_default());
            }
        })
        .in_process(&server)
        .await?;
    let sold = client
        .call_tool("sell", serde_json::json!({"apples": 3}))
        .log_level(LogLevel::Warning)
        .await?;
    println!("sold: {}", sold.to_text());
    Ok(())
}
