//! Around the handlers: a limit of time, a limit of calls per caller, a record of who did what.

use std::time::Duration;

use turnbuckle::{
    Client, Group, IntoTool as _, Server,
    layer::{Audit, RateLimit, Timeout},
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
        // Around one tool.
        .tool(ponder.into_tool().layer(Timeout::new(Duration::from_millis(10))))
        // Around all of a group.
        .group(Group::new().tool(answer).layer(RateLimit::new(2, hour).per_principal()))
        // Around everything, so that it hears of what the others refuse as well.
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
