//! The client's half of [`__seam`](crate::__seam): requests and notifications whose text is already
//! encoded, and every message of the server that no call waits for.

use std::{borrow::Cow, sync::Arc};

use super::{Client, ClientBuilder, ServerRequest};
use crate::{
    client::subscribe::{Claim, With, lies_in},
    error::{Error, Result},
    rpc::{Abandon, BoxFuture, Exchange, Note, Outcome, Outgoing},
};
use turnbuckle_types::{Implementation, Method, Raw, RequestId};

/// Receives everything that a server sends and that answers no request. Called by the reader, so that
/// no method may wait.
pub trait ServerEvents: Send + Sync + 'static {
    /// Answers a request of the server, which came on the stream of the request `within` where the
    /// transport tells. Dropping the future means that the server no longer waits.
    fn request(
        &self,
        request: ServerRequest,
        within: Option<RequestId>,
    ) -> BoxFuture<'static, Outcome>;
    /// Receives a notification, which came on the stream of the request `within` where the transport
    /// tells. The [`Exchange`] of that request yields it, too.
    fn notification(&self, note: Note, within: Option<&RequestId>);
    /// The connection has ended for this reason.
    fn closed(&self, error: Error);
}

/// Sends everything that the server says to `events`, and has it answer the server's requests.
pub fn observe(mut builder: ClientBuilder, events: Arc<dyn ServerEvents>) -> ClientBuilder {
    let answers = events.clone();
    builder.events = Some(events);
    builder.on_request(move |request| {
        let within = request.within.clone();
        answers.request(request, within)
    })
}

/// Sets the whole description that the client introduces itself with.
pub fn describe(mut builder: ClientBuilder, info: Implementation) -> ClientBuilder {
    builder.info = info;
    builder
}

/// A request whose params are already encoded.
#[derive(Debug)]
pub struct ForwardRequest<'a> {
    /// The id to send it with.
    pub id: RequestId,
    /// The method.
    pub method: Cow<'static, str>,
    /// The whole params object with its `_meta`, or empty.
    pub params: &'a str,
    /// Where in `params` the progress token is inserted.
    pub token_at: Option<usize>,
}

/// Opens an exchange without timeouts. Nothing is sent before it is polled.
pub fn forward(client: &Client, request: ForwardRequest<'_>) -> Exchange {
    let ForwardRequest { id, method, params, token_at } = request;
    let known = Method::from_name(&method);
    let abandonable = known.is_none_or(|method| method.row().abandonable);
    client.0.link().transport.open(Outgoing {
        token_at,
        id: Some(id),
        abandon: if abandonable { Abandon::Signal } else { Abandon::Silence },
        #[cfg(feature = "http")]
        mirror: mirror(client, known, params),
        ..Outgoing::new(method, params.to_owned())
    })
}

/// Sends a notification. Dropping the future before it is done sends nothing.
pub fn notify(client: &Client, note: Note) -> BoxFuture<'static, ()> {
    let link = client.0.link();
    Box::pin(async move { link.transport.notify(note).await })
}

/// A subscription to one resource of a legacy server. Dropping it unsubscribes, unless another claim
/// for the same resource exists.
pub struct ResourceClaim(Claim);

impl ResourceClaim {
    /// Waits for the server's answer to the subscription. Dropping the future changes nothing.
    pub async fn answered(&self) -> Result<()> {
        self.0.answered().await
    }
}

impl std::fmt::Debug for ResourceClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceClaim").finish_non_exhaustive()
    }
}

/// Subscribes to a resource of a legacy server. Has to be called in a runtime.
pub fn claim_resource(client: &Client, uri: &str) -> ResourceClaim {
    let link = client.0.link();
    let around = &client.0.settings().middleware;
    ResourceClaim(link.subscriptions.claim(uri, &link, around, With::default()))
}

/// Returns whether a subscription to `watched` covers changes of `uri`.
pub fn covers(watched: &str, uri: &str) -> bool {
    lies_in(uri, watched)
}

/// Stores which arguments of the listed tools are repeated in HTTP headers.
pub fn learn_tools(client: &Client, listing: &Raw) {
    #[cfg(feature = "http")]
    if let Some(repeated) = &client.0.link().repeated
        && let Ok(mut page) = listing.decode::<turnbuckle_types::ListToolsResult>()
    {
        repeated.learn(&mut page.tools);
    }
    #[cfg(not(feature = "http"))]
    let _ = (client, listing);
}

/// Returns whether a call was refused because of the headers that repeat its arguments.
pub fn lacks_headers(client: &Client, method: Option<Method>, error: &Error) -> bool {
    #[cfg(feature = "http")]
    {
        let mismatch = turnbuckle_types::code::HEADER_MISMATCH;
        method == Some(Method::CallTool)
            && client.0.link().repeated.is_some()
            && error.status() == Some(400)
            && error.as_rpc().is_some_and(|rpc| rpc.code == mismatch)
    }
    #[cfg(not(feature = "http"))]
    {
        let _ = (client, method, error);
        false
    }
}

/// Returns the headers that repeat parts of a request.
#[cfg(feature = "http")]
fn mirror(client: &Client, method: Option<Method>, params: &str) -> crate::rpc::Mirror {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let link = client.0.link();
    let called = link.repeated.as_ref().filter(|_| method == Some(Method::CallTool));
    let repeated = called.and_then(|repeated| {
        let Named { name } = serde_json::from_str(params).ok()?;
        Some(repeated.headers(&name, params))
    });
    crate::rpc::Mirror {
        revision: Some(link.revision()),
        params: repeated.unwrap_or_default(),
        ..Default::default()
    }
}
