//! The part of a call that does not depend on its result type: method, params and options.

use std::{
    borrow::Cow,
    mem,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use super::{
    super::{Inner, Timeouts},
    events::CallNote,
};
use crate::{
    client::{
        connection::{Retry, Twice},
        handlers::answer::Answering,
        tools::{CompileOutput, KnownTool},
    },
    error::Result,
    rpc::Abandon,
};
use tokio::sync::mpsc;
use turnbuckle_types::{LogLevel, Meta, Method, Progress, RequestId, Revision};

/// A request with its options. Attempts at the same call clone it.
#[derive(Clone)]
pub(crate) struct CallRequest {
    pub(crate) client: Arc<Inner>,
    pub(crate) method: Cow<'static, str>,
    /// The method's row in the table of methods.
    pub(crate) known: Option<Method>,
    pub(crate) params: Params,
    pub(crate) meta: Meta,
    pub(crate) id: Option<RequestId>,
    pub(crate) timeouts: Timeouts,
    pub(crate) on_progress: Option<ProgressCallback>,
    pub(crate) abandon: Abandon,
    /// How often the server may ask for input before it answers; `None` if the method never asks.
    pub(crate) rounds: Option<usize>,
    /// How long the client's callbacks may take, over all rounds.
    pub(super) answer_timeout: Option<Duration>,
    /// Stands still while this client answers a question of this call. Created when it is needed.
    pub(crate) clock: Option<Arc<Answering>>,
    pub(crate) retry: Retry,
    pub(crate) twice: Twice,
    /// The method whose capability the server must have declared.
    pub(super) needs: Option<Method>,
    pub(crate) log_level: Option<LogLevel>,
    /// Receives the events of a call that is read as a stream.
    pub(crate) notes: Option<mpsc::Sender<CallNote>>,
    /// Set by the last caller that leaves a shared request; the server is told when it is dropped.
    pub(crate) cancel_reason: Option<Arc<OnceLock<String>>>,
    /// The listing's entry of the tool that is called.
    pub(super) tool: Option<Arc<KnownTool>>,
    /// Compiles the schema that the structured output of the tool is checked against.
    pub(crate) validate_output: Option<CompileOutput>,
    /// Whether this is part of a call that has been through the middleware.
    pub(crate) skip_middleware: bool,
    #[cfg(feature = "http")]
    pub(crate) about: About,
}

/// Shared by all attempts at one call.
pub(crate) type ProgressCallback = Arc<Mutex<dyn FnMut(Progress) + Send>>;

/// The HTTP headers of a call.
#[cfg(feature = "http")]
#[derive(Clone, Default)]
pub(crate) struct About {
    /// The name of the tool that is called.
    pub(crate) tool: Option<String>,
    /// The member of the params that `Mcp-Name` repeats, for a custom method.
    pub(crate) named_by: Option<&'static str>,
    pub(crate) headers: Vec<(http::HeaderName, http::HeaderValue)>,
}

impl CallRequest {
    pub(super) fn new(
        client: &Arc<Inner>,
        method: Cow<'static, str>,
        params: Params,
    ) -> CallRequest {
        let known = Method::from_name(&method);
        let abandonable = known.is_none_or(|method| method.row().abandonable);
        CallRequest {
            client: client.clone(),
            method,
            known,
            params,
            meta: Meta::new(),
            id: None,
            timeouts: client.settings().timeouts,
            on_progress: None,
            abandon: if abandonable { Abandon::Signal } else { Abandon::Silence },
            rounds: None,
            answer_timeout: None,
            clock: None,
            retry: Retry::default(),
            twice: Twice::of(known),
            needs: None,
            log_level: None,
            notes: None,
            cancel_reason: None,
            tool: None,
            validate_output: client.settings().validate_output,
            skip_middleware: false,
            #[cfg(feature = "http")]
            about: About::default(),
        }
    }

    /// Adds a header. An invalid one fails the call.
    #[cfg(feature = "http")]
    pub(crate) fn add_header(&mut self, name: &str, value: &str) {
        match super::super::http::own_header(name, value) {
            Ok(header) => self.about.headers.push(header),
            Err(error) => self.params = Params::Text(Err(error)),
        }
    }

    /// Sets the tool that is called, and uses what a listing said about it.
    pub(super) fn set_tool(&mut self, name: &str) {
        self.client.supervisor.with_link(|link| {
            self.tool = link.known.tool(name);
            #[cfg(feature = "http")]
            if link.repeated.is_some() {
                self.about.tool = Some(name.to_owned());
            }
        });
        // What is known about another tool does not apply.
        self.twice = match &self.tool {
            Some(tool) => tool.twice,
            None => Twice::of(self.known),
        };
    }
}

/// The params of a call.
pub(crate) enum Params {
    /// The text of an object, or empty for none; or why it could not be encoded.
    Text(Result<String>),
    /// The same, encoded for the revision of the connection.
    At(Arc<dyn Fn(Revision) -> Result<String> + Send + Sync>),
    /// The first request, and the same with the answers to the server's questions.
    Answered { first: String, again: String },
}

impl Params {
    /// Returns the params of the next request and leaves them in place.
    pub(crate) fn text(&mut self, revision: Revision) -> Result<String> {
        match self {
            Params::Text(Ok(text)) => Ok(text.clone()),
            Params::Text(wrong) => mem::replace(wrong, Ok(String::new())),
            Params::At(text) => text(revision),
            Params::Answered { again, .. } => Ok(again.clone()),
        }
    }

    /// Takes the params of the first request, and those of the next one if they differ.
    pub(crate) fn take(&mut self, revision: Revision) -> Result<(String, Option<String>)> {
        match self {
            Params::Text(text) => Ok((mem::replace(text, Ok(String::new()))?, None)),
            Params::At(text) => Ok((text(revision)?, None)),
            Params::Answered { first, again } => Ok((mem::take(first), Some(mem::take(again)))),
        }
    }
}

impl Clone for Params {
    fn clone(&self) -> Params {
        match self {
            Params::Text(Ok(text)) => Params::Text(Ok(text.clone())),
            Params::Text(Err(wrong)) => Params::Text(Err(wrong.again())),
            Params::At(text) => Params::At(text.clone()),
            Params::Answered { first, again } => {
                Params::Answered { first: first.clone(), again: again.clone() }
            }
        }
    }
}
