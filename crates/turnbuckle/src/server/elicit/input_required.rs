//! Owns asking by hand: a result that asks instead of answering.
//! Does not own what becomes of it in either era.

use std::fmt;

use super::question::{Question, sealed::QuestionParts};
use crate::server::{
    elicit::run::{PUT, Put},
    handler::{
        context::Ctx,
        reply::{Cause, Failure, IntoReply},
    },
};
use serde::Serialize;
use turnbuckle_types::{MayAsk, Method, Raw, Revision};

/// What a handler returns instead of a result, as its error or as its value, to ask for input first and be run again from the top
/// when it is there.
///
/// [`Ctx::ask`](crate::Ctx::ask) does the same with less; by hand a handler decides itself which
/// answers it still wants, and keeps what it likes in [`state`](InputRequired::state). What is kept
/// is sealed, so that a client can neither read nor change it. In the legacy era the questions are
/// put to the client as requests, and the handler is run again all the same.
///
/// ```
/// use turnbuckle::{
///     Ctx, Server,
///     elicit::{InputRequired, elicit},
///     tool,
/// };
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Guess { number: u8 }
///
/// async fn guess(ctx: Ctx) -> Result<String, InputRequired> {
///     let tries = ctx.state::<u32>().unwrap_or(0);
///     let question = || elicit::<Guess>("Which number?");
///     match ctx.answer("guess", question()).await {
///         Some(Ok(Guess { number: 7 })) => Ok(format!("yes, after {tries}")),
///         _ => Err(InputRequired::new().ask("guess", question()).state(tries + 1)),
///     }
/// }
/// let server = Server::new("games", "1.0").tool(tool("guess", guess));
/// # let _ = server;
/// ```
#[must_use = "input is asked for when the handler returns this"]
pub struct InputRequired {
    pub(super) questions: Vec<(String, Box<dyn QuestionParts>)>,
    pub(super) state: Option<Raw>,
    /// Why it can't be sent.
    pub(super) problem: Option<String>,
    /// How it is asked. Pointers, so that only programs that make one link what that takes.
    pub(super) put: &'static Put,
}

impl Default for InputRequired {
    fn default() -> InputRequired {
        InputRequired { questions: Vec::new(), state: None, problem: None, put: &PUT }
    }
}

impl InputRequired {
    /// Asks nothing yet. A client that is asked nothing may come back at once.
    pub fn new() -> InputRequired {
        InputRequired::default()
    }

    /// Asks something. The answer is read with [`Ctx::answer`](crate::Ctx::answer) by its key.
    #[doc(alias = "elicitation/create")]
    #[doc(alias = "sampling/createMessage")]
    #[doc(alias = "roots/list")]
    pub fn ask<Q: Question>(mut self, key: impl Into<String>, question: Q) -> InputRequired {
        self.questions.push((key.into(), Box::new(question)));
        self
    }

    /// Keeps a value for the next run, which reads it with [`Ctx::state`](crate::Ctx::state).
    pub fn state(mut self, state: impl Serialize) -> InputRequired {
        match Raw::new(&state) {
            Ok(state) => self.state = Some(state),
            Err(error) => self.problem = Some(format!("the state can't be encoded: {error}")),
        }
        self
    }

    /// What to ask, by key, as the revision has it.
    pub(super) fn asked(&self, revision: Revision) -> Result<Vec<(&str, Method, Raw)>, String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let asked = |(key, question): &(String, Box<dyn QuestionParts>)| {
            let params = question.params(revision).map_err(|why| format!("`{key}`: {why}"))?;
            Ok((question.method(), params))
        };
        let each = self.questions.iter();
        each.map(|one| asked(one).map(|(method, params)| (&*one.0, method, params))).collect()
    }
}

impl fmt::Debug for InputRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.questions.iter().map(|(key, _)| key);
        f.debug_set().entries(keys).finish()
    }
}

/// So that it can be a handler's error.
impl fmt::Display for InputRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("input is required first")
    }
}

impl std::error::Error for InputRequired {}

impl From<InputRequired> for Failure {
    fn from(asks: InputRequired) -> Failure {
        Failure(Cause::Ask(asks))
    }
}

/// Asks first, whatever the handler is of.
impl<R: MayAsk + Send> IntoReply<R> for InputRequired {
    async fn into_reply(self, _: &Ctx) -> Result<R, Failure> {
        Err(self.into())
    }
}
