//! Owns the way of a request that asks: what the client kept is opened before anything runs, and a
//! handler that waits for answers becomes a result that asks for them.
//! Does not own the handler, nor a single question.

use std::{
    future::poll_fn,
    sync::{Arc, atomic::AtomicUsize},
    task::Poll,
    time::SystemTime,
};

use turnbuckle_types::{
    Era, Method, Named, Raw, RpcError,
    jsonrpc::{Params, Retry},
};

use super::{
    by_hand::InputRequired,
    error::AskError,
    round::Round,
    state::{Binding, Kept, Refusal, TooLong},
};
use crate::{
    dispatch::{BoxFuture, Outcome, duplex::Permit},
    server::{
        app::App,
        calls::encode,
        context::Ctx,
        extract::Invocation,
        offer::Offer,
        reply::{Cause, Failure},
        run,
    },
};

/// What a request is about, to which what the client keeps is bound.
#[derive(Clone, Copy)]
pub(in crate::server) struct Subject<'a> {
    pub(in crate::server) method: Method,
    /// The tool, the prompt, or the resource's URI.
    pub(in crate::server) name: &'a str,
    pub(in crate::server) params: &'a Params,
}

/// How a run ended.
pub(in crate::server) enum Ended<R> {
    /// The handler has come to something.
    Replied(Result<R, Failure>),
    /// The client is asked something, or told that what it sent is not enough.
    Instead(Outcome),
}

/// Runs a handler that may ask. Dropping this future cancels it.
pub(in crate::server) async fn run<R: Send + 'static>(
    app: &App,
    offer: &Offer<R>,
    call: Invocation,
    permit: Permit,
    subject: Subject<'_>,
) -> Ended<R> {
    let ctx = call.ctx.clone();
    if ctx.revision().era() == Era::Legacy {
        let replied = live(app, offer, call, permit).await;
        ctx.asking().is_over = true;
        return Ended::Replied(replied);
    }
    if let Some(retry) = &subject.params.retry {
        match Box::pin(taken_up(app, &ctx, subject, retry)).await {
            Ok(round) => *ctx.asking() = round,
            Err(error) => return Ended::Instead(Err(error)),
        }
    }
    match run::run(offer, call, permit).await {
        Ok(result) => Ended::Replied(Ok(result)),
        Err(failure) => failed(app, &ctx, failure, subject),
    }
}

/// What the client sends back, once all of it is found sound.
async fn taken_up(
    app: &App,
    ctx: &Ctx,
    subject: Subject<'_>,
    retry: &Retry,
) -> Result<Round, RpcError> {
    let present = |member: &Option<Raw>| member.clone().filter(|raw| *raw != Raw::null());
    let given: Named<Raw> = match present(&retry.input_responses) {
        None => Named::new(),
        Some(given) => given.decode().map_err(|_| {
            RpcError::invalid_params(
                "`params.inputResponses` must be an object that has no member twice",
            )
        })?,
    };
    let Some(state) = present(&retry.request_state) else {
        // Answers that were not asked for yet spare a round.
        return Ok(Round::retried(Kept::default(), given));
    };
    let state: String = state
        .decode()
        .map_err(|_| RpcError::invalid_params("`params.requestState` must be a string"))?;
    let (id, kept) = Kept::open(&app.keys, &binding(ctx, subject), &state, SystemTime::now())?;
    if kept.round > app.asking.rounds {
        return Err(Refusal::TooManyRounds.into());
    }
    if let Some(store) = &app.asking.store {
        match store.spend(id, kept.until()).await {
            Ok(true) => {}
            Ok(false) => return Err(Refusal::Spent.into()),
            Err(error) => {
                tracing::error!(error = &*error, "a request state can't be spent");
                return Err(RpcError::internal("internal error"));
            }
        }
    }
    Ok(Round::retried(kept, given))
}

