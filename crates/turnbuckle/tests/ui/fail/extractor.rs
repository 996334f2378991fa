use std::rc::Rc;

use turnbuckle::{Args, Ctx, Server, State, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Rest {
    b: i64,
}

/// Plain arguments, and all of them at once.
#[tool]
async fn mixed(a: i64, Args(rest): Args<Rest>) -> i64 {
    a + rest.b
}

/// A borrowed extractor, which is then taken for an argument.
#[tool]
async fn borrowed(ctx: &Ctx) -> bool {
    ctx.is_cancelled()
}

/// Attributes that could say nothing.
#[tool]
async fn decorated(#[serde(default)] ctx: Ctx, #[garde(skip)] a: i64) -> bool {
    ctx.is_cancelled() && a > 0
}

/// State that can't be shared.
#[tool]
fn unshared(State(count): State<Rc<i64>>) -> i64 {
    *count
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(mixed).tool(borrowed).tool(decorated).tool(unshared);
}
