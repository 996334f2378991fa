//! Limits how long a request may take.

use std::time::Duration;

use turnbuckle_types::{Method, RpcError};

use super::{
    policy::{Inner, Policy, policy_layer},
    request::Request,
};
use crate::{
    middleware::{BoxError, Response},
    server::ToolError,
};

/// Cancels requests that take longer than a limit.
///
/// A tool call that runs out of time is answered with a result that says so, which the model can
/// read; any other request with an error. A `subscriptions/listen` has no limit.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{Server, middleware::server::Timeout, tool};
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
    /// Creates a limit.
    pub fn new(limit: Duration) -> Timeout {
        Timeout { limit }
    }
}

policy_layer!(Timeout);

impl Policy for Timeout {
    async fn apply(self, request: Request, inner: impl Inner) -> Result<Response, BoxError> {
        if request.is_long_lived() {
            return inner.send(request).await;
        }
        let method = request.known_method();
        let answered = tokio::time::timeout(self.limit, inner.send(request)).await;
        answered.unwrap_or_else(|_| {
            let why = format!("timed out after {:?}", self.limit);
            Err(match method {
                Some(Method::CallTool) => ToolError::new(format!("the tool {why}")).into(),
                _ => RpcError::internal(format!("the request {why}")).into(),
            })
        })
    }
}