/// What becomes of a handler that failed: if it waits for answers, whatever it failed with, the
/// client is asked.
fn failed<R>(app: &App, ctx: &Ctx, failure: Failure, subject: Subject<'_>) -> Ended<R> {
    let revision = ctx.revision();
    match failure.0 {
        Cause::Ask(asks) => {
            let asked = match asks.asked(revision) {
                Ok(asked) => asked,
                Err(problem) => return Ended::Replied(Err(Failure::internal(problem))),
            };
            for (key, method, params) in asked {
                if let Some(capability) = ctx.lacks(method, &params) {
                    let error = AskError::unsupported(key, capability, revision);
                    return Ended::Instead(Err(error.into()));
                }
                ctx.asking().open_anew(key, method, params);
            }
            ctx.asking().set_by_hand(asks.state.clone());
        }
        cause => {
            let mut round = ctx.asking();
            if let Some(refusal) = round.refusal() {
                return Ended::Instead(Err(refusal));
            }
            if !round.is_open() {
                return Ended::Replied(Err(Failure(cause)));
            }
        }
    }
    Ended::Instead(suspended(app, ctx, subject))
}

/// The result that asks for what is open.
fn suspended(app: &App, ctx: &Ctx, subject: Subject<'_>) -> Outcome {
    let (mut result, kept) = {
        let mut round = ctx.asking();
        if round.rounds() >= app.asking.rounds {
            return Err(Refusal::TooManyRounds.into());
        }
        round.suspend()
    };
    let lifetime = app.asking.lifetime;
    let sealed = kept.seal(&app.keys, &binding(ctx, subject), SystemTime::now(), lifetime);
    result.request_state = Some(sealed.map_err(|TooLong| {
        RpcError::internal("what this request has to keep until it is answered is too long")
    })?);
    Ok(encode(app, ctx, result, 0, |result| &mut result.meta))
}

fn binding(ctx: &Ctx, subject: Subject<'_>) -> Binding {
    let principal = ctx.principal::<()>();
    let principal = principal.as_ref().map(|principal| principal.name());
    let arguments = subject.params.arguments.as_ref().map_or("{}", Raw::as_str);
    Binding::new(principal, subject.method.as_str(), subject.name, arguments)
}

/// Runs a handler for a client that can be asked while it runs. One that asks by hand all the same
/// is run again with the answers.
async fn live<R: Send + 'static>(
    app: &App,
    offer: &Offer<R>,
    call: Invocation,
    permit: Permit,
) -> Result<R, Failure> {
    let in_flight = permit.counter();
    match run::run(offer, call.clone(), permit).await {
        Err(Failure(Cause::Ask(asks))) => {
            Box::pin(asked_live(app, offer, call, &in_flight, asks)).await
        }
        replied => replied,
    }
}

/// Puts what a handler asks by hand to a client, and runs it again, until it asks nothing more.
async fn asked_live<R: Send + 'static>(
    app: &App,
    offer: &Offer<R>,
    call: Invocation,
    in_flight: &Arc<AtomicUsize>,
    mut asks: InputRequired,
) -> Result<R, Failure> {
    let ctx = &call.ctx;
    loop {
        let too_often = ctx.asking().rounds() >= app.asking.rounds;
        if too_often {
            return Err(RpcError::from(Refusal::TooManyRounds).into());
        }
        let permit = Permit::another(in_flight);
        let answers = put(ctx, &asks).await?;
        ctx.asking().again(answers, asks.state);
        match run::run(offer, call.clone(), permit).await {
            Err(Failure(Cause::Ask(more))) => asks = more,
            replied => return replied,
        }
    }
}

/// Puts all questions to the client at once.
async fn put(ctx: &Ctx, asks: &InputRequired) -> Result<Named<Raw>, Failure> {
    let asked = asks.asked(ctx.revision()).map_err(Failure::internal)?;
    let mut waiting = Vec::new();
    for (key, method, params) in asked {
        if let Some(capability) = ctx.lacks(method, &params) {
            return Err(AskError::unsupported(key, capability, ctx.revision()).into());
        }
        let question: BoxFuture<'_, _> = Box::pin(ctx.outgoing(key, method, params, None));
        waiting.push((key, question, None));
    }
    poll_fn(|context| {
        let mut done = Poll::Ready(Ok(()));
        for (_, question, answer) in &mut waiting {
            if answer.is_some() {
                continue;
            }
            match question.as_mut().poll(context) {
                Poll::Ready(Ok(raw)) => *answer = Some(raw),
                // The first error is enough: the other questions are taken back.
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => done = Poll::Pending,
            }
        }
        done
    })
    .await?;
    Ok(waiting.into_iter().filter_map(|(key, _, answer)| Some((key, answer?))).collect())
}
