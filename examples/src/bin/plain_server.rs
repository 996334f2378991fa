//! A server without macros: extractors, shared state, structured output, a hand-written
//! schema.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle::{Args, Ctx, Json, Server, State, server::RawArgs, tool};

type Visits = Arc<AtomicU64>;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    text: String,
    visit: u64,
}

async fn greet(Args(greet): Args<Greet>, State(visits): State<Visits>) -> Json<Greeting> {
    let visit = visits.fetch_add(1, Relaxed) + 1;
    Json(Greeting { text: format!("hello {}", greet.name), visit })
}

async fn who(ctx: Ctx) -> String {
    let client = ctx.client_info().map_or("someone".to_owned(), |info| info.name);
    format!("{client} asks in revision {}", ctx.revision())
}

async fn shape(RawArgs(arguments): RawArgs) -> String {
    format!("you sent {arguments}")
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let schema = json!({
        "type": "object",
        "properties": { "sides": { "type": "integer", "minimum": 3 } },
        "required": ["sides"],
    });
    Server::new("plain", "1.0")
        .state(Visits::default())
        .tool(tool("greet", greet).description("Greet someone."))
        .tool(tool("who", who).description("Say who asks."))
        .tool(tool("shape", shape).description("Take a shape.").input_schema(schema))
        .serve_stdio()
        .await
}
