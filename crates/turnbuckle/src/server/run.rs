//! Owns one run of a handler: how it is stopped, and that it is told. Does not own which handler
//! runs, nor what becomes of what it returns.

use std::time::Duration;

use super::{
    context::Ctx,
    extract::Invocation,
    observe::Carry,
    offer::{Offer, OnCancel},
    reply::Failure,
};
use crate::dispatch::{BoxFuture, duplex::Permit};

/// Runs a handler. Dropping this future cancels it in the way the offer asks for.
///
/// An `async fn` would keep room for the call beside the handler that has taken it.
pub(super) fn run<R: Send + 'static>(
    offer: &Offer<R>,
    call: Invocation,
    permit: Permit,
) -> impl Future<Output = Result<R, Failure>> + Send + use<R> {
    let armed = FireOnDrop::new(&call.ctx);
    let running = run_part(offer, call, permit);
    async move {
        let replied = running.await;
        armed.disarm();
        replied
    }
}

/// Runs a handler that is a part of what its request asks for: whoever runs the whole tells when
/// that is given up.
pub(super) fn run_part<R: Send + 'static>(
    offer: &Offer<R>,
    call: Invocation,
    permit: Permit,
) -> impl Future<Output = Result<R, Failure>> + Send + use<R> {
    let (ctx, on_cancel) = (call.ctx.clone(), offer.on_cancel);
    let handler = offer.handler.clone().call(call);
    async move {
        match on_cancel {
            OnCancel::Drop => {
                let replied = handler.await;
                drop(permit);
                replied
            }
            OnCancel::Apart(apart, grace) => apart(handler, ctx, grace, permit).await,
        }
    }
}

/// How a handler runs that may outlive its request. See [`apart`].
pub(super) type Apart<R> = fn(
    BoxFuture<'static, Result<R, Failure>>,
    Ctx,
    Option<Duration>,
    Permit,
) -> BoxFuture<'static, Result<R, Failure>>;

/// Runs a handler that may outlive its request as a task of its own. It counts as in
/// flight until it ends.
pub(super) fn apart<R: Send + 'static>(
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
    let task = tokio::spawn(Carry::here().future(async move {
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

/// Tells everyone who holds the context when the request was given up.
pub(super) struct FireOnDrop {
    ctx: Ctx,
    is_armed: bool,
}

impl FireOnDrop {
    pub(super) fn new(ctx: &Ctx) -> FireOnDrop {
        FireOnDrop { ctx: ctx.clone(), is_armed: true }
    }

    pub(super) fn disarm(mut self) {
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
