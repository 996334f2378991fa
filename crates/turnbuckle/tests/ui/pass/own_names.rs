//! A program may have its own meaning for every name that an expansion could lean on.

use turnbuckle::{Server, tool};

mod core {}
mod std {}
mod serde {}
mod schemars {}
struct Box;
struct Pin;
struct Future;
struct Send;
struct Deref;
struct Fn;
struct Args;
struct Tool;
struct IntoTool;
struct Clone;
struct Copy;
struct Debug;
type Some = ();
type Result = ();

#[tool(title = "Greet", idempotent)]
async fn greet(name: String, times: u8) -> String {
    name.repeat(times.into())
}

#[tool]
fn shout(#[serde(default)] text: String) -> String {
    text.to_uppercase()
}

fn main() {
    Server::new("ui", "1.0").tool(greet).tool(shout).check().unwrap();
}
