//! Owns answers as arguments of a handler. Does not own the asking.

use super::question::{Question, sealed};
use crate::server::handler::{
    extract::{Description, FromCall, Invocation},
    reply::Failure,
};

/// A type that is asked for before a handler runs, when the handler takes it as [`Answered`].
pub trait Askable: Sized + Send + 'static {
    /// The key of the question: no other question of the handler may have it.
    const KEY: &'static str;
    /// What is asked.
    type Question: Question<Answer = Self>;
    /// The question, which may depend on the call.
    fn question(call: &Invocation) -> Self::Question;
}

/// An answer, asked for before the handler runs. Several are asked for at once.
///
/// ```
/// use turnbuckle::{
///     Server,
///     elicit::{Answered, Askable, Elicitation, elicit},
///     server::Invocation,
///     tool,
/// };
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Name { name: String }
///
/// impl Askable for Name {
///     const KEY: &'static str = "name";
///     type Question = Elicitation<Name>;
///     fn question(_: &Invocation) -> Elicitation<Name> {
///         elicit("Who are you?")
///     }
/// }
///
/// async fn greet(Answered(Name { name }): Answered<Name>) -> String {
///     format!("Hello, {name}!")
/// }
/// let server = Server::new("demo", "1.0").tool(tool("greet", greet));
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Answered<T>(pub T);

impl<T: Askable> FromCall for Answered<T> {
    async fn from_call(call: &Invocation) -> Result<Answered<T>, Failure> {
        // Whatever finds the call wrong goes first: then nobody is asked.
        tokio::task::yield_now().await;
        let question = T::question(call);
        Ok(Answered(call.ctx().ask(T::KEY, question).await?))
    }

    fn describe(description: &mut Description) {
        description.problems.extend(<T::Question as sealed::QuestionParts>::problem());
    }
}
