//! Owns the part of a handler's context that asks: one way to write it, and what it means in each
//! era. Does not own the run that waits for the answers.

use std::{
    future::poll_fn,
    sync::{MutexGuard, PoisonError},
};

use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_types::{ElicitationComplete, Method, Questions, Raw, write_at};

use super::{
    error::AskError,
    question::{AnswerMismatch, Question},
    round::ElicitRound,
};
use crate::{
    error::Error,
    protocol::capabilities::{lacking, lacking_for_form},
    rpc::{BoxFuture, Note},
    server::handler::context::Ctx,
};

impl Ctx {
    /// Asks the client something, and gives its answer once it is checked. (Feature `ask`, which is on
    /// unless default features are off.)
    ///
    /// In the legacy era this is a request to the client, and the handler waits here. In the modern
    /// era a server can't send requests: the first time this fails, with an error that says that the
    /// answer has yet to come. Pass it on with `?`. **A handler that ends while a question is open
    /// is run again from the top when the client has answered**; then this gives the answer at once.
    /// What it came to without the answer is not used, whether it failed or not.
    ///
    /// So what stands before a question is done once for each round. What must not be repeated goes
    /// into [`once`](Ctx::once); what does not depend on an answer is best asked for together, with
    /// `tokio::join!`. `key` names the question: it must be the same in each run, and another for
    /// each question; who asks twice with one key gets the first answer twice.
    ///
    /// A client that lacks the capability that the question needs is not asked: in the modern era it
    /// gets error −32021 if the handler fails because of that, unless it
    /// [looks](AskError::missing_capability) and does without; in the legacy era the handler's
    /// error is as any other.
    ///
    /// Dropping the future before it is done cancels the question on a client of the legacy era, and
    /// else asks nothing.
    ///
    /// ```
    /// use turnbuckle::{
    ///     Ctx, Server, ToolError,
    ///     elicit::{elicit, roots},
    ///     tool,
    /// };
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Name { name: String }
    ///
    /// async fn greet(ctx: Ctx) -> Result<String, ToolError> {
    ///     // Both in one round.
    ///     let (name, roots) = tokio::join!(
    ///         ctx.ask("name", elicit::<Name>("Who are you?")),
    ///         ctx.ask("roots", roots()),
    ///     );
    ///     let (Name { name }, roots) = (name?, roots?);
    ///     Ok(format!("Hello, {name}! You have {} roots.", roots.len()))
    /// }
    /// let server = Server::new("demo", "1.0").tool(tool("greet", greet));
    /// # let _ = server;
    /// ```
    pub async fn ask<Q: Question>(&self, key: &str, question: Q) -> Result<Q::Answer, AskError> {
        let kept = self.asking().kept_answer(key);
        let fits = |kept: &Raw| !matches!(question.check(kept), Err(AnswerMismatch::Unfit(_)));
        let answer = match kept {
            // Layers saw it when it came.
            Some(kept) if fits(&kept) => kept,
            kept => {
                // What a handler of today does not take was kept for one of yesterday.
                if kept.is_some() {
                    self.asking().forget(key);
                }
                let is_modern = self.revision().questions() == Questions::InResults;
                if is_modern && !self.has_input_middleware() {
                    self.given_or_open(key, &question)?
                } else {
                    // Rare, and its room would be in the future of every handler that asks.
                    Box::pin(self.given_or_asked(key, &question)).await?
                }
            }
        };
        self.checked(key, &question, &answer)
    }

