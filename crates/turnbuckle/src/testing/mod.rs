//! How to test a server: a client in the same process, what crossed the wire, and a wire that fails
//! when it is told to.
//!
//! Owns: [`TestClient`], [`Transcript`], [`link`] with its [`Faults`]. Does not own: anything that
//! a program needs outside its tests; the codec, the client and the server are the real ones.
//!
//! ```
//! use turnbuckle::{Args, Server, testing::TestClient, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: i64, b: i64 }
//! async fn add(Args(add): Args<Add>) -> i64 { add.a + add.b }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> turnbuckle::Result<()> {
//! let server = Server::new("calc", "1.0").tool(tool("add", add));
//! let client = TestClient::new(&server).await?;
//! let sum = client.call_tool("add", serde_json::json!({"a": 1, "b": 2})).await?;
//! assert_eq!(sum.to_text(), "3");
//! # Ok(()) }
//! ```
//!
//! Nothing in here waits by the clock except [`Fault::Delay`], which follows tokio's: a test under
//! paused time takes no time.

mod client;
mod fault;
mod link;
mod transcript;

pub use client::{TestClient, TestClientBuilder};
pub use fault::{Fault, Faults};
pub use link::{LinkEnd, link};
pub use transcript::{Transcript, TranscriptLine, TranscriptSide};
