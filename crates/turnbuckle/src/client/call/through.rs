//! Passes a call through the middleware of its client.

use super::{Call, CallResponse, Params};
use crate::{
    client::connection::handle::Carried,
    error::Result,
    middleware::client::{NewCall, Passed, Request},
};
use turnbuckle_types::{Method, Raw};

impl<T: Send + 'static> Call<T> {
    /// Makes a call through the middleware. Dropping the future cancels the call.
    pub(super) async fn run_through_middleware(self) -> Result<T> {
        let _in_flight = self.request.client.supervisor.enter()?;
        let read = self.reader();
        let passed = self.pass_middleware(|mut call| async move {
            if let Some(cached) = call.cached {
                return call.send_cached(cached).await;
            }
            let CallResponse { value, raw, .. } = call.send().await?;
            Ok((value, raw))
        });
        match passed.await? {
            Passed::Unchanged(value) => Ok(value),
            Passed::Replaced(result) => read(result),
        }
    }

    /// Passes a call through the middleware to `send`, which returns the decoded answer of the
    /// server and its text. Middleware may reach `send` several times.
    pub(crate) async fn pass_middleware<V, F>(
        mut self,
        send: impl Fn(Call<T>) -> F + Send + Sync + 'static,
    ) -> Result<Passed<V>>
    where
        V: Send + 'static,
        F: Future<Output = Result<(V, Raw)>> + Send + 'static,
    {
        let middleware = self.request.client.settings().middleware.clone();
        let (revision, carried) =
            self.request.client.supervisor.with_link(|link| (link.revision(), link.carried));
        let call = NewCall {
            method: self.request.method.clone(),
            // A call that can't be encoded passes nothing.
            params: self.request.params.text(revision)?,
            meta: std::mem::take(&mut self.request.meta),
            #[cfg(feature = "http")]
            headers: std::mem::take(&mut self.request.about.headers),
            id: self.request.id.clone(),
            revision,
            is_http: carried != Carried::Otherwise,
        };
        middleware.send(call, move |request| send(self.duplicate().with_request(request))).await
    }

    /// The call as the middleware has changed it.
    fn with_request(mut self, mut request: Request) -> Call<T> {
        self.request.meta = std::mem::take(request.meta_mut());
        #[cfg(feature = "http")]
        (self.request.about.headers = request.take_headers());
        if let Some(params) = request.new_params() {
            if let Some(tool) = request.name()
                && self.request.known == Some(Method::CallTool)
            {
                self = self.about_tool(tool);
            }
            let text = params.as_str().to_owned();
            self.request.params = match self.request.params {
                // Further input requests are answered for the first params.
                Params::Answered { first, .. } => Params::Answered { first, again: text },
                _ => Params::Text(Ok(text)),
            };
        }
        self
    }
}
