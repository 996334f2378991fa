//! Owns the way of a request that asks: what the client kept is opened before anything runs, and a
//! handler that waits for answers becomes a result that asks for them.
//! Does not own the handler, nor a single question.

use std::{future::poll_fn, task::Poll, time::SystemTime};

use super::{
    error::AskError,
    round::ElicitRound,
    state::{SealedState, StateBinding, StateRefusal, StateTooLong},
};
use crate::{
    rpc::{BoxFuture, Outcome, Permit},
    server::{
        elicit::input_required::InputRequired,
        handler::{
            context::Ctx,
            extract::Invocation,
            reply::{Cause, Failure},
            run::HandlerRun,
        },
        items::Registration,
        methods::{RunEnd, RunSubject, encode},
        shared::App,
    },
};
use turnbuckle_types::{Named, Questions, Raw, RpcError, jsonrpc::Retry};

/// A handler that may ask, before it runs. It has taken the call: what a request holds while it
/// is in flight is little more than the handler.
pub(crate) struct ElicitingRun<R> {
    run: HandlerRun<R>,
    /// The call once more, for a client that is asked while the handler runs.
    again: Option<Box<Invocation>>,
}

impl<R: Send + 'static> ElicitingRun<R> {
    pub(crate) fn new(
        offer: &Registration<R>,
        call: Invocation,
        permit: Permit,
    ) -> ElicitingRun<R> {
        call.ctx.set_input_middleware(&offer.input_layers);
        let is_live = call.ctx.revision().questions() == Questions::AsRequests;
        let again = is_live.then(|| Box::new(call.clone()));
        ElicitingRun { run: HandlerRun::new(offer, call, permit), again }
    }
}

/// Runs a handler that may ask. Dropping the course cancels it.
///
/// Every call passes here, most of which ask nothing: what is rare is boxed, and what an `async fn`
/// would keep twice is kept once.
#[expect(clippy::manual_async_fn, reason = "an `async fn` would keep room for its arguments twice")]
pub(crate) fn run<'a, R: Send + 'static>(
    app: &'a App,
    offer: &'a Registration<R>,
    ctx: &'a Ctx,
    course: &'a mut ElicitingRun<R>,
    subject: RunSubject<'a>,
) -> impl Future<Output = RunEnd<R>> + Send + 'a {
    async move {
        if course.again.is_some() {
            let replied = Box::pin(live(app, offer, course)).await;
            ctx.asking().is_over = true;
            return RunEnd::Replied(replied);
        }
        if let Some(retry) = subject.retry {
            match Box::pin(taken_up(app, ctx, subject, retry)).await {
                Ok(round) => *ctx.asking() = round,
                Err(error) => return RunEnd::Instead(Err(error)),
            }
        }
        // Not awaited in the match, which would keep room for what it looks at.
        let failed = match (&mut course.run).await {
            // It went on without an answer for which nobody was asked: in the other era it would have had
            // one. What it came to is worth nothing before that.
            Ok(_) if ctx.is_asking() => return RunEnd::Instead(suspended(app, ctx, subject)),
            Ok(result) => return RunEnd::Replied(Ok(result)),
            Err(failure) => Box::pin(failed(app, ctx, failure, subject)),
        };
        match failed.await {
            Ok(instead) => RunEnd::Instead(instead),
            Err(failure) => RunEnd::Replied(Err(failure)),
        }
    }
}

/// What the client sends back, once all of it is found sound.
async fn taken_up(
    app: &App,
    ctx: &Ctx,
    subject: RunSubject<'_>,
    retry: &Retry,
) -> Result<ElicitRound, RpcError> {
    fn present(member: &Option<Raw>) -> Option<&Raw> {
        member.as_ref().filter(|raw| raw.as_str() != "null")
    }
    let given: Named<Raw> = match present(&retry.input_responses) {
        None => Named::new(),
        Some(given) => given.members().map_err(|_| {
            RpcError::invalid_params(
                "`params.inputResponses` must be an object that has no member twice",
            )
        })?,
    };
    let Some(state) = present(&retry.request_state) else {
        // Answers that were not asked for yet spare a round. Where each counts once they need a state,
        // which is what can be spent.
        let given = if app.asking.store.is_some() { Named::new() } else { given };
        return Ok(ElicitRound::retried(SealedState::default(), given));
    };
    let state = state
        .text()
        .map_err(|_| RpcError::invalid_params("`params.requestState` must be a string"))?;
    let (id, kept) =
        SealedState::open(&app.keys, &binding(ctx, subject), &state, SystemTime::now())?;
    if kept.round > app.asking.rounds {
        return Err(StateRefusal::TooManyRounds.into());
    }
    if let Some(store) = &app.asking.store {
        match store.spend(id, kept.until()).await {
            Ok(true) => {}
            Ok(false) => return Err(StateRefusal::Spent.into()),
            Err(error) => {
                tracing::error!(error = &*error, "a request state can't be spent");
                return Err(RpcError::internal("internal error"));
            }
        }
    }
    Ok(ElicitRound::retried(kept, given))
}

