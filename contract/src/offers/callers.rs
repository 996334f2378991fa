//! Owns handlers that look at what came with their request. Does not own how it came.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use turnbuckle::{
    Ctx, Json, Principal, RpcError, prompt, resource,
    server::{Arguments, Extension, Failure, FromCall, Group, Header, HttpHeader, Invocation},
    tool,
};

/// Whose connection it is, as whoever accepted it found out.
///
/// ```
/// use turnbuckle_contract::Tenant;
/// assert_eq!(Tenant("a".into()).0, "a");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant(pub String);

pub(super) fn group() -> Group {
    Group::new()
        .tool(tool("extra", extra))
        .tool(tool("tenant", tenant))
        .prompt(prompt("tenant", tenant))
        .resource(resource("offer://tenant", tenant))
        .tool(tool("tenant_required", async |Extension(tenant): Extension<Tenant>| tenant.0))
        .tool(tool("who", async |who: Principal| who.name().to_owned()))
        .tool(tool("claims", async |who: Option<Principal<Claims>>| who.is_some()))
        .tool(tool("region", async |Header(region): Header<Region>| region.0))
        .tool(tool("any_region", async |region: Option<Header<Region>>| match region {
            Some(Header(region)) => region.0,
            None => "anywhere".to_owned(),
        }))
        .tool(tool("seen", seen))
        .prompt(prompt("seen", seen))
        .resource(resource("offer://seen", seen))
}

/// What a handler can read of its request.
#[derive(Serialize, JsonSchema)]
struct Extra {
    id: String,
    revision: String,
    client: Option<String>,
    samples: bool,
    token: Option<String>,
    note: Option<Value>,
}

async fn extra(ctx: Ctx) -> Json<Extra> {
    let token = ctx.meta().progress_token().ok().flatten();
    Json(Extra {
        id: ctx.request_id().to_string(),
        revision: ctx.revision().to_string(),
        client: ctx.client_info().map(|client| format!("{} {}", client.name, client.version)),
        samples: ctx.client_capabilities().sampling.is_some(),
        token: token.map(|token| token.to_string()),
        note: ctx.meta().value("example.com/note").and_then(|note| note.decode().ok()),
    })
}

async fn tenant(tenant: Option<Extension<Tenant>>) -> String {
    tenant.map_or_else(|| "nobody".to_owned(), |Extension(tenant)| tenant.0)
}

#[derive(Clone)]
struct Claims;

struct Region(String);

impl HttpHeader for Region {
    const NAME: &'static str = "x-region";

    fn from_value(value: &str) -> Result<Region, String> {
        match value {
            "north" | "south" => Ok(Region(value.to_owned())),
            _ => Err("neither north nor south".to_owned()),
        }
    }
}

/// An extractor of the program's own: it sees the arguments and the request, and may refuse.
struct Seen(String);

impl FromCall for Seen {
    async fn from_call(call: &Invocation) -> Result<Seen, Failure> {
        let kind = match call.arguments() {
            Arguments::Json(_) => "json",
            _ => "text",
        };
        match call.ctx().meta().value("example.com/refuse") {
            Some(_) => Err(RpcError::new(-32099, "refused by an extractor").into()),
            None => Ok(Seen(format!("{kind} in {}", call.ctx().revision()))),
        }
    }
}

async fn seen(Seen(seen): Seen) -> String {
    seen
}
