//! Everything that a tool's function may be, without a warning.
#![deny(warnings, missing_docs, missing_debug_implementations, clippy::all)]

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use turnbuckle::{Args, Ctx, server::{IntoTool, RawArgs}, Json, Server, State, ToolError, tool};

/// Add two integers.
#[tool]
async fn add(
    /// The first number.
    #[schemars(range(min = 1))]
    mut a: i64,
    /// The second number.
    b: Option<i64>,
) -> i64 {
    a += b.unwrap_or(1);
    // The function's own name is free in its body.
    let add = a;
    add
}

/// A sync function, which calls itself and not the value.
#[tool(title = "Factorial", description = "n!", read_only, destructive = false, open_world = false)]
pub fn factorial(n: u64) -> u64 {
    if n == 0 { 1 } else { n * factorial(n - 1) }
}

#[tool(name = "raw/name")]
async fn r#fn(r#type: String, #[serde(default = "one")] count: u8) -> Result<String, ToolError> {
    if count == 0 {
        return Err(ToolError::new("count from one"));
    }
    Ok(r#type.repeat(count.into()))
}

const fn one() -> u8 {
    1
}

#[derive(Clone, Debug)]
struct Database(&'static str);

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Query {
    table: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Found {
    rows: usize,
}

#[tool]
async fn find(
    ctx: Ctx,
    State(Database(name)): State<Database>,
    Args(Query { table }): Args<Query>,
) -> Json<Found> {
    let _ = ctx.is_cancelled();
    Json(Found { rows: name.len() + table.len() })
}

#[tool]
fn raw(_ctx: turnbuckle::Ctx, RawArgs(raw): RawArgs) -> String {
    raw.as_str().to_owned()
}

#[tool]
async fn nothing() {}

#[cfg(any())]
#[tool]
async fn absent(a: NoSuchType) {}

#[tool]
#[cfg(any())]
async fn absent_too(a: NoSuchType) {}

/// One that is on its way out.
#[tool]
#[deprecated]
#[expect(unused_variables, reason = "attributes stay on the function")]
pub async fn old(unused: i64) {}

mod inner {
    use turnbuckle::tool;

    /// Visible in the crate.
    #[tool]
    pub(crate) async fn nested(a: i64) -> i64 {
        // A tool calls another, and `super` is what it was.
        super::add(a, None).await
    }

    /// Without a parameter, a type of that name is one like any other.
    #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
    pub(super) enum State {
        Open,
        Closed,
    }

    #[tool]
    pub(super) async fn is_open(state: State) -> bool {
        match state {
            State::Open => true,
            State::Closed => false,
        }
    }

    // Tools whose names are words that an expansion might use.
    #[tool(read_only)]
    pub(super) async fn tool_annotations(annotations: i64) -> i64 {
        annotations
    }

    #[tool]
    pub(super) fn call(function: i64) -> i64 {
        function
    }
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing to wait for"),
    }
}

fn main() {
    /// Local to a function.
    #[tool]
    async fn local(a: i64) -> i64 {
        a
    }

    // Called as functions.
    assert_eq!(ready(add(1, Some(2))), 3);
    assert_eq!(factorial(5), 120);
    assert_eq!(ready(r#fn("ab".to_owned(), 2)).unwrap(), "abab");
    assert_eq!(ready(inner::nested(1)), 2);
    assert_eq!(ready(inner::tool_annotations(4)), 4);
    assert_eq!(inner::call(5), 5);
    assert_eq!(ready(local(7)), 7);
    assert!(ready(inner::is_open(inner::State::Open)));
    assert!(!ready(inner::is_open(inner::State::Closed)));

    // Named as they say.
    assert_eq!(add.into_tool().name(), "add");
    assert_eq!(r#fn.into_tool().name(), "raw/name");

    #[expect(deprecated, reason = "the value is as deprecated as the function")]
    let server = Server::new("ui", "1.0").tool(old);
    server
        .tool(add)
        .tool(factorial)
        .tool(r#fn)
        .tool(find)
        .tool(raw)
        .tool(nothing)
        .tool(inner::is_open)
        .tool(inner::nested)
        .tool(inner::tool_annotations)
        .tool(inner::call)
        .tool(local)
        .state(Database("books"))
        .check()
        .expect("every tool fits");
}
