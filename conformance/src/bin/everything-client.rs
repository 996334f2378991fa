//! The client that the conformance suite watches.
//!
//! Its last argument is the server's URL; the environment names the scenario.

use std::{env, error::Error};

use turnbuckle_conformance::{
    auth::auth,
    client::{act, host},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().next_back().ok_or("usage: everything-client URL")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO")?;
    let host = match scenario.starts_with("auth/") {
        true => host().auth(auth()?),
        false => host(),
    };
    let client = host.connect(url.as_str()).await?;
    act(&client, &scenario).await?;
    client.close().await;
    Ok(())
}
