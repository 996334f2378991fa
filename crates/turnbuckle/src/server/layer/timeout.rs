//! Owns how long a request may take. Does not own what cancels it: dropping it does.

use std::time::Duration;

use turnbuckle_types::{Method, RpcError};

use super::{
    apply::{Policy, tower_layer},
    next::BoxError,
    request::{Request, Response},
};
use crate::server::reply::ToolError;

/// Gives every request so much time, and cancels what takes longer.
///
/// A tool call that runs out of time is answered with a result that says so, which the model can
/// read; anything else with an error. Streams of changes are not bound by it.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{Server, layer::Timeout, tool};
/// async fn slow() -> &'static str { "at last" }
/// let server = Server::new("demo", "1.0")
///     .layer(Timeout::new(Duration::from_secs(60)))
///     .tool(tool("slow", slow).layer(Timeout::new(Duration::from_secs(5))));
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    limit: Duration,
}

impl Timeout {
    /// This much.
    pub fn new(limit: Duration) -> Timeout {
        Timeout { limit }
    }
}

tower_layer!(Timeout);

impl Policy for Timeout {
    async fn apply<F, Fut>(self, request: Request, inner: F) -> Result<Response, BoxError>
    where
        F: FnOnce(Request) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Response, BoxError>> + Send + 'static,
    {
        if request.is_long_lived() {
            return inner(request).await;
        }
        let method = request.known();
        match tokio::time::timeout(self.limit, inner(request)).await {
            Ok(answered) => answered,
            Err(_) => {
                let why = format!("timed out after {:?}", self.limit);
                Err(match method {
                    Some(Method::CallTool) => ToolError::new(format!("the tool {why}")).into(),
                    _ => RpcError::internal(format!("the request {why}")).into(),
                })
            }
        }
    }
}
