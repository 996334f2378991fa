//! Middleware: a timeout, a rate limit per caller and an audit.

use std::time::Duration;

use turnbuckle::{
    Client, Server,
    middleware::server::{Audit, RateLimit, Timeout},
    server::{Group, IntoTool as _},
    tool,
};

/// Take too long.
#[tool]
async fn ponder() -> &'static str {
    std::future::pending().await
}

/// Answer at once.
#[tool]
async fn answer() -> i64 {
    42
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let hour = Duration::from_secs(3600);
    let server = Server::new("limits", "1.0")
        // For one tool.
        .tool(ponder.into_tool().layer(Timeout::new(Duration::from_millis(10))))
        // For a group.
        .group(Group::new().tool(answer).layer(RateLimit::new(2, hour).per_principal()))
        // For every request, including those that the others reject.
        .layer(Audit::new(|entry| {
            println!("audit: {} {}", entry.method, entry.name.unwrap_or_default());
        }));

    let client = Client::in_process(&server).await?;
    for name in ["ponder", "answer", "answer", "answer"] {
        match client.call_tool(name, ()).await {
            Ok(result) => println!("{name}: {}", result.to_text()),
            Err(error) => println!("{name}: {error}"),
        }
    }
    Ok(())
}
