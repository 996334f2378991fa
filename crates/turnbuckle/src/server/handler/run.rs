//! One run of a handler, and its cancellation.

use super::{context::Ctx, extract::Invocation, reply::Failure};
use crate::{
    middleware::TaskContext,
    rpc::{BoxFuture, Permit, spawn_boxed},
    server::items::{OnCancel, Registration},
};
use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::sync::oneshot;

/// A running handler. Every call in flight holds one: an `async fn` would need twice the memory.
pub(crate) struct HandlerRun<R> {
    // Dropped in this order: the handler is gone when the context fires.
    handler: BoxFuture<'static, Result<R, Failure>>,
    /// `None` if the handler holds the permit, because it may outlive this future.
    permit: Option<Permit>,
    /// `None` if the handler is a part of a larger request, whose owner fires the context.
    cancel: Option<FireOnDrop>,
}

impl<R: Send + 'static> HandlerRun<R> {
    /// Runs a handler. Dropping the future cancels it in the way of its registration.
    pub(crate) fn new(
        registration: &Registration<R>,
        call: Invocation,
        permit: Permit,
    ) -> HandlerRun<R> {
        let cancel = FireOnDrop { ctx: call.ctx.clone(), is_armed: false };
        HandlerRun { cancel: Some(cancel), ..HandlerRun::part(registration, call, permit) }
    }

    /// Runs a handler that is a part of a request. Dropping the future does not fire the context.
    pub(crate) fn part(
        registration: &Registration<R>,
        call: Invocation,
        permit: Permit,
    ) -> HandlerRun<R> {
        match registration.on_cancel {
            OnCancel::Drop => {
                let handler = registration.handler.call(call);
                HandlerRun { handler, permit: Some(permit), cancel: None }
            }
            OnCancel::Apart(apart, grace) => {
                let ctx = call.ctx.clone();
                let handler = apart(registration.handler.call(call), ctx, grace, permit);
                HandlerRun { handler, permit: None, cancel: None }
            }
        }
    }
}

impl<R> Future for HandlerRun<R> {
    type Output = Result<R, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A handler that never started is not cancelled.
        if let Some(cancel) = &mut self.cancel {
            cancel.is_armed = true;
        }
        let replied = ready!(self.handler.as_mut().poll(context));
        self.permit = None;
        if let Some(cancel) = &mut self.cancel {
            cancel.is_armed = false;
        }
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
    let (reply, replied) = oneshot::channel();
    let handler = Box::pin(async move { drop(reply.send(handler.await)) });
    Box::pin(async move {
        run_apart(handler, ctx, grace, permit).await?;
        let late = |_| Err(Failure::internal("the handler did not end within its grace period"));
        replied.await.unwrap_or_else(late)
    })
}

/// Runs a handler as a task of its own until it ends, or its grace period does.
async fn run_apart(
    handler: BoxFuture<'static, ()>,
    ctx: Ctx,
    grace: Option<Duration>,
    permit: Permit,
) -> Result<(), Failure> {
    // What layers lent stays taken for as long as it runs.
    let lent = ctx.lent();
    let task = spawn_boxed(Box::pin(TaskContext::current().future(async move {
        let _held = (permit, lent);
        let Some(grace) = grace else { return handler.await };
        tokio::select! {
            () = handler => {}
            () = async { ctx.cancelled().await; tokio::time::sleep(grace).await } => {}
        }
    })));
    match task.await {
        Ok(()) => Ok(()),
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
