//! Owns how tower layers are put around what passes them, on either side of a connection.
//! Does not own what passes, nor any one layer.

use std::{
    error::Error as StdError,
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
};

use serde::de::DeserializeOwned;
use tower_service::Service;
use turnbuckle_types::Raw;

use crate::dispatch::BoxFuture;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;
pub(crate) type Answer<Q> = Result<<Q as Passing>::Answer, <Q as Passing>::Refusal>;
/// The rest of a way. Whoever can be cloned may go it more than once.
pub(crate) type Then<Q> = Arc<dyn Fn(Q) -> BoxFuture<'static, Answer<Q>> + Send + Sync>;

/// Something that passes layers.
pub(crate) trait Passing: Sized + Send + 'static {
    type Answer: Send + 'static;
    type Refusal: Into<BoxError> + Send + 'static;
    /// What has to be known of it to judge an error once it is gone.
    type Edge: Send + 'static;

    fn edge(&self) -> Self::Edge;
    /// What an error of a layer becomes.
    fn settle(edge: Self::Edge, error: BoxError) -> Answer<Self>;
    fn onward(&mut self) -> &mut Onward<Self>;
    /// Goes on. Nothing runs before the future is polled.
    fn go(self, then: Then<Self>) -> BoxFuture<'static, Answer<Self>> {
        then(self)
    }
}

/// The rest of the way of something that passes layers: further layers, and what is behind them.
pub(crate) struct Onward<Q: Passing>(Option<Then<Q>>);

impl<Q: Passing> Default for Onward<Q> {
    fn default() -> Onward<Q> {
        Onward(None)
    }
}

impl<Q: Passing> Clone for Onward<Q> {
    fn clone(&self) -> Onward<Q> {
        Onward(self.0.clone())
    }
}

/// What is inside of each layer: takes whatever comes on.
pub(crate) fn onward<Q: Passing>(mut passing: Q) -> BoxFuture<'static, Answer<Q>> {
    match passing.onward().0.take() {
        Some(then) => passing.go(then),
        // Layers hand on what they were given.
        None => refused(&passing),
    }
}

fn refused<Q: Passing>(passing: &Q) -> BoxFuture<'static, Answer<Q>> {
    let refused = Q::settle(passing.edge(), "this was handed on already".into());
    Box::pin(std::future::ready(refused))
}

/// Layers, the outermost first; none, most of the time.
///
/// Each stands around the end of its own way, where what passes carries on with the next layer. So a
/// layer is put up once, when it is given, and whatever it makes then is shared by all that it
/// stands around.
pub(crate) struct Stack<Q: Passing>(Option<Layers<Q>>);

type Layers<Q> = Arc<[Arc<dyn Erased<Q>>]>;

impl<Q: Passing> Stack<Q> {
    /// Puts a layer, which stands around [`onward`], inside of those that are there.
    pub(crate) fn push<S>(&mut self, layered: S)
    where
        S: Service<Q, Response = Q::Answer> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        let layered: Arc<dyn Erased<Q>> = Arc::new(Layered(layered));
        self.0 = Some(self.layers().iter().cloned().chain([layered]).collect());
    }

    /// Puts other layers around these.
    #[cfg(feature = "server")]
    pub(crate) fn within(&mut self, outer: &Stack<Q>) {
        let all: Layers<Q> = outer.layers().iter().chain(self.layers()).cloned().collect();
        self.0 = (!all.is_empty()).then_some(all);
    }

    fn layers(&self) -> &[Arc<dyn Erased<Q>>] {
        self.0.as_deref().unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Takes something through the layers, and then to `then`, which can be come to once. Dropping
    /// the future drops whatever it has come to.
    pub(crate) fn run(
        &self,
        passing: Q,
        then: impl FnOnce(Q) -> BoxFuture<'static, Answer<Q>> + Send + 'static,
    ) -> BoxFuture<'static, Answer<Q>> {
        let Some(layers) = &self.0 else { return then(passing) };
        let once = Mutex::new(Some(then));
        let then = move |passing| {
            let then = once.lock().unwrap_or_else(PoisonError::into_inner).take();
            match then {
                Some(then) => then(passing),
                None => refused(&passing),
            }
        };
        pass(layers.clone(), 0, passing, Arc::new(then))
    }

    /// The same, where `then` can be come to as often as a layer likes.
    #[cfg(feature = "client")]
    pub(crate) fn run_often(
        &self,
        passing: Q,
        then: impl Fn(Q) -> BoxFuture<'static, Answer<Q>> + Send + Sync + 'static,
    ) -> BoxFuture<'static, Answer<Q>> {
        match &self.0 {
            None => then(passing),
            Some(layers) => pass(layers.clone(), 0, passing, Arc::new(then)),
        }
    }
}

