//! Owns the other direction: layers around what the server asks its client.
//! Does not own the questions, nor how an era puts them.

use std::{
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use tower_layer::Layer;
use tower_service::Service;
use turnbuckle_types::Raw;

use super::next::BoxError;
use crate::{dispatch::BoxFuture, server::context::Ctx};

type Answer = Result<Raw, BoxError>;
type Then = Box<dyn FnOnce(Question) -> BoxFuture<'static, Answer> + Send>;

/// Something that a handler asks its client, on its way through the layers of
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
    /// Locked never: it only makes questions fit to be shared.
    then: Mutex<Option<Then>>,
}

impl Question {
    pub(in crate::server) fn new(ctx: Ctx, method: String, params: Raw) -> Question {
        Question { ctx, method, params, then: Mutex::new(None) }
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

    pub(in crate::server) fn into_params(self) -> Raw {
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
#[derive(Clone)]
pub struct NextQuestion(Arc<dyn Erased>);

impl Service<Question> for NextQuestion {
    type Response = Raw;
    type Error = BoxError;
    type Future = BoxFuture<'static, Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, question: Question) -> Self::Future {
        self.0.call(question)
    }
}

impl fmt::Debug for NextQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextQuestion").finish_non_exhaustive()
    }
}

/// Layers around questions, the outermost first; none, most of the time.
#[derive(Clone, Default)]
pub(in crate::server) struct Questions(Option<Arc<[NextQuestion]>>);

impl Questions {
    pub(in crate::server) fn push<L>(&mut self, layer: L)
    where
        L: Layer<NextQuestion>,
        L::Service: Service<Question, Response = Raw> + Clone + Send + Sync + 'static,
        <L::Service as Service<Question>>::Error: Into<BoxError>,
        <L::Service as Service<Question>>::Future: Send + 'static,
    {
        let layered = layer.layer(NextQuestion(Arc::new(Innermost)));
        let layered = NextQuestion(Arc::new(Layered(layered)));
        let before = self.0.as_deref().unwrap_or_default().iter().cloned();
        self.0 = Some(before.chain([layered]).collect());
    }

    pub(in crate::server) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Takes a question through the layers, and then to `then`, which puts it to the client.
    pub(in crate::server) fn run(
        &self,
        question: Question,
        then: impl FnOnce(Question) -> BoxFuture<'static, Answer> + Send + 'static,
    ) -> BoxFuture<'static, Answer> {
        match &self.0 {
            None => then(question),
            Some(layers) => pass(layers.clone(), 0, question, Box::new(then)),
        }
    }
}

fn pass(
    layers: Arc<[NextQuestion]>,
    at: usize,
    question: Question,
    then: Then,
) -> BoxFuture<'static, Answer> {
    let Some(layer) = layers.get(at).cloned() else { return then(question) };
    let then: Then = Box::new(move |question| pass(layers, at + 1, question, then));
    layer.0.call(Question { then: Mutex::new(Some(then)), ..question })
}

/// A service whose type is forgotten.
trait Erased: Send + Sync {
    fn call(&self, question: Question) -> BoxFuture<'static, Answer>;
}

struct Layered<S>(S);

impl<S> Erased for Layered<S>
where
    S: Service<Question, Response = Raw> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    fn call(&self, question: Question) -> BoxFuture<'static, Answer> {
        let mut service = self.0.clone();
        Box::pin(async move {
            poll_fn(|context| service.poll_ready(context)).await.map_err(Into::into)?;
            service.call(question).await.map_err(Into::into)
        })
    }
}

/// Puts the question.
struct Innermost;

impl Erased for Innermost {
    fn call(&self, mut question: Question) -> BoxFuture<'static, Answer> {
        let then = question.then.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        match then {
            Some(then) => then(question),
            // Layers hand on what they were given, and it can be handed on only once.
            None => Box::pin(async { Err("this question was put already".into()) }),
        }
    }
}
