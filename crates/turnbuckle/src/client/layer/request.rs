//! Owns a call as layers see it, and what becomes of their errors. Does not own how it is made.

use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use turnbuckle_types::{Meta, Raw, Revision};

use super::Response;
use crate::{
    dispatch::BoxFuture,
    error::{Error, ErrorKind, Executed, Result},
    layers::{self, Answer, BoxError, Onward, Passing, Then},
};

/// What a layer stands around: further layers, then the server.
///
/// It is always ready, and cheap to clone. Dropping its future cancels the call. A request that was
/// cloned can be handed on again: each time is a call of its own.
#[derive(Clone, Debug)]
pub struct Next(pub(super) ());

layers::next!(Next: Request => Response, Error);

/// A call on its way through the layers of a client.
///
/// A clone of it is the same call once more: that is how tower's `Retry` makes it again. Each time
/// has the timeouts that the call was given, and the id that its caller chose, if any: two at once
/// are possible only without one.
///
/// ```
/// use turnbuckle::client_layer::Request;
/// fn is_call_of(request: &Request, tool: &str) -> bool {
///     request.method() == "tools/call" && request.name() == Some(tool)
/// }
/// # let _ = is_call_of;
/// ```
#[derive(Clone)]
pub struct Request {
    method: Cow<'static, str>,
    name: Option<String>,
    params: Raw,
    /// Whether a layer has put other params in the place of the caller's.
    replaced: bool,
    meta: Meta,
    #[cfg(feature = "http")]
    headers: Vec<(http::HeaderName, http::HeaderValue)>,
    revision: Revision,
    /// Whether anything of it may have reached the server.
    went: Arc<AtomicBool>,
    onward: Onward<Request>,
}

/// What a call says and carries, before and after it passes.
pub(crate) struct Said {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Raw,
    pub(crate) meta: Meta,
    #[cfg(feature = "http")]
    pub(crate) headers: Vec<(http::HeaderName, http::HeaderValue)>,
}

impl Request {
    pub(crate) fn new(said: Said, name: Option<String>, revision: Revision) -> Request {
        Request {
            method: said.method,
            name,
            params: said.params,
            replaced: false,
            meta: said.meta,
            #[cfg(feature = "http")]
            headers: said.headers,
            revision,
            went: Arc::default(),
            onward: Onward::default(),
        }
    }

    /// What is to be sent, and whether a layer has changed its params.
    pub(crate) fn into_said(self) -> (Said, bool) {
        let said = Said {
            method: self.method,
            params: self.params,
            meta: self.meta,
            #[cfg(feature = "http")]
            headers: self.headers,
        };
        (said, self.replaced)
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// What it is about: the name of a tool or a prompt, the uri of a resource.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The params, without what the protocol adds to them; `{}` if there are none.
    pub fn params(&self) -> &Raw {
        &self.params
    }

    /// Sends other params, which have to be an object. `_meta` has no place in them: see
    /// [`meta_mut`](Request::meta_mut).
    pub fn set_params(&mut self, params: impl Into<Raw>) -> Result<()> {
        let params = params.into();
        let fits = turnbuckle_types::jsonrpc::Params::of(params.clone());
        if !params.is_object() || fits.is_ok_and(|params| params.meta.is_some()) {
            let message = "a call's params are an object, and `_meta` is no part of it here";
            return Err(Error::new(ErrorKind::Codec, message));
        }
        self.name = super::super::around::name(&self.method, params.as_str());
        self.params = params;
        self.replaced = true;
        Ok(())
    }

    /// What the caller put into `_meta`. What the protocol writes there is not in it.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// As [`meta`](Request::meta), to be changed.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }

    /// A header that the caller, or a layer further out, added to this call.
    #[cfg(feature = "http")]
    pub fn header(&self, name: &str) -> Option<&http::HeaderValue> {
        let mut found = self.headers.iter().rev().filter(|(own, _)| own.as_str() == name);
        found.next().map(|(_, value)| value)
    }

    /// Adds a header to this call, on the wire that has headers; one of the same name is replaced.
    #[cfg(feature = "http")]
    pub fn set_header(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Result<()> {
        let (name, value) = super::super::http::own_header(name.as_ref(), value.as_ref())?;
        self.headers.retain(|(own, _)| *own != name);
        self.headers.push((name, value));
        Ok(())
    }

    /// The revision of the connection.
    pub fn revision(&self) -> Revision {
        self.revision
    }
}

/// What an error of a layer is turned into depends on how far the call came.
pub(crate) struct Edge {
    method: Cow<'static, str>,
    went: Arc<AtomicBool>,
}

impl Passing for Request {
    type Answer = Response;
    type Refusal = Error;
    type Edge = Edge;

    fn edge(&self) -> Edge {
        Edge { method: self.method.clone(), went: self.went.clone() }
    }

    fn settle(edge: Edge, error: BoxError) -> Answer<Request> {
        let executed = if edge.went.load(Relaxed) { Executed::Maybe } else { Executed::No };
        Err(match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::of_layer(&edge.method, error, executed),
        })
    }

    fn onward(&mut self) -> &mut Onward<Request> {
        &mut self.onward
    }

    fn go(self, then: Then<Request>) -> BoxFuture<'static, Answer<Request>> {
        Box::pin(async move {
            self.went.store(true, Relaxed);
            then(self).await
        })
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("name", &self.name)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