fn pass<Q: Passing>(
    layers: Layers<Q>,
    at: usize,
    mut passing: Q,
    then: Then<Q>,
) -> BoxFuture<'static, Answer<Q>> {
    let Some(layer) = layers.get(at).cloned() else { return then(passing) };
    let then = move |passing| pass(layers.clone(), at + 1, passing, then.clone());
    passing.onward().0 = Some(Arc::new(then));
    layer.call(passing)
}

/// A service whose type is forgotten.
trait Erased<Q: Passing>: Send + Sync {
    /// Runs nothing yet: on a server this is called in the reader.
    fn call(self: Arc<Self>, passing: Q) -> BoxFuture<'static, Answer<Q>>;
}

struct Layered<S>(S);

impl<Q, S> Erased<Q> for Layered<S>
where
    Q: Passing,
    S: Service<Q, Response = Q::Answer> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    fn call(self: Arc<Self>, passing: Q) -> BoxFuture<'static, Answer<Q>> {
        Box::pin(async move {
            let mut service = self.0.clone();
            let edge = passing.edge();
            let answered = async {
                poll_fn(|context| service.poll_ready(context)).await?;
                service.call(passing).await
            };
            let answered = answered.await;
            answered.or_else(|error| Q::settle(edge, error.into()))
        })
    }
}

impl<Q: Passing> Clone for Stack<Q> {
    fn clone(&self) -> Stack<Q> {
        Stack(self.0.clone())
    }
}

impl<Q: Passing> Default for Stack<Q> {
    fn default() -> Stack<Q> {
        Stack(None)
    }
}

impl<Q: Passing> fmt::Debug for Stack<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} layers", self.layers().len())
    }
}

/// Makes `$next` what layers around `$passing` stand around.
macro_rules! next {
    ($next:ident: $passing:ty => $answer:ty, $refusal:ty) => {
        impl tower_service::Service<$passing> for $next {
            type Response = $answer;
            type Error = $refusal;
            type Future = $crate::dispatch::BoxFuture<'static, Result<$answer, $refusal>>;

            fn poll_ready(
                &mut self,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Result<(), Self::Error>> {
                std::task::Poll::Ready(Ok(()))
            }

            fn call(&mut self, passing: $passing) -> Self::Future {
                $crate::layers::onward(passing)
            }
        }
    };
}

pub(crate) use next;

/// The result of a request on its way back through the layers.
///
/// ```
/// # #[cfg(feature = "server")]
/// use turnbuckle::layer::Response;
/// # #[cfg(not(feature = "server"))]
/// # use turnbuckle::client_layer::Response;
/// let response = Response::new(serde_json::json!({"content": []}));
/// assert_eq!(response.result().as_str(), r#"{"content":[]}"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    result: Raw,
}

impl Response {
    /// A result, as the revision of the request has it: what a layer that answers by itself says.
    pub fn new(result: impl Into<Raw>) -> Response {
        Response { result: result.into() }
    }

    /// The result as JSON.
    pub fn result(&self) -> &Raw {
        &self.result
    }

    /// The result as JSON, to keep.
    pub fn into_result(self) -> Raw {
        self.result
    }

    /// The result as a type of the protocol's model.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        self.result.decode()
    }
}
