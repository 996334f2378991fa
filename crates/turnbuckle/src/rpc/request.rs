//! Requests in both directions, as the transports hand them on.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use super::memory::HeldBytes;
use turnbuckle_types::{
    RequestId, RpcError,
    jsonrpc::{self, Params, Text},
};

/// A request to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Cow<'static, str>,
    /// JSON text of the params, or empty for none.
    pub(crate) params: String,
    /// Where in `params` the progress token, which is the id, goes.
    pub(crate) token_at: Option<usize>,
    /// The id that the caller chose.
    pub(crate) id: Option<RequestId>,
    pub(crate) abandon: Abandon,
    #[cfg(feature = "http")]
    pub(crate) mirror: Mirror,
    #[cfg(feature = "http")]
    pub(crate) mark: Option<Mark>,
}

/// A value of the caller that is handed back with each request that the peer sends on the stream of
/// this one.
#[cfg(feature = "http")]
pub(crate) type Mark = Arc<dyn std::any::Any + Send + Sync>;

/// The facts that HTTP repeats as headers of a request.
#[cfg(feature = "http")]
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    /// The revision under which this very request is sent.
    pub(crate) revision: Option<turnbuckle_types::Revision>,
    /// The name or URI of the item, where the sender knows it. It is looked up in the params otherwise.
    pub(crate) name: Option<String>,
    /// The member of the params that holds the name, for a method that the protocol does not know.
    pub(crate) named_by: Option<&'static str>,
    /// A tool's arguments: header and encoded value.
    pub(crate) params: Vec<(String, String)>,
    /// Headers that the caller added to this one request.
    pub(crate) extra: Vec<(http::HeaderName, http::HeaderValue)>,
}

/// The signal that the peer gets when a written request is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abandon {
    /// The cancellation signal of the transport.
    Signal,
    /// None: for `initialize`, for `server/discover`, or because the caller wants none.
    Silence,
}

impl Outgoing {
    pub(crate) fn new(method: impl Into<Cow<'static, str>>, params: String) -> Outgoing {
        Outgoing {
            method: method.into(),
            params,
            token_at: None,
            id: None,
            abandon: Abandon::Signal,
            #[cfg(feature = "http")]
            mirror: Mirror::default(),
            #[cfg(feature = "http")]
            mark: None,
        }
    }

    /// Appends the whole request.
    pub(crate) fn write(&self, id: &RequestId, out: &mut Vec<u8>) {
        if self.token_at.is_none() {
            return jsonrpc::write_request(out, id, &self.method, &self.params);
        }
        jsonrpc::write_request(out, id, &self.method, "");
        // The envelope closes with a brace; the params go before it.
        out.pop();
        out.extend_from_slice(br#","params":"#);
        self.write_params(id, out);
        out.push(b'}');
    }

    /// Appends the params with the progress token in its place.
    pub(crate) fn write_params(&self, id: &RequestId, out: &mut Vec<u8>) {
        let Some(at) = self.token_at else {
            return out.extend_from_slice(self.params.as_bytes());
        };
        let (before, after) = self.params.split_at(at);
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(br#""progressToken":"#);
        id.write_to(out);
        if !after.starts_with('}') {
            out.push(b',');
        }
        out.extend_from_slice(after.as_bytes());
    }
}

/// A received request.
pub(crate) struct Incoming {
    pub(crate) id: RequestId,
    pub(crate) method: Text,
    pub(crate) params: Params,
    /// Held for as long as the request counts as in flight.
    pub(crate) permit: Permit,
    /// The transport part of the request.
    pub(crate) came: RequestOrigin,
}

/// The transport part of a received request.
#[derive(Clone, Debug, Default)]
pub(crate) enum RequestOrigin {
    /// A message of a stream transport, which has no headers.
    #[default]
    Alone,
    /// A message on the stream of a request of this side, which had this mark.
    #[cfg(feature = "http")]
    Within(RequestId, Option<Mark>),
    /// A POST whose headers must agree with the body.
    #[cfg(feature = "http")]
    ByPost(Arc<HttpHead>),
    /// A POST in a session, whose headers do not describe the message.
    #[cfg(feature = "http")]
    InSession(Arc<HttpHead>),
}

/// The headers and extensions of an HTTP request.
#[cfg(feature = "http")]
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpHead {
    pub(crate) headers: http::HeaderMap,
    pub(crate) extensions: http::Extensions,
}

#[cfg(feature = "http")]
impl RequestOrigin {
    pub(crate) fn head(&self) -> Option<&HttpHead> {
        match self {
            RequestOrigin::Alone | RequestOrigin::Within(..) => None,
            RequestOrigin::ByPost(head) | RequestOrigin::InSession(head) => Some(head),
        }
    }
}

impl Incoming {
    pub(crate) fn new(id: RequestId, method: Text, params: Params, permit: Permit) -> Incoming {
        Incoming { id, method, params, permit, came: RequestOrigin::default() }
    }
}

/// Counts a request as in flight for as long as it lives, with the memory of its message.
pub(crate) struct Permit {
    in_flight: Arc<AtomicUsize>,
    /// Shared by the requests of a batch.
    held: Option<Arc<HeldBytes>>,
}

impl Permit {
    /// Counts one more request. Fails if that would be more than `limit`.
    pub(crate) fn take(in_flight: &Arc<AtomicUsize>, limit: usize) -> Result<Permit, RpcError> {
        let before = in_flight.fetch_add(1, Relaxed);
        let permit = Permit { in_flight: in_flight.clone(), held: None };
        if before < limit {
            return Ok(permit);
        }
        Err(RpcError::internal(format!(
            "too many requests in flight on this connection: the limit is {limit} (in_flight)"
        )))
    }

    /// Counts the memory of the message, too.
    pub(crate) fn holding(mut self, held: Option<Arc<HeldBytes>>) -> Permit {
        self.held = held;
        self
    }
}

#[cfg(feature = "server")]
impl Permit {
    /// Returns the counter of the connection.
    pub(crate) fn counter(&self) -> Arc<AtomicUsize> {
        self.in_flight.clone()
    }

    /// Counts a request that was admitted before, without a check of the limit.
    pub(crate) fn another(in_flight: &Arc<AtomicUsize>) -> Permit {
        in_flight.fetch_add(1, Relaxed);
        Permit { in_flight: in_flight.clone(), held: None }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }
}
