//! The server that the conformance suite calls: prints its URL and serves until it is killed.

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let server = turnbuckle_conformance::server::server();
    let bound = server.serve_http("127.0.0.1:0").bind().await?;
    println!("{}", bound.url());
    bound.await?;
    Ok(())
}
