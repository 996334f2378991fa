//! Owns what a question is: a request to the client, and what counts as its answer.
//! Does not own how it reaches the client.

pub(crate) mod fields;
pub(crate) mod form;
pub(crate) mod roots;
pub(crate) mod sampling;

use turnbuckle_types::{Decode, Method, Raw, Revision};

/// Something that a handler can ask the client with [`Ctx::ask`](crate::Ctx::ask).
///
/// There are [`elicit`](crate::elicit::elicit) (a form for the user), [`elicit_url`](crate::elicit::elicit_url) (a
/// page to visit), [`elicit_form`](crate::elicit::elicit_form) (a form made by hand),
/// [`sample`](crate::elicit::sample) (the client's model) and [`roots`](crate::elicit::roots()). Nothing else can be
/// asked, so that the trait can't be implemented elsewhere.
///
/// ```
/// use turnbuckle::elicit::{Question, elicit, roots, sample};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Name { name: String }
/// fn answers<Q: Question>(_: Q) -> &'static str { std::any::type_name::<Q::Answer>() }
/// assert!(answers(elicit::<Name>("Who are you?")).ends_with("Name"));
/// assert!(answers(sample("Capital of France?")).ends_with("CreateMessageResult"));
/// assert!(answers(roots()).starts_with("alloc::vec::Vec"));
/// ```
pub trait Question: sealed::QuestionParts {
    /// What comes back.
    type Answer: Send;

    /// What an answer that arrived comes to.
    #[doc(hidden)]
    fn check(&self, answer: &Raw) -> Result<Self::Answer, AnswerMismatch>;
}

/// Why what arrived is no answer.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerMismatch {
    /// The user said no.
    Declined,
    /// The user said nothing.
    Cancelled,
    /// It is not what was asked for, and this says why.
    Unfit(String),
}

pub(super) mod sealed {
    use super::{Method, Raw, Revision};

    /// The part of a question that does not depend on the type of its answer.
    pub trait QuestionParts: Send + Sync + 'static {
        /// What the client is asked.
        fn method(&self) -> Method;
        /// The params as the revision has them, or why this can't be asked at all.
        fn params(&self, revision: Revision) -> Result<Raw, String>;
        /// Whether it is known to be a form for the user, without a look at its params.
        fn is_form(&self) -> bool {
            false
        }
        /// Why no such question can be asked, whatever it says.
        fn problem() -> Option<String>
        where
            Self: Sized,
        {
            None
        }
    }
}

/// Decodes an answer of the protocol's own shape.
pub(super) fn decoded<T: Decode>(answer: &Raw) -> Result<T, AnswerMismatch> {
    T::decode(answer).map_err(|error| AnswerMismatch::Unfit(error.to_string()))
}
