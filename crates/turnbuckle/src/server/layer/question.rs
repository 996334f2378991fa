//! Owns the other direction: layers around what the server asks its client.
//! Does not own the questions, nor how an era puts them.

use std::fmt;

use tower_layer::Layer;
use tower_service::Service;
use turnbuckle_types::Raw;

use super::next::BoxError;
use crate::{
    dispatch::BoxFuture,
    layers::{self, Answer, Onward, Passing},
    server::context::{Ctx, Layered},
};

/// Something that a handler asks its client, on its way through the layers that stand around that:
/// [`ToolDef::ask_layer`](crate::ToolDef::ask_layer), [`Group::ask_layer`](crate::Group::ask_layer),
/// [`Server::ask_layer`](crate::Server::ask_layer).
///
/// ```
/// use turnbuckle::layer::Question;
/// fn costs_money(question: &Question) -> bool {
///     question.method() == "sampling/createMessage"
/// }
/// # let _ = costs_money;
/// ```
pub struct Question {
    ctx: Ctx,
    method: String,
    params: Raw,
    onward: Onward<Question>,
}

impl Question {
    pub(crate) fn new(ctx: Ctx, method: String, params: Raw) -> Question {
        Question { ctx, method, params, onward: Onward::default() }
    }

    /// The method: `elicitation/create`, `sampling/createMessage`, `roots/list`.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// What is asked, as it is sent.
    pub fn params(&self) -> &Raw {
        &self.params
    }

    /// The request whose handler asks.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    pub(crate) fn into_params(self) -> Raw {
        self.params
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("method", &self.method)
            .field("ctx", &self.ctx)
            .finish_non_exhaustive()
    }
}

/// What a layer around questions stands around: further layers, then the client.
///
/// It is always ready, and cheap to clone. Dropping its future takes the question back.
#[derive(Clone, Debug)]
pub struct NextQuestion(());

layers::next!(NextQuestion: Question => Raw, BoxError);

impl Passing for Question {
    type Answer = Raw;
    type Refusal = BoxError;
    type Edge = ();

    fn edge(&self) {}

    fn settle((): (), error: BoxError) -> Answer<Question> {
        Err(error)
    }

    fn onward(&mut self) -> &mut Onward<Question> {
        &mut self.onward
    }
}

/// Layers around questions, the one closest to the handler first; none, most of the time.
#[derive(Clone, Default)]
pub(crate) struct Questions(layers::Stack<Question>);

impl Questions {
    pub(crate) fn push<L>(&mut self, layer: L)
    where
        L: Layer<NextQuestion>,
        L::Service: Service<Question, Response = Raw> + Clone + Send + Sync + 'static,
        <L::Service as Service<Question>>::Error: Into<BoxError>,
        <L::Service as Service<Question>>::Future: Send + 'static,
    {
        self.0.push(layer.layer(NextQuestion(())));
    }

    /// Puts other layers between these and the client.
    pub(crate) fn within(&mut self, outer: &Questions) {
        let mut all = outer.0.clone();
        all.within(&self.0);
        self.0 = all;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a question through the layers, and then to `then`.
    fn run(
        &self,
        question: Question,
        then: impl FnOnce(Question) -> BoxFuture<'static, Answer<Question>> + Send + 'static,
    ) -> BoxFuture<'static, Answer<Question>> {
        self.0.run(question, then)
    }
}

impl Ctx {
    /// Says what stands around whatever is asked from here on: the layers of the offer whose handler
    /// is about to run.
    pub(crate) fn asks_through(&self, questions: &Questions) {
        let mut said = self.said();
        if !questions.is_empty() {
            said.layered.get_or_insert_default().questions = questions.clone();
        } else if let Some(layered) = &mut said.layered {
            layered.questions = Questions::default();
        }
    }

    /// Whether anything stands around the questions that its handler asks.
    pub(crate) fn has_question_layers(&self) -> bool {
        let of_server = self.0.app.as_ref().is_some_and(|app| !app.around.questions.is_empty());
        let of_offer = |layered: &Layered| !layered.questions.is_empty();
        of_server || self.said().layered.as_deref().is_some_and(of_offer)
    }

    /// Takes a question past what stands around it, and then to `put`, which puts it to the client.
    pub(crate) fn past_question_layers(
        &self,
        question: Question,
        put: impl FnOnce(Question) -> BoxFuture<'static, Answer<Question>> + Send + 'static,
    ) -> BoxFuture<'static, Answer<Question>> {
        let server = self.questions_of_server();
        self.questions_of_offer().run(question, move |question| server.run(question, put))
    }

    fn questions_of_offer(&self) -> Questions {
        self.said().layered.as_ref().map(|layered| layered.questions.clone()).unwrap_or_default()
    }

    fn questions_of_server(&self) -> Questions {
        self.0.app.as_ref().map(|app| app.around.questions.clone()).unwrap_or_default()
    }
}
