//! Owns the functions that answer a server's typed questions, and what a client declares because
//! it has them. Does not own how a question arrives, nor what a form makes of an answer.

pub(crate) mod answer;
pub(crate) mod roots;

use std::{fmt, sync::Arc};

use super::{ClientBuilder, RootSet};
use crate::{
    middleware::{Stack, client::IncomingInput},
    protocol::{
        capabilities::lacking,
        elicitation,
        params::{decode, decode_as},
        sampling::{OfferedTools, balanced},
    },
    rpc::{BoxFuture, Outcome},
};
use serde::Deserialize;
use turnbuckle_types::{
    ClientCapabilities, CreateMessage, CreateMessageResult, Elicit, ElicitResult,
    ElicitationCapability, ListRoots, ListRootsResult, Method, Raw, Revision, Root,
    RootsCapability, RpcError, SamplingCapability, jsonrpc::Params,
};

type Callback<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, Result<A, RpcError>> + Send + Sync>;

/// What a client can be asked, and what it says about that.
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    sampling: Option<Callback<CreateMessage, CreateMessageResult>>,
    elicitation: Option<Callback<Elicit, ElicitResult>>,
    roots: Option<Callback<(), Vec<Root>>>,
    roots_change: RootsChange,
    pub(crate) middleware: Stack<IncomingInput>,
    /// What the user wants declared; each of its members goes before what a callback implies.
    pub(super) explicit: ClientCapabilities,
}

impl Callbacks {
    /// What is declared to a server, of whatever revision: the encoder knows what each has.
    pub(super) fn declared(&self) -> ClientCapabilities {
        let mut declared = self.explicit.clone();
        if self.sampling.is_some() {
            declared.sampling.get_or_insert_with(SamplingCapability::new);
        }
        if self.roots.is_some() {
            declared.roots.get_or_insert_with(|| {
                let mut roots = RootsCapability::new();
                roots.list_changed = (self.roots_change == RootsChange::Told).then_some(true);
                roots
            });
        }
        if self.elicitation.is_some() {
            declared.elicitation.get_or_insert_with(|| {
                let mut both = ElicitationCapability::new();
                both.form = Some(Raw::empty_object());
                both.url = Some(Raw::empty_object());
                both
            });
        }
        declared
    }

    /// Answers with the roots of a set that tells when it changes.
    pub(super) fn with_root_set(&mut self, set: RootSet) {
        self.roots = Some(Arc::new(move |()| Box::pin(std::future::ready(Ok(set.roots())))));
        self.roots_change = RootsChange::Told;
    }

    /// Answers a question, written for `revision`; `None` where no callback is for it. No user
    /// code runs before the future is polled, and dropping the future drops the callback's.
    pub(super) fn answer(
        &self,
        method: Method,
        params: &Params,
        revision: Revision,
    ) -> Option<BoxFuture<'static, Outcome>> {
        let row = method.row();
        if ![row.server, row.input].iter().flatten().any(|span| span.contains(revision)) {
            return None;
        }
        let asked = || IncomingQuestion {
            method,
            params: params.clone(),
            revision,
            declared: self.declared(),
        };
        let answer: BoxFuture<'static, Outcome> = match method {
            Method::CreateMessage => Box::pin(asked().sampling(self.sampling.clone()?)),
            Method::Elicit => Box::pin(asked().elicitation(self.elicitation.clone()?)),
            Method::ListRoots => Box::pin(asked().roots(self.roots.clone()?)),
            _ => return None,
        };
        Some(self.middleware.answer(method.as_str(), params.raw.clone(), revision, answer))
    }
}

/// Whether servers are told when the roots change.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum RootsChange {
    #[default]
    Untold,
    Told,
}

/// One question.
struct IncomingQuestion {
    method: Method,
    params: Params,
    revision: Revision,
    declared: ClientCapabilities,
}

impl IncomingQuestion {
    async fn sampling(self, callback: Callback<CreateMessage, CreateMessageResult>) -> Outcome {
        self.is_allowed()?;
        let question: CreateMessage = decode(&self.params)?;
        // 2025-11-25 client/sampling §Error Handling.
        balanced(&question.messages).map_err(RpcError::invalid_params)?;
        let choice = question.tool_choice.as_ref().and_then(|choice| choice.mode);
        let offered = OfferedTools::new(question.tools.as_deref(), choice);
        let answer = offered.answered(callback(question).await?)?;
        Ok(Raw::at(&answer, self.revision))
    }

    async fn elicitation(self, callback: Callback<Elicit, ElicitResult>) -> Outcome {
        self.is_allowed()?;
        let question = self.elicit()?;
        let form = match &question {
            Elicit::Form(form) => Some(form.requested_schema.clone()),
            _ => None,
        };
        let answer = elicitation::completed(form.as_ref(), callback(question).await?)?;
        Ok(Raw::at(&answer, self.revision))
    }

    async fn roots(self, callback: Callback<(), Vec<Root>>) -> Outcome {
        let _: ListRoots = decode(&self.params)?;
        let roots = callback(()).await?;
        // 2025-11-25 client/roots §Root. Nothing of the others is told, not even in the error.
        if let Some(error) = roots.iter().find_map(|root| roots::sound(&root.uri).err()) {
            tracing::warn!(%error, "this client's roots are not sent");
            let message = "a root of this client is no sound `file://` URI";
            return Err(RpcError::internal(message));
        }
        Ok(Raw::at(&ListRootsResult::new(roots), self.revision))
    }