    /// Does something once, however often the handler is run because it asks: the value that it came
    /// to is kept with the client, sealed, and given again. Only success is kept. The value travels
    /// with each round, so it should be small.
    ///
    /// A client that begins anew, instead of going on, gets it done anew.
    ///
    /// Dropping the future drops `work` where it stands; nothing is kept then.
    ///
    /// ```
    /// use turnbuckle::{Ctx, Server, ToolError, elicit::elicit, tool};
    /// # async fn reserve() -> Result<u32, ToolError> { Ok(7) }
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Address { street: String }
    ///
    /// async fn order(ctx: Ctx) -> Result<String, ToolError> {
    ///     let number = ctx.once("reserve", reserve()).await?;
    ///     let to: Address = ctx.ask("address", elicit("Where to?")).await?;
    ///     Ok(format!("order {number} goes to {}", to.street))
    /// }
    /// let server = Server::new("shop", "1.0").tool(tool("order", order));
    /// # let _ = server;
    /// ```
    pub async fn once<T, E>(
        &self,
        key: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<AskError>,
    {
        let broken = |error: serde_json::Error| {
            AskError::own(key, format!("its value can't be kept: {error}"))
        };
        let done = self.asking().done(key);
        if let Some(value) = done {
            return value.decode().map_err(|error| broken(error).into());
        }
        let value = work.await?;
        let kept = Raw::new(&value).map_err(broken)?;
        self.asking().keep_done(key, kept);
        Ok(value)
    }

    /// The answer to a question that was asked by hand, with
    /// [`InputRequired`](crate::elicit::InputRequired): `None` if there is none.
    ///
    /// Like any other, it passes the [middleware](crate::middleware::server::InputRequest) for
    /// input requests once before a handler sees it. In the legacy era it has done so before the
    /// handler is run again. In the modern era it does so here, and what a layer has against it is
    /// the error.
    ///
    /// Dropping the future leaves the answer where it is.
    pub async fn answer<Q: Question>(
        &self,
        key: &str,
        question: Q,
    ) -> Option<Result<Q::Answer, AskError>> {
        let kept = self.asking().kept_answer(key);
        let known = match kept {
            Some(kept) => Ok(kept),
            None => self.given(key, &question).await?,
        };
        Some(known.and_then(|known| self.checked(key, &question, &known)))
    }

    /// What was kept by hand, with [`InputRequired::state`](crate::elicit::InputRequired::state), when the
    /// handler ran before: `None` the first time.
    pub fn state<S: DeserializeOwned>(&self) -> Option<S> {
        let state = self.asking().by_hand()?;
        match state.decode() {
            Ok(state) => Some(state),
            Err(error) => {
                tracing::error!(%error, "the state of a request is of another type");
                None
            }
        }
    }

    /// Whether the client says that it can answer this.
    ///
    /// ```
    /// use turnbuckle::{Ctx, elicit::sample};
    /// async fn summary(ctx: Ctx) -> &'static str {
    ///     if ctx.can_ask(&sample("…")) { "the client has a model" } else { "it has none" }
    /// }
    /// # let _ = summary;
    /// ```
    pub fn can_ask<Q: Question>(&self, question: &Q) -> bool {
        question
            .params(self.revision())
            .is_ok_and(|params| self.lacks_for(question, &params).is_none())
    }

    /// Tells a client of 2025-11-25 that what happened on a page is over: see
    /// [`ElicitPage::id`](crate::elicit::ElicitPage::id). Other revisions know no such message, and for them
    /// this does nothing. It reaches the client that made this request, also after the request has
    /// ended. Waits only while the client is far behind. Dropping the future tells nothing.
    pub async fn elicitation_complete(&self, id: &str) {
        let revision = self.revision();
        let method = Method::ElicitationComplete;
        if !method.sent_by_server(revision) {
            return;
        }
        let note = ElicitationComplete::new(id);
        let is_over = self.asking().is_over;
        if is_over {
            let peer = self.0.peer.as_ref().and_then(|peer| peer.transport());
            if let Some(peer) = peer {
                peer.notify(Note::new(method.as_str(), Some(Raw::at(&note, revision)))).await;
            }
            return;
        }
        let mut render = |out: &mut Vec<u8>| write_at(&note, revision, out);
        let replies = &self.0.replies;
        poll_fn(|context| replies.poll_note(context, method.as_str(), &mut render)).await;
    }

    /// The answer that came with this request, or a question for the result of it.
    fn given_or_open<Q: Question>(&self, key: &str, question: &Q) -> Result<Raw, AskError> {
        let given = self.asking().given(key);
        if let Some(given) = given {
            return Ok(given);
        }
        let params = self.traced(self.askable(key, question)?);
        self.asking().open(key, question.method(), params);
        Err(AskError::suspended(key))
    }

    /// The same past layers, or in the way of the legacy era.
    async fn given_or_asked<Q: Question>(&self, key: &str, question: &Q) -> Result<Raw, AskError> {
        match self.given(key, question).await {
            Some(given) => given,
            None => {
                let params = self.askable(key, question)?;
                self.outgoing(key, question.method(), params, None).await
            }
        }
    }

    /// The answer that came with this request, once it has passed the layers.
    async fn given<Q: Question>(&self, key: &str, question: &Q) -> Option<Result<Raw, AskError>> {
        let given = self.asking().given(key)?;
        if !self.has_input_middleware() {
            return Some(Ok(given));
        }
        let params = question.params(self.revision()).map_err(|why| AskError::own(key, why));
        Some(match params {
            Ok(params) => self.outgoing(key, question.method(), params, Some(given)).await,
            Err(error) => Err(error),
        })
    }

    /// The params of a question that can be put to this client.
    fn askable<Q: Question>(&self, key: &str, question: &Q) -> Result<Raw, AskError> {
        let revision = self.revision();
        let params = question.params(revision).map_err(|why| AskError::own(key, why))?;
        match self.lacks_for(question, &params) {
            None => Ok(params),
            Some(capability) => {
                let error = AskError::unsupported(key, capability, revision);
                self.asking().note(&error);
                Err(error)
            }
        }
    }

    fn lacks_for<Q: Question>(&self, question: &Q, params: &Raw) -> Option<&'static str> {
        if question.is_form() {
            return lacking_for_form(&self.client_capabilities(), self.revision());
        }
        self.lacks(question.method(), params)
    }

