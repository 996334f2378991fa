//! Owns what a server asks, as layers see it, and what becomes of their errors. Does not own the
//! callbacks that answer.

use std::{error::Error as StdError, fmt};

use turnbuckle_types::{Raw, Revision, RpcError, jsonrpc::Text};

use crate::{
    error::find,
    layers::{self, Answer, BoxError, Onward, Passing},
};

/// Something that a server asks this client, on its way through the layers of
/// [`ClientBuilder::question_layer`](crate::ClientBuilder::question_layer).
///
/// ```
/// use turnbuckle::client_layer::Question;
/// fn costs_money(question: &Question) -> bool {
///     question.method() == "sampling/createMessage"
/// }
/// # let _ = costs_money;
/// ```
pub struct Question {
    method: Text,
    params: Raw,
    revision: Revision,
    onward: Onward<Question>,
}

impl Question {
    pub(crate) fn new(method: Text, params: Option<Raw>, revision: Revision) -> Question {
        let params = params.unwrap_or_else(Raw::empty_object);
        Question { method, params, revision, onward: Onward::default() }
    }

    /// The method: `elicitation/create`, `sampling/createMessage`, `roots/list`.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// What is asked, as it came; `{}` if there are no params.
    pub fn params(&self) -> &Raw {
        &self.params
    }

    /// The revision of the connection. It says whether the question is a request of the server, or
    /// part of its answer to a call.
    pub fn revision(&self) -> Revision {
        self.revision
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("method", &self.method)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

/// What a layer around questions stands around: further layers, then the callback.
///
/// It is always ready, and cheap to clone. Dropping its future drops the callback's.
#[derive(Clone, Debug)]
pub struct NextQuestion(pub(super) ());

layers::next!(NextQuestion: Question => Raw, RpcError);

impl Passing for Question {
    type Answer = Raw;
    type Refusal = RpcError;
    type Edge = Text;

    fn edge(&self) -> Text {
        self.method.clone()
    }

    fn settle(method: Text, error: BoxError) -> Answer<Question> {
        if let Some(error) = find::<RpcError>(&*error) {
            return Err(error.clone());
        }
        tracing::error!(%method, error = &*error as &dyn StdError, "a layer failed");
        Err(RpcError::internal("internal error"))
    }

    fn onward(&mut self) -> &mut Onward<Question> {
        &mut self.onward
    }
}
