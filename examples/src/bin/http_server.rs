//! A server over HTTP: mounted in axum beside other routes, or the short way.
//!
//! Try it: `cargo run --bin http_server -- axum 127.0.0.1:8080`, then
//! `turnbuckle call http://127.0.0.1:8080/mcp add a=1 b=2`

use axum::{Router, routing::get};
use tokio::{net::TcpListener, signal::ctrl_c};
use turnbuckle::{Ctx, Server, tool};

/// Add two integers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Count for as long as anyone wants to know.
#[tool]
async fn count(ctx: Ctx) {
    // Runs when the client closes its POST: the handler is dropped where it waits.
    let _gone = Gone;
    for step in 1u64.. {
        ctx.progress(step).await;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

struct Gone;

impl Drop for Gone {
    fn drop(&mut self) {
        println!("count was abandoned");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("calc", "1.0").tool(add).tool(count);
    let mut words = std::env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (Some("axum"), Some(address)) => in_axum(&server, &address).await,
        (Some("short"), Some(address)) => the_short_way(&server, &address).await,
        _ => {
            eprintln!("usage: http_server axum|short ADDRESS");
            std::process::exit(2)
        }
    }
}

/// The endpoint is a tower service: a router takes it like any other.
async fn in_axum(server: &Server, address: &str) -> Result<(), Box<dyn std::error::Error>> {
    // Only this machine may call it, until `.public_host("mcp.example.com")` names another.
    let endpoint = server.http_service();
    endpoint.check()?;
    let app =
        Router::new().route("/health", get(async || "fine")).nest_service("/mcp", endpoint.clone());
    let listener = TcpListener::bind(address).await?;
    println!("serving http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            let _ = ctrl_c().await;
            // Listen streams never end by themselves. Calls that run are waited for: a program that
            // can't wait that long gives up by itself, or serves the short way, which has a limit.
            endpoint.shutdown();
        })
        .await?;
    Ok(())
}

/// The same without a router: `/mcp` and nothing else.
async fn the_short_way(server: &Server, address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let stop = async {
        let _ = ctrl_c().await;
    };
    let bound = server.serve_http(address).with_shutdown(stop).bind().await?;
    println!("serving {}", bound.url());
    let report = bound.await?;
    println!("{} calls finished, {} were stopped", report.finished, report.cancelled);
    Ok(())
}
