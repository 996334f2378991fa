//! Tools whose costs are compared with each other, each written as a user would.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnbuckle::{
    Ctx, Json, Server, State, ToolError,
    elicit::elicit,
    server::{RawArgs, ToolDef},
    tool,
    types::{CallToolResult, Raw},
};

type Calls = Arc<AtomicU64>;

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Add two integers.
#[tool]
async fn add(
    /// The first number.
    #[schemars(range(min = 0, max = 999_999_999))]
    a: i64,
    /// The second number.
    #[schemars(range(min = 0, max = 999_999_999))]
    b: i64,
    State(calls): State<Calls>,
    ctx: Ctx,
) -> Json<Sum> {
    if !ctx.is_cancelled() {
        calls.fetch_add(1, Relaxed);
    }
    Json(Sum { sum: a + b })
}

#[derive(Deserialize)]
struct Numbers {
    a: i64,
    b: i64,
}

impl Numbers {
    fn are_in_range(&self) -> bool {
        [self.a, self.b].iter().all(|number| (0..=999_999_999).contains(number))
    }
}

/// The same tool with everything by hand: the schemas, the checks, the result.
fn raw_add(calls: Calls) -> ToolDef {
    const INPUT: &str = r#"{"type":"object","properties":{"a":{"type":"integer","description":"The first number.","minimum":0,"maximum":999999999},"b":{"type":"integer","description":"The second number.","minimum":0,"maximum":999999999}},"required":["a","b"]}"#;
    const OUTPUT: &str =
        r#"{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}"#;
    let handler = move |RawArgs(arguments): RawArgs| {
        let calls = calls.clone();
        async move {
            let numbers = match arguments.decode::<Numbers>() {
                Ok(numbers) if numbers.are_in_range() => numbers,
                Ok(_) => return CallToolResult::error("a number is out of range"),
                Err(error) => return CallToolResult::error(error.to_string()),
            };
            calls.fetch_add(1, Relaxed);
            match Raw::new(&Sum { sum: numbers.a + numbers.b }) {
                Ok(sum) => {
                    let mut result = CallToolResult::text(sum.as_str());
                    result.structured_content = Some(sum);
                    result
                }
                Err(error) => CallToolResult::error(error.to_string()),
            }
        }
    };
    tool("raw_add", handler)
        .description("Add two integers.")
        .input_schema_unchecked(Raw::from_json(INPUT).expect("it is JSON"))
        .output_schema_unchecked(Raw::from_json(OUTPUT).expect("it is JSON"))
}

/// Say hello to somebody.
#[tool]
async fn hello(name: String) -> String {
    format!("Hello, {name}!")
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Say hello to whoever is there.
#[tool]
async fn greet(ctx: Ctx) -> Result<String, ToolError> {
    let Name { name } = ctx.ask("name", elicit::<Name>("Who are you?")).await?;
    Ok(format!("Hello, {name}!"))
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let calls = Calls::default();
    Server::new("turnbuckle", env!("CARGO_PKG_VERSION"))
        .state(calls.clone())
        .tool(add)
        .tool(raw_add(calls))
        .tool(hello)
        .tool(greet)
        .serve_stdio()
        .await
}
