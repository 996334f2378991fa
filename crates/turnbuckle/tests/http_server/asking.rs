//! Requests that ask, over HTTP: what a client keeps is its principal's alone.

use serde_json::{Value, json};
use turnbuckle::{Ctx, Principal, Server, ToolError, elicit::roots, http::HttpService, tool};

use crate::support::{Message, ask, text};

async fn places(ctx: Ctx) -> Result<String, ToolError> {
    Ok(format!("{} places", ctx.ask("roots", roots()).await?.len()))
}

/// Calls the tool as someone, and gives the status and the answer.
async fn places_of(
    service: &HttpService,
    who: Option<&str>,
    capabilities: Value,
    mut params: Value,
) -> (u16, Value) {
    params["name"] = json!("places");
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let message = Message { text: body.to_string(), method: "tools/call", name: Some("places") };
    let mut request = message.request();
    if let Some(name) = who {
        Principal::new(name).attach(request.extensions_mut());
    }
    let response = ask(service, request).await;
    let status = response.status().as_u16();
    (status, serde_json::from_str(&text(response.into_body()).await).unwrap())
}

#[tokio::test]
async fn what_a_client_keeps_is_its_principal_s_alone() {
    let server = Server::new("places", "1.0").tool(tool("places", places));
    let service = server.http_service();
    let able = || json!({"roots": {}});
    let everyone = [Some("alice"), Some("bob"), Some(""), Some("local"), None];
    for owner in everyone {
        let (status, first) = places_of(&service, owner, able(), json!({})).await;
        assert_eq!((status, &first["result"]["resultType"]), (200, &json!("input_required")));
        let retry = json!({"requestState": first["result"]["requestState"],
            "inputResponses": {"roots": {"roots": []}}});
        for other in everyone {
            let (status, answer) = places_of(&service, other, able(), retry.clone()).await;
            if other == owner {
                assert_eq!(answer["result"]["content"][0]["text"], "0 places");
            } else {
                let code = &answer["error"]["code"];
                assert_eq!((status, code), (400, &json!(-32602)), "{owner:?} {other:?}");
            }
        }
    }
}

// req: hosting:http:modern:handler-error-status-via-table
#[tokio::test]
async fn a_capability_that_is_missing_is_a_bad_request() {
    let server = Server::new("places", "1.0").tool(tool("places", places));
    let (status, answer) = places_of(&server.http_service(), None, json!({}), json!({})).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32021)));
    assert_eq!(answer["error"]["data"], json!({"requiredCapabilities": {"roots": {}}}));
}
