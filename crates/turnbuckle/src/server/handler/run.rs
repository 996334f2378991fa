//! Owns one run of a handler: how it is stopped, and that it is told. Does not own which handler
//! runs, nor what becomes of what it returns.

use super::{context::Ctx, extract::Invocation, reply::Failure};
use crate::{
    middleware::TaskContext,
    rpc::{BoxFuture, Permit},
    server::items::{OnCancel, Registration},
};
use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

/// Runs a handler. Dropping this future cancels it in the way the offer asks for.
pub(crate) fn run<R: Send + 'static>(
    offer: &Registration<R>,
    call: Invocation,
    permit: Permit,
) -> HandlerRun<R> {
    let told = FireOnDrop { ctx: call.ctx.clone(), is_armed: false };
    HandlerRun { part: run_part(offer, call, permit), told }
}

/// Runs a handler that is a part of what its request asks for: whoever runs the whole tells when
/// that is given up.
pub(crate) fn run_part<R: Send + 'static>(
    offer: &Registration<R>,
    call: Invocation,
    permit: Permit,
) -> PartialHandler<R> {
    match offer.on_cancel {
        OnCancel::Drop => {
            PartialHandler { handler: offer.handler.call(call), permit: Some(permit) }
        }
        OnCancel::Apart(apart, grace) => {
            let ctx = call.ctx.clone();
            PartialHandler {
                handler: apart(offer.handler.call(call), ctx, grace, permit),
                permit: None,
            }
        }
    }
}

/// A handler that runs. Every call in flight holds one: an `async fn` would need twice the room.
pub(crate) struct HandlerRun<R> {
    // Dropped in this order: those who are told find the handler gone.
    part: PartialHandler<R>,
    told: FireOnDrop,
}

impl<R> Future for HandlerRun<R> {
    type Output = Result<R, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // What never began is not given up.
        self.told.is_armed = true;
        let replied = ready!(Pin::new(&mut self.part).poll(context));
        self.told.is_armed = false;
        Poll::Ready(replied)
    }
}

/// A handler that runs as a part of something.
pub(crate) struct PartialHandler<R> {
    handler: BoxFuture<'static, Result<R, Failure>>,
    /// `None` where the handler has it, because it may outlive this.
    permit: Option<Permit>,
}

impl<R> Future for PartialHandler<R> {
    type Output = Result<R, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let replied = ready!(self.handler.as_mut().poll(context));
        self.permit = None;
        Poll::Ready(replied)
    }
}

/// How a handler runs that may outlive its request. See [`apart`].
pub(crate) type Apart<R> = fn(
    BoxFuture<'static, Result<R, Failure>>,
    Ctx,
    Option<Duration>,
    Permit,
) -> BoxFuture<'static, Result<R, Failure>>;

/// Runs a handler that may outlive its request as a task of its own. It counts as in
/// flight until it ends.
pub(crate) fn apart<R: Send + 'static>(
    handler: BoxFuture<'static, Result<R, Failure>>,
    ctx: Ctx,
    grace: Option<Duration>,
    permit: Permit,
) -> BoxFuture<'static, Result<R, Failure>> {
    Box::pin(run_apart(handler, ctx, grace, permit))
}

async fn run_apart<R: Send + 'static>(
    handler: BoxFuture<'static, Result<R, Failure>>,
    ctx: Ctx,
    grace: Option<Duration>,
    permit: Permit,
) -> Result<R, Failure> {
    // What layers lent stays taken for as long as it runs.
    let lent = ctx.lent();
    let task = tokio::spawn(TaskContext::current().future(async move {
        let _held = (permit, lent);
        let Some(grace) = grace else { return handler.await };
        tokio::select! {
            replied = handler => replied,
            () = async { ctx.cancelled().await; tokio::time::sleep(grace).await } => {
                Err(Failure::internal("the handler did not end within its grace period"))
            }
        }
    }));
    match task.await {
        Ok(replied) => replied,
        Err(error) => match error.try_into_panic() {
            Ok(payload) => std::panic::resume_unwind(payload),
            Err(error) => Err(Failure::internal(error)),
        },
    }
}

/// A panic costs no more than a failure does.
pub(crate) async fn caught<T>(
    running: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut running = pin!(running);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context))) {
        Ok(polled) => polled,
        Err(_) => Poll::Ready(Err(Failure::internal("it panicked"))),
    })
    .await
}

/// Tells everyone who holds the context when the request was given up.
pub(crate) struct FireOnDrop {
    ctx: Ctx,
    is_armed: bool,
}

impl FireOnDrop {
    pub(crate) fn new(ctx: &Ctx) -> FireOnDrop {
        FireOnDrop { ctx: ctx.clone(), is_armed: true }
    }

    pub(crate) fn disarm(mut self) {
        self.is_armed = false;
    }
}

impl Drop for FireOnDrop {
    fn drop(&mut self) {
        if self.is_armed {
            self.ctx.fire();
        }
    }
}
