//! Testing a server: the real codec, both eras, no process, no port, no waiting.

use serde_json::json;
use turnbuckle::{Revision, Server, ToolError, testing::TestClient, tool};

/// Look up the capital of a country.
#[tool]
async fn capital(country: String) -> Result<String, ToolError> {
    match country.as_str() {
        "Portugal" => Ok("Lisbon".to_owned()),
        _ => Err(ToolError::new(format!("no country named `{country}`"))),
    }
}

fn server() -> Server {
    Server::new("atlas", "1.0").tool(capital)
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = TestClient::new(&server()).revision(revision).await?;

        let found = client.call_tool("capital", json!({"country": "Portugal"})).await?;
        assert_eq!(found.to_text(), "Lisbon");

        let missing = client.call_tool("capital", json!({"country": "Atlantis"})).await?;
        assert_eq!(missing.is_error, Some(true));
        assert_eq!(missing.to_text(), "no country named `Atlantis`");

        let wrong = client.call_tool("capital", json!({"country": 7})).await?;
        assert_eq!(wrong.to_text(), "`country`: expected a string, got an integer");
        println!("revision {revision}: as expected");
    }
    Ok(())
}
