//! Owns how a function with extractors becomes a handler whose type is forgotten.
//! Does not own the extractors, the replies, nor when a handler runs.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

use super::{
    context::Ctx,
    extract::{Description, FromCall, Invocation},
    reply::{Failure, IntoReply},
};
use crate::{middleware::TaskContext, rpc::BoxFuture};

/// A handler whose type is forgotten; `R` is what it makes.
pub(crate) trait ErasedHandler<R>: Send + Sync {
    fn call(&self, call: Invocation) -> BoxFuture<'static, Result<R, Failure>>;
}

/// Forgets the type of an `async fn`.
pub(crate) fn asynchronous<R, M, F>(function: F) -> Arc<dyn ErasedHandler<R>>
where
    R: 'static,
    M: 'static,
    F: HandlerFn<R, M>,
{
    Arc::new(Asynchronous { function: Arc::new(function), marker: marker::<M>() })
}

/// Forgets the type of a sync function.
pub(crate) fn blocking<R, M, F>(function: F) -> Arc<dyn ErasedHandler<R>>
where
    R: 'static,
    M: 'static,
    F: BlockingFn<R, M>,
{
    Arc::new(Blocking { function: Arc::new(function), marker: marker::<M>() })
}

/// An `async fn` that can be a handler: up to eight extractors in, a reply out. `R` is what the
/// wire wants of it, such as a `CallToolResult`.
#[diagnostic::on_unimplemented(
    message = "this function can't be a handler",
    label = "not a handler",
    note = "a handler is an `async fn` whose arguments are extractors (`Args<T>`, `RawArgs`, \
            `Ctx`, `State<S>` …) and whose result can become a `{R}`",
    note = "put `#[tool]`, `#[prompt]` or `#[resource(\"…\")]` on the function to take plain \
            arguments and to see what is wrong",
    note = "a sync function goes to `blocking_tool` and the like; what completes or lists is async"
)]
pub trait HandlerFn<R, M>: Send + Sync + 'static {
    /// Runs it.
    #[doc(hidden)]
    fn call(self: Arc<Self>, call: Invocation) -> impl Future<Output = Result<R, Failure>> + Send;
    /// Says what its signature says.
    #[doc(hidden)]
    fn describe(description: &mut Description);
}

/// A sync function that can be a handler: up to eight extractors in, a reply out.
#[diagnostic::on_unimplemented(
    message = "this function can't be a blocking handler",
    label = "not a handler",
    note = "a blocking handler is a plain `fn` whose arguments are extractors; an `async fn` \
            goes to `tool`"
)]
pub trait BlockingFn<R, M>: Send + Sync + 'static {
    /// Runs it, on a thread where it may block.
    #[doc(hidden)]
    fn call(self: Arc<Self>, call: Invocation) -> impl Future<Output = Result<R, Failure>> + Send;
    /// Says what its signature says.
    #[doc(hidden)]
    fn describe(description: &mut Description);
}

type Marker<M> = std::marker::PhantomData<fn() -> M>;

fn marker<M>() -> Marker<M> {
    std::marker::PhantomData
}

struct Asynchronous<M, F> {
    function: Arc<F>,
    marker: Marker<M>,
}

impl<R: 'static, M: 'static, F: HandlerFn<R, M>> ErasedHandler<R> for Asynchronous<M, F> {
    fn call(&self, call: Invocation) -> BoxFuture<'static, Result<R, Failure>> {
        let _ = self.marker;
        Box::pin(self.function.clone().call(call))
    }
}

struct Blocking<M, F> {
    function: Arc<F>,
    marker: Marker<M>,
}

impl<R: 'static, M: 'static, F: BlockingFn<R, M>> ErasedHandler<R> for Blocking<M, F> {
    fn call(&self, call: Invocation) -> BoxFuture<'static, Result<R, Failure>> {
        let _ = self.marker;
        Box::pin(self.function.clone().call(call))
    }
}

/// Runs a piece of work on a thread where it may block. A panic of it goes on here.
async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let carry = TaskContext::current();
    match tokio::task::spawn_blocking(move || carry.run(work)).await {
        Ok(value) => Ok(value),
        Err(error) => match error.try_into_panic() {
            Ok(payload) => std::panic::resume_unwind(payload),
            Err(error) => Err(Failure::internal(error)),
        },
    }
}