    /// The capability that a question needs and the client did not declare.
    pub(super) fn lacks(&self, method: Method, params: &Raw) -> Option<&'static str> {
        lacking(method, params.as_str(), &self.client_capabilities(), self.revision())
    }

    /// Puts a question to the client in the way of its era, past the layers. `known` is the answer if
    /// it is there already: then only layers are asked.
    pub(super) async fn outgoing(
        &self,
        key: &str,
        method: Method,
        params: Raw,
        known: Option<Raw>,
    ) -> Result<Raw, AskError> {
        if self.revision().questions() == Questions::AsRequests {
            let asked = self.request(method.as_str(), params).await;
            return asked.map_err(|error| AskError::failed(key, error));
        }
        let params = self.traced(params);
        if !self.has_input_middleware() {
            self.asking().open(key, method, params);
            return Err(AskError::suspended(key));
        }
        let owned = key.to_owned();
        let send = move |ctx: Ctx, params| -> BoxFuture<'static, _> {
            Box::pin(async move {
                if let Some(answer) = known {
                    return Ok(answer);
                }
                ctx.asking().open(&owned, method, params);
                Err(AskError::suspended(&owned).into())
            })
        };
        let answered = self.send_through_middleware(method.as_str(), params, Box::new(send)).await;
        answered.map_err(|error| match error.downcast() {
            Ok(error) => *error,
            Err(error) => {
                let refused = Error::refused(format!("`{method}` was not asked"));
                AskError::failed(key, refused.with_source(error))
            }
        })
    }

    /// What an answer comes to. A no is an answer too: it is not asked for again.
    fn checked<Q: Question>(
        &self,
        key: &str,
        question: &Q,
        answer: &Raw,
    ) -> Result<Q::Answer, AskError> {
        let revision = self.revision();
        match question.check(answer) {
            Err(unfit @ AnswerMismatch::Unfit(_)) => {
                let error = AskError::unanswered(key, unfit, revision);
                self.asking().note(&error);
                Err(error)
            }
            checked => {
                self.asking().keep_answer(key, answer);
                checked.map_err(|why| AskError::unanswered(key, why, revision))
            }
        }
    }

    /// How often the handler came to ask something, or could not. Most handlers never do, and cost
    /// no more than this look.
    pub(crate) fn asked(&self) -> u64 {
        self.0.asking.get().map_or(0, |_| self.asking().asked())
    }

    /// Whether a question waits to be put to the client.
    pub(super) fn is_asking(&self) -> bool {
        self.0.asking.get().is_some_and(|_| self.asking().is_open())
    }

    /// The request is wrong whatever the client would answer: nothing is asked.
    pub(crate) fn reject(&self) {
        if self.0.asking.get().is_some() {
            self.asking().reject();
        }
    }

    pub(crate) fn asking(&self) -> MutexGuard<'_, ElicitRound> {
        self.0.asking.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }
}
