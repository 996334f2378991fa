//! Owns `completion/complete`. Does not own the completers.

use std::sync::Arc;

use turnbuckle_types::{
    Complete, CompleteResult, Completion, CompletionReference, Method, Raw, RpcError,
};

use super::{HandlerRequest, RequestTarget, VisibilityCheck, as_text, reach, settled};
use crate::{
    middleware::{
        Stack,
        server::{IncomingRequest, OutgoingInput},
    },
    protocol::params::decode,
    rpc::{Outcome, Reply},
    server::{
        handler::{context::Ctx, extract::Invocation, run::HandlerRun},
        items::{Completer, Completers, PromptDef, Registration, TemplateDef},
        registry::{Entry, RegistrySnapshot},
        shared::App,
    },
};

/// The most suggestions that a completion may have.
// 2026-07-28 server/utilities/completion §Completion Results.
const SUGGESTIONS: usize = 100;

pub(crate) fn complete_argument(visit: HandlerRequest) -> Result<Reply, RpcError> {
    let asked: Complete = decode(&visit.params)?;
    let whole =
        CompletionSubject::find(&visit.app.snapshot(), &asked.reference).ok_or_else(unknown)?;
    let gate = if whole.has_rules(&visit.app) {
        let whole = whole.clone();
        VisibilityCheck::Rule(move |visit: &HandlerRequest| {
            whole.is_shown(&visit.app, &visit.ctx).then_some(()).ok_or_else(unknown)
        })
    } else {
        VisibilityCheck::Open
    };
    let (name, layers) = (completed(&asked.reference).to_owned(), whole.layers().clone());
    let target = move || RequestTarget { method: Method::Complete, name, layers };
    Ok(reach(visit, gate, target, move |visit| suggest(visit, &whole, asked)))
}

fn unknown() -> RpcError {
    RpcError::invalid_params("`params.ref` is nothing that this server offers")
}

/// What it is whose argument is completed.
fn completed(reference: &CompletionReference) -> &str {
    match reference {
        CompletionReference::Prompt(prompt) => &prompt.name,
        CompletionReference::Resource(template) => &template.uri,
        _ => "",
    }
}

/// What has arguments that can be completed.
#[derive(Clone)]
enum CompletionSubject {
    Prompt(Arc<Entry<PromptDef>>),
    Template(Arc<Entry<TemplateDef>>),
}

impl CompletionSubject {
    fn find(
        snapshot: &RegistrySnapshot,
        reference: &CompletionReference,
    ) -> Option<CompletionSubject> {
        match reference {
            CompletionReference::Prompt(prompt) => {
                snapshot.prompt(&prompt.name).cloned().map(CompletionSubject::Prompt)
            }
            CompletionReference::Resource(template) => {
                snapshot.template(&template.uri).cloned().map(CompletionSubject::Template)
            }
            _ => None,
        }
    }

    fn has_rules(&self, app: &App) -> bool {
        match self {
            CompletionSubject::Prompt(prompt) => app.rules.concern(&***prompt),
            CompletionSubject::Template(template) => app.rules.concern(&***template),
        }
    }

    fn is_shown(&self, app: &App, ctx: &Ctx) -> bool {
        match self {
            CompletionSubject::Prompt(prompt) => app.rules.show(&***prompt, ctx),
            CompletionSubject::Template(template) => app.rules.show(&***template, ctx),
        }
    }

    fn completers(&self) -> &Completers {
        match self {
            CompletionSubject::Prompt(prompt) => &prompt.completers,
            CompletionSubject::Template(template) => &template.completers,
        }
    }

    fn input_layers(&self) -> &Stack<OutgoingInput> {
        match self {
            CompletionSubject::Prompt(prompt) => &prompt.registration.input_layers,
            CompletionSubject::Template(template) => &template.registration.input_layers,
        }
    }

    fn layers(&self) -> &Stack<IncomingRequest> {
        match self {
            CompletionSubject::Prompt(prompt) => &prompt.registration.layers,
            CompletionSubject::Template(template) => &template.registration.layers,
        }
    }
}

fn suggest(visit: HandlerRequest, whole: &CompletionSubject, asked: Complete) -> Reply {
    let (completers, argument) = (whole.completers(), asked.argument);
    if !completers.knows(&argument.name) {
        let message = format!("there is no argument named `{}`", argument.name);
        return Reply::Now(Err(RpcError::invalid_params(message)));
    }
    let typed = argument.value;
    let completion = match completers.find(&argument.name).cloned() {
        None => Completion::new([]),
        Some(Completer::Values(values)) => {
            let matching = values.iter().filter(|value| begins(value, &typed)).cloned();
            Completion::new(matching.collect::<Vec<_>>())
        }
        Some(Completer::Handler(offer)) => {
            visit.ctx.set_input_middleware(whole.input_layers());
            let known = asked.context.and_then(|context| context.arguments).unwrap_or_default();
            let call = Invocation { typed: Some(typed), ..visit.call(as_text(known)) };
            return Reply::Later(Box::pin(run_completer(visit, offer, call)));
        }
    };
    Reply::Now(Ok(suggested(&visit.app, &visit.ctx, completion)))
}

async fn run_completer(
    visit: HandlerRequest,
    offer: Arc<Registration<Completion>>,
    call: Invocation,
) -> Outcome {
    let HandlerRequest { app, ctx, permit, .. } = visit;
    let replied = HandlerRun::new(&offer, call, permit).await;
    Ok(suggested(&app, &ctx, settled(replied, &ctx, "completion")?))
}

fn suggested(app: &App, ctx: &Ctx, mut completion: Completion) -> Raw {
    let count = completion.values.len();
    if count > SUGGESTIONS {
        completion.values.truncate(SUGGESTIONS);
        completion.has_more = Some(true);
    }
    let total = *completion.total.get_or_insert(count as u64);
    completion.has_more.get_or_insert(total > count as u64);
    app.finish(&CompleteResult::new(completion), ctx.revision())
}

fn begins(value: &str, typed: &str) -> bool {
    let mut letters = value.chars().flat_map(char::to_lowercase);
    typed.chars().flat_map(char::to_lowercase).all(|letter| letters.next() == Some(letter))
}
