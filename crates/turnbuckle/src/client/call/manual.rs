//! Calls whose caller answers the server's questions itself, round by round.

use std::sync::Arc;

use turnbuckle_types::{
    CreateMessageResult, Elicit, ElicitResult, ListRootsResult, Method, Raw, Revision,
};

use super::{Call, Local, Params, decode::Decode};
use crate::{
    client::call::input::{
        ServerInputRequest, {self},
    },
    error::{Error, ErrorKind, Result},
    protocol::elicitation,
};

/// What one round of a call brings, where its caller answers by hand.
#[derive(Debug)]
pub enum Round<T> {
    /// The result.
    Done(T),
    /// The server asks for something first.
    Asks(Questions<T>),
}

/// Makes a round of what a server asks.
pub(super) type HandOn<T> = fn(Call<T>, ServerInputRequest, String) -> T;

impl<T: 'static> Call<T> {
    /// Hands what a modern server asks before its result to the caller, instead of to this
    /// client's callbacks.
    ///
    /// Servers ask only what a client declared: without a callback,
    /// [`capabilities`](crate::ClientBuilder::capabilities) say so. A legacy server asks by
    /// requests of its own, which are still answered by callbacks. The options of the call hold in
    /// every round; its [`timeout`](Call::timeout) is for all of them together, without the time
    /// between them. Dropping a round cancels it, and dropping [`Questions`] leaves nothing behind.
    ///
    /// ```no_run
    /// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
    /// use turnbuckle::{
    ///     client::Round,
    ///     types::{ElicitAction, ElicitResult},
    /// };
    /// let mut round = client.call_tool("book", serde_json::json!({})).manual().await?;
    /// let result = loop {
    ///     match round {
    ///         Round::Done(result) => break result,
    ///         Round::Asks(mut questions) => {
    ///             for key in questions.keys() {
    ///                 questions.answer(&key, ElicitResult::new(ElicitAction::Decline))?;
    ///             }
    ///             round = questions.send().await?;
    ///         }
    ///     }
    /// };
    /// # let _ = result; Ok(()) }
    /// ```
    pub fn manual(self) -> Call<Round<T>> {
        let Call { mut request, decode, local, .. } = self;
        // The caller limits the rounds.
        request.rounds = request.rounds.map(|_| usize::MAX);
        Call {
            request,
            decode: Decode::With(Arc::new(move |context, raw| {
                decode.decode(context, raw).map(Round::Done)
            })),
            cached: None,
            local: local.map(|local| -> Local<Round<T>> {
                Arc::new(move |client, link| local(client, link).map(Round::Done))
            }),
            hand_on: Some(|call, asked, first| Round::Asks(Questions::new(call, asked, first))),
        }
    }
}

/// What a server asks before it gives a result.
#[must_use = "the server waits for the answers: give them and call `send`"]
pub struct Questions<T> {
    call: Box<Call<Round<T>>>,
    /// What the call says, without any answers.
    first: String,
    /// `None` if the server only wants to be asked again.
    questions: Option<Vec<ServerQuestion>>,
    state: Option<Raw>,
    answers: Vec<(String, Raw)>,
}

/// One thing that a server asks before it gives a result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerQuestion {
    /// The server's name for it, by which it is answered.
    pub key: String,
    /// The method: `elicitation/create`, `sampling/createMessage`, `roots/list`.
    pub method: String,
    /// Its params.
    pub params: Option<Raw>,
}

/// An answer to what a server asks: made of what fits the question, or of any JSON.
///
/// ```
/// use turnbuckle::{
///     client::InputAnswer,
///     types::{ListRootsResult, Root},
/// };
/// let answer = InputAnswer::from(ListRootsResult::new([Root::new("file:///home/ada")]));
/// # let _ = answer;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputAnswer {
    /// To `elicitation/create`. Fields that it leaves out get the form's defaults.
    Elicitation(ElicitResult),
    /// To `sampling/createMessage`.
    Sampling(CreateMessageResult),
    /// To `roots/list`.
    Roots(ListRootsResult),
    /// To anything, as it is.
    Raw(Raw),
}

impl<T> Questions<T> {
    fn new(call: Call<Round<T>>, asked: ServerInputRequest, first: String) -> Questions<T> {
        let ServerInputRequest { questions, state } = asked;
        let questions = questions.map(|questions| {
            let each = questions.into_iter().map(|input::InputQuestion { key, method, params }| {
                ServerQuestion { key, method, params: params.raw }
            });
            each.collect()
        });
        Questions { call: Box::new(call), first, questions, state, answers: Vec::new() }
    }