/// What becomes of a handler that failed: if it waits for answers, whatever it failed with, the
/// client is asked. What is sent instead of its result, or the failure.
async fn failed(
    app: &App,
    ctx: &Ctx,
    failure: Failure,
    subject: RunSubject<'_>,
) -> Result<Outcome, Failure> {
    let Failure(Cause::Ask(asks)) = failure else {
        let round = ctx.asking();
        if let Some(refusal) = failure.lack().or_else(|| round.refusal()) {
            return Ok(Err(refusal));
        }
        if !round.is_open() {
            return Err(failure);
        }
        drop(round);
        return Ok(suspended(app, ctx, subject));
    };
    match (asks.put.later)(ctx, &asks).await {
        Ok(()) => {
            ctx.asking().set_by_hand(asks.state);
            Ok(suspended(app, ctx, subject))
        }
        Err(failure) => failure.lack().map(Err).ok_or(failure),
    }
}

/// How what a handler asks by hand is put to its client.
pub(super) struct Put {
    /// Where answers come with the next request.
    later: Putting<()>,
    /// Where they come while it waits.
    now: Putting<Named<Raw>>,
}

type Putting<T> = for<'a> fn(&'a Ctx, &'a InputRequired) -> BoxFuture<'a, Result<T, Failure>>;

pub(super) static PUT: Put = Put {
    later: |ctx, asks| Box::pin(open_by_hand(ctx, asks)),
    now: |ctx, asks| Box::pin(put(ctx, asks)),
};

/// Opens what a handler asks by hand, past the layers around questions.
async fn open_by_hand(ctx: &Ctx, asks: &InputRequired) -> Result<(), Failure> {
    for (key, method, params) in asks.asked(ctx.revision()).map_err(Failure::internal)? {
        if let Some(capability) = ctx.lacks(method, &params) {
            return Err(AskError::unsupported(key, capability, ctx.revision()).into());
        }
        // It is asked anew, whatever was answered before.
        ctx.asking().forget(key);
        match ctx.outgoing(key, method, params, None).await {
            Err(error) if error.is_suspended() => {}
            Err(error) => return Err(error.into()),
            // A layer knew the answer: the handler reads it in the next round.
            Ok(answer) => ctx.asking().keep_answer(key, &answer),
        }
    }
    Ok(())
}

/// The result that asks for what is open.
fn suspended(app: &App, ctx: &Ctx, subject: RunSubject<'_>) -> Outcome {
    let (mut result, size, kept) = {
        let mut round = ctx.asking();
        if round.rounds() >= app.asking.rounds {
            return Err(StateRefusal::TooManyRounds.into());
        }
        let size = round.open_size();
        let (result, kept) = round.suspend();
        (result, size, kept)
    };
    let lifetime = app.asking.lifetime;
    let sealed = kept.seal(&app.keys, &binding(ctx, subject), SystemTime::now(), lifetime);
    let sealed = sealed.map_err(|StateTooLong| {
        RpcError::internal("what this request has to keep until it is answered is too long")
    })?;
    let size = size + sealed.len();
    result.request_state = Some(sealed);
    Ok(encode(app, ctx, result, size, |result| &mut result.meta))
}

fn binding(ctx: &Ctx, subject: RunSubject<'_>) -> StateBinding {
    let principal = ctx.principal::<()>();
    let principal = principal.as_ref().map(|principal| principal.name());
    let arguments = subject.arguments.map_or("{}", Raw::as_str);
    StateBinding::new(principal, subject.method.as_str(), subject.name, arguments)
}

/// Runs a handler for a client that can be asked while it runs. One that asks by hand all the same
/// is run again with the answers.
async fn live<R: Send + 'static>(
    app: &App,
    offer: &Registration<R>,
    course: &mut ElicitingRun<R>,
) -> Result<R, Failure> {
    let asked = match ((&mut course.run).await, course.again.take()) {
        (Err(Failure(Cause::Ask(asks))), Some(call)) => {
            Box::pin(asked_live(app, offer, *call, asks))
        }
        (replied, _) => return replied,
    };
    asked.await
}

/// Puts what a handler asks by hand to a client, and runs it again, until it asks nothing more.
async fn asked_live<R: Send + 'static>(
    app: &App,
    offer: &Registration<R>,
    call: Invocation,
    mut asks: InputRequired,
) -> Result<R, Failure> {
    loop {
        let permit = answered(app, &call.ctx, asks).await?;
        match HandlerRun::new(offer, call.clone(), permit).await {
            Err(Failure(Cause::Ask(more))) => asks = more,
            replied => return replied,
        }
    }
}

/// Puts what a handler asks by hand to a client, and keeps the answers for the next run.
async fn answered(app: &App, ctx: &Ctx, asks: InputRequired) -> Result<Permit, Failure> {
    let too_often = ctx.asking().rounds() >= app.asking.rounds;
    if too_often {
        return Err(RpcError::from(StateRefusal::TooManyRounds).into());
    }
    let permit = Permit::another(&ctx.0.in_flight);
    let answers = (asks.put.now)(ctx, &asks).await?;
    ctx.asking().again(answers, asks.state);
    Ok(permit)
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