    /// 2025-11-25 client/elicitation §Error Handling, client/sampling §Tools in Sampling: what was
    /// not declared is refused.
    fn is_allowed(&self) -> Result<(), RpcError> {
        // An older revision has no word for some of what is declared: then it was not.
        let declared = Raw::at(&self.declared, self.revision).decode().unwrap_or_default();
        match lacking(self.method, self.params.text(), &declared, self.revision) {
            Some(capability) => Err(RpcError::invalid_params(format!(
                "this client did not declare the capability `{capability}`"
            ))),
            None => Ok(()),
        }
    }

    /// Decodes by the mode, so that an error can name the member that is wrong.
    fn elicit(&self) -> Result<Elicit, RpcError> {
        #[derive(Deserialize)]
        struct Mode {
            mode: Option<String>,
        }
        match decode_as::<Mode>(&self.params)?.mode.as_deref() {
            None | Some("form") => decode(&self.params).map(Elicit::Form),
            Some("url") => decode(&self.params).map(Elicit::Url),
            Some(other) => Err(RpcError::invalid_params(format!(
                "`params.mode`: `{other}` is neither `form` nor `url`"
            ))),
        }
    }
}

impl ClientBuilder {
    /// Lets servers use this client's model, and declares so: `sampling/createMessage`.
    ///
    /// In both eras: a legacy server asks while a call runs, a modern one answers a call with its
    /// questions, and the call is made again with the answers. A server may offer the model tools
    /// only if [`capabilities`](ClientBuilder::capabilities)
    /// say so (`sampling.tools`). An answer that is none to the question is not sent: several blocks
    /// or a call where no tools were offered, a call of a tool that was not, a tool's result. It is
    /// an error like the callback's own, and so is a question whose calls and results don't match, which
    /// reaches no callback. An error goes to a legacy server as it is, and fails the call
    /// of a modern one. The future is dropped when the server gives its question up, or the call
    /// that it belongs to is dropped; while it runs, no call of this client runs out of
    /// time. This goes before [`on_request`](ClientBuilder::on_request).
    ///
    /// ```
    /// use turnbuckle::{
    ///     Client,
    ///     types::{CreateMessageResult, Role, TextContent},
    /// };
    /// let builder = Client::builder().on_sampling(async |question| {
    ///     let text = format!("{} messages, and all I say is this.", question.messages.len());
    ///     Ok(CreateMessageResult::new(Role::Assistant, TextContent::new(text), "parrot-1"))
    /// });
    /// # let _ = builder;
    /// ```
    pub fn on_sampling<F, Fut>(mut self, answer: F) -> ClientBuilder
    where
        F: Fn(CreateMessage) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.callbacks.sampling = Some(Arc::new(move |question| Box::pin(answer(question))));
        self
    }

    /// Lets servers ask the user, by a form or by a page to visit, and declares so:
    /// `elicitation/create`.
    ///
    /// Of a form that was accepted, fields that the answer leaves out get the form's defaults,
    /// and what does not fit the form is not sent. A client that has only one of the two ways
    /// says which in its [`capabilities`](ClientBuilder::capabilities); the other is then
    /// refused. Errors, cancellation and time are as for
    /// [`on_sampling`](ClientBuilder::on_sampling).
    ///
    /// ```
    /// use turnbuckle::{
    ///     Client,
    ///     types::{Elicit, ElicitAction, ElicitResult},
    /// };
    /// let builder = Client::builder().on_elicitation(async |question| {
    ///     Ok(ElicitResult::new(match question {
    ///         // What the form starts with is fine.
    ///         Elicit::Form(_) => ElicitAction::Accept,
    ///         _ => ElicitAction::Decline,
    ///     }))
    /// });
    /// # let _ = builder;
    /// ```
    pub fn on_elicitation<F, Fut>(mut self, answer: F) -> ClientBuilder
    where
        F: Fn(Elicit) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, RpcError>> + Send + 'static,
    {
        self.callbacks.elicitation = Some(Arc::new(move |question| Box::pin(answer(question))));
        self
    }

    /// Tells servers where they may work, and declares so: `roots/list`. Each is a `file://` URI;
    /// others are not sent. For roots that change there is [`root_set`](ClientBuilder::root_set).
    ///
    /// ```
    /// use turnbuckle::{Client, types::Root};
    /// let builder = Client::builder().roots([Root::new("file:///home/ada/project")]);
    /// # let _ = builder;
    /// ```
    pub fn roots(self, roots: impl IntoIterator<Item = Root>) -> ClientBuilder {
        let roots: Vec<Root> = roots.into_iter().collect();
        self.on_roots(move || std::future::ready(Ok(roots.clone())))
    }

    /// As [`roots`](ClientBuilder::roots), for places that are found out when a server asks.
    pub fn on_roots<F, Fut>(mut self, answer: F) -> ClientBuilder
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Root>, RpcError>> + Send + 'static,
    {
        self.callbacks.roots = Some(Arc::new(move |()| Box::pin(answer())));
        self.callbacks.roots_change = RootsChange::Untold;
        self.root_changes = None;
        self
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks").field("explicit", &self.explicit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