    /// What is asked: nothing, if the server only wants to be called again.
    pub fn iter(&self) -> impl Iterator<Item = &ServerQuestion> {
        self.questions.iter().flatten()
    }

    /// The names of all questions.
    pub fn keys(&self) -> Vec<String> {
        self.iter().map(|question| question.key.clone()).collect()
    }

    /// What the server wants back with the answers, as it came: JSON text of a string.
    pub fn state(&self) -> Option<&Raw> {
        self.state.as_ref()
    }

    /// Answers one question; a second answer replaces the first. Fails if that is not asked, or if
    /// the answer does not fit.
    pub fn answer(&mut self, key: &str, answer: impl Into<InputAnswer>) -> Result<&mut Self> {
        let Some(question) = self.iter().find(|question| question.key == key) else {
            return Err(Error::refused(format!("the server asks nothing by the name `{key}`")));
        };
        let revision = self.call.request.client.link().revision();
        let answer = written(question, answer.into(), revision)?;
        self.answers.retain(|(answered, _)| answered != key);
        self.answers.push((key.to_owned(), answer));
        Ok(self)
    }

    /// The next round: the same call again, under a new id, with the answers and the server's
    /// state. It is refused unless everything is answered.
    pub fn send(self) -> Call<Round<T>> {
        let Questions { mut call, first, questions, state, answers } = self;
        let open = questions
            .iter()
            .flatten()
            .find(|question| !answers.iter().any(|(answered, _)| *answered == question.key));
        if let Some(question) = open {
            let message = format!("the server's question `{}` is not answered", question.key);
            call.request.params = Params::Text(Err(Error::refused(message)));
            return *call;
        }
        let answers = questions.is_some().then_some(&answers[..]);
        let again = input::again(&first, answers, state.as_ref());
        call.request.params = Params::Answered { first, again };
        // 2026-07-28 basic/patterns/mrtr §Client Requirements: a request of its own.
        call.request.id = None;
        *call
    }
}

/// An answer as it is sent, if it is one to this question.
fn written(question: &ServerQuestion, answer: InputAnswer, revision: Revision) -> Result<Raw> {
    let fits = match &answer {
        InputAnswer::Elicitation(_) => Method::Elicit,
        InputAnswer::Sampling(_) => Method::CreateMessage,
        InputAnswer::Roots(_) => Method::ListRoots,
        InputAnswer::Raw(raw) => return Ok(raw.clone()),
    };
    if Method::from_name(&question.method) != Some(fits) {
        let ServerQuestion { key, method, .. } = question;
        return Err(Error::refused(format!(
            "`{key}` asks `{method}`: this is an answer to `{fits}`"
        )));
    }
    Ok(match answer {
        InputAnswer::Elicitation(answer) => Raw::at(&completed(question, answer)?, revision),
        InputAnswer::Sampling(answer) => Raw::at(&answer, revision),
        InputAnswer::Roots(answer) => Raw::at(&answer, revision),
        InputAnswer::Raw(raw) => raw,
    })
}

/// An answer with the defaults of its form.
fn completed(question: &ServerQuestion, answer: ElicitResult) -> Result<ElicitResult> {
    let asked = question.params.as_ref().map(Raw::decode::<Elicit>);
    let form = match asked {
        Some(Ok(Elicit::Form(form))) => Some(form.requested_schema),
        Some(Err(error)) => {
            let message = format!("the question `{}` can't be read: {error}", question.key);
            return Err(Error::new(ErrorKind::Protocol, message));
        }
        _ => None,
    };
    elicitation::completed(form.as_ref(), answer).map_err(|refusal| Error::refused(refusal.message))
}

macro_rules! answers {
    ($($from:ty => $variant:ident),+ $(,)?) => {
        $(
            impl From<$from> for InputAnswer {
                fn from(answer: $from) -> InputAnswer {
                    InputAnswer::$variant(answer.into())
                }
            }
        )+
    };
}

answers! {
    ElicitResult => Elicitation,
    CreateMessageResult => Sampling,
    ListRootsResult => Roots,
    Raw => Raw,
    serde_json::Value => Raw,
}

impl<T> std::fmt::Debug for Questions<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Questions").field("questions", &self.questions).finish_non_exhaustive()
    }
}
