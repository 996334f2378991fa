//! A server over stdio: tools from plain functions.
//!
//! Try it: `turnbuckle call target/debug/server add a=1 b=2`

use turnbuckle::{Server, ToolError, tool};

/// Add two integers.
#[tool]
async fn add(
    /// The first number.
    a: i64,
    /// The second number; zero if it is left out.
    b: Option<i64>,
) -> i64 {
    a + b.unwrap_or(0)
}

/// Divide one number by another.
#[tool(read_only, idempotent)]
async fn divide(dividend: f64, divisor: f64) -> Result<f64, ToolError> {
    if divisor == 0.0 {
        // The model reads this and can do better.
        return Err(ToolError::new("`divisor` must not be zero"));
    }
    Ok(dividend / divisor)
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    Server::new("calc", "1.0")
        .instructions("Arithmetic, exactly.")
        .tool(add)
        .tool(divide)
        .serve_stdio()
        .await
}