/// Makes all arguments together, so that what has to be asked for is asked for at once, in the order
/// of the arguments. One that can't be made whatever the client answers ends it for all.
macro_rules! made {
    ($call:ident) => { all(|| Ok(())) };
    ($call:ident $kind:ident $argument:ident) => {
        $kind::from_call(&$call).await.map(|made| (made,))
    };
    ($call:ident $($kind:ident $argument:ident),+) => {{
        let ctx = $call.ctx();
        match tokio::try_join!(biased; $(tried(ctx, $kind::from_call(&$call))),+) {
            Ok(($($argument,)+)) => all(move || Ok(($($argument?,)+))),
            Err(rejected) => Err(rejected),
        }
    }};
}

/// Gives a closure its error.
fn all<T>(arguments: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    arguments()
}

/// Makes one argument among others. The outer error is for what is wrong in any case; what failed
/// because the client has yet to be asked is for later, when all that is to be asked is known.
async fn tried<T>(
    ctx: &Ctx,
    making: impl Future<Output = Result<T, Failure>>,
) -> Result<Result<T, Failure>, Failure> {
    let (mut making, mut has_asked) = (pin!(making), false);
    let made = poll_fn(|context| {
        let before = ctx.asked();
        let polled = making.as_mut().poll(context);
        has_asked |= ctx.asked() != before;
        polled
    });
    match made.await {
        Err(failure) if !has_asked && !failure.asks() => {
            ctx.reject();
            Err(failure)
        }
        made => Ok(made),
    }
}

/// Makes arguments for as long as anyone wants them: a function that has not begun is no work that
/// could be left half done.
///
/// Most are there at once: only what waits is told when it is given up.
fn wanted<'a, T: 'a>(
    ctx: &'a Ctx,
    mut making: Pin<&'a mut (impl Future<Output = Result<T, Failure>> + Send)>,
) -> impl Future<Output = Result<T, Failure>> + Send {
    let mut given_up: Option<BoxFuture<'a, ()>> = None;
    poll_fn(move |context| {
        if let Poll::Ready(made) = making.as_mut().poll(context) {
            return Poll::Ready(made);
        }
        let given_up = given_up.get_or_insert_with(|| Box::pin(ctx.cancelled()));
        given_up.as_mut().poll(context).map(|()| Err(unwanted()))
    })
}

/// Nobody reads this: the request is gone.
fn unwanted() -> Failure {
    Failure::internal("the request was given up before its handler began")
}

macro_rules! handlers {
    ($($kind:ident $argument:ident),*) => {
        impl<Function, Fut, R, Reply, $($kind,)*> HandlerFn<R, (Reply, $($kind,)*)> for Function
        where
            Function: Fn($($kind),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Reply> + Send,
            Reply: IntoReply<R> + 'static,
            R: Send,
            $($kind: FromCall,)*
        {
            // Not an `async fn`, which would keep room for the call twice.
            fn call(
                self: Arc<Self>,
                call: Invocation,
            ) -> impl Future<Output = Result<R, Failure>> + Send {
                async move {
                    let made = {
                        let making = pin!(async { made!(call $($kind $argument),*) });
                        wanted(call.ctx(), making).await
                    };
                    // What the arguments were made from is not kept while the handler runs.
                    let ctx = call.into_ctx();
                    let ($($argument,)*) = made?;
                    self($($argument),*).await.into_reply(&ctx).await
                }
            }

            fn describe(description: &mut Description) {
                $($kind::describe(description);)*
                <Reply as IntoReply<R>>::describe(description);
            }
        }

        impl<Function, R, Reply, $($kind,)*> BlockingFn<R, (Reply, $($kind,)*)> for Function
        where
            Function: Fn($($kind),*) -> Reply + Send + Sync + 'static,
            Reply: IntoReply<R> + 'static,
            R: Send,
            $($kind: FromCall,)*
        {
            async fn call(self: Arc<Self>, call: Invocation) -> Result<R, Failure> {
                let made = {
                    let making = pin!(async { made!(call $($kind $argument),*) });
                    wanted(call.ctx(), making).await
                };
                let ctx = call.into_ctx();
                let ($($argument,)*) = made?;
                let asker = ctx.clone();
                // A thread may have been long in coming.
                let run = move || (!asker.is_cancelled()).then(|| self($($argument),*));
                on_a_thread(run).await?.ok_or_else(unwanted)?.into_reply(&ctx).await
            }

            fn describe(description: &mut Description) {
                $($kind::describe(description);)*
                <Reply as IntoReply<R>>::describe(description);
            }
        }
    };
}

handlers!();
handlers!(A a);
handlers!(A a, B b);
handlers!(A a, B b, C c);
handlers!(A a, B b, C c, D d);
handlers!(A a, B b, C c, D d, E e);
handlers!(A a, B b, C c, D d, E e, F f);
handlers!(A a, B b, C c, D d, E e, F f, G g);
handlers!(A a, B b, C c, D d, E e, F f, G g, H h);
