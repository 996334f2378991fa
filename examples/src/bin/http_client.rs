//! A client over HTTP: a URL, a header, a timeout, and a call that is dropped.
//!
//! Try it: `cargo run --bin http_client -- http://127.0.0.1:8080/mcp`, with `http_server` there

use std::time::Duration;

use serde_json::json;
use turnbuckle::Client;

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: http_client URL");
        std::process::exit(2)
    };
    let client = Client::builder()
        // Goes with every request, and never along a redirect to another origin.
        .header("authorization", "Bearer a-token-from-somewhere")
        .connect(url)
        .await?;
    println!("connected in revision {}", client.revision());
    let sum = client.call_tool("add", json!({"a": 1, "b": 2})).await?;
    println!("1 + 2 = {}", sum.to_text());

    let late = client.call_tool("count", ()).timeout(Duration::from_millis(100)).await;
    println!("{}", late.unwrap_err());

    // Losing the race drops the call, which closes its POST: that is the cancel.
    let (seen, mut enough) = tokio::sync::mpsc::channel(1);
    let counting = client.call_tool("count", ()).on_progress(move |progress| {
        // The fourth report and later ones are of no interest.
        if progress.progress == 3.0 {
            let _ = seen.try_send(());
        }
    });
    tokio::select! {
        _ = counting => unreachable!("it counts for ever"),
        _ = enough.recv() => println!("three steps were enough"),
    }
    Ok(())
}
