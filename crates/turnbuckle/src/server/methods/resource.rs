//! Owns `resources/read`, and how any request reaches what a URI leads to. Does not own the
//! resources.

use turnbuckle_types::{Method, ReadResource, ReadResourceResult, ResourceContents, RpcError};

use super::{
    HandlerRequest, RequestTarget, RunEnd, RunSubject, VisibilityCheck, encode, reach, settled,
};
use crate::{
    middleware::{Stack, server::IncomingRequest},
    protocol::params::decode,
    rpc::{Outcome, Reply},
    server::{
        elicit::{
            ElicitingRun, {self},
        },
        handler::{
            extract::{Arguments, Invocation},
            reply::not_found,
        },
        methods::cache_hints::ListAudience,
        registry::FoundResource,
        shared::App,
    },
};

pub(crate) fn read_resource(visit: HandlerRequest) -> Result<Reply, RpcError> {
    let ReadResource { uri, .. } = decode(&visit.params)?;
    let found = visit.app.snapshot().find(&uri);
    let found = found.ok_or_else(|| not_found(&uri, visit.ctx.revision()))?;
    let (variables, checks) = match &found {
        FoundResource::Resource(_) => (Vec::new(), None),
        FoundResource::Template(template, variables) => {
            (variables.clone().into_texts(), template.checks.clone())
        }
    };
    let mut call = visit.call(Arguments::Text(variables));
    call.checks = checks;
    Ok(reach_found(visit, Method::ReadResource, (found, uri), move |visit, (found, uri)| {
        Reply::Later(Box::pin(read(visit, found, uri, call)))
    }))
}

/// Whether anything stands between a request and what its URI leads to.
pub(crate) fn is_guarded(app: &App, found: &FoundResource) -> bool {
    app.has_rules_for(found) || !layers(found).is_empty()
}

/// Takes a request to what its URI leads to: past the rules, through the layers.
pub(crate) fn reach_found(
    visit: HandlerRequest,
    method: Method,
    (found, uri): (FoundResource, String),
    answer: impl FnOnce(HandlerRequest, (FoundResource, String)) -> Reply + Send + 'static,
) -> Reply {
    let gate = if visit.app.has_rules_for(&found) {
        let (found, uri) = (found.clone(), uri.clone());
        VisibilityCheck::Rule(move |visit: &HandlerRequest| {
            let is_shown = visit.app.shows(&found, &visit.ctx);
            is_shown.then_some(()).ok_or_else(|| not_found(&uri, visit.ctx.revision()))
        })
    } else {
        VisibilityCheck::Open
    };
    let (name, layers) = (uri.clone(), layers(&found).clone());
    let target = move || RequestTarget { method, name, layers };
    reach(visit, gate, target, move |visit| answer(visit, (found, uri)))
}

fn layers(found: &FoundResource) -> &Stack<IncomingRequest> {
    match found {
        FoundResource::Resource(resource) => &resource.registration.layers,
        FoundResource::Template(template, _) => &template.registration.layers,
    }
}

async fn read(
    visit: HandlerRequest,
    found: FoundResource,
    uri: String,
    call: Invocation,
) -> Outcome {
    let HandlerRequest { app, ctx, params, permit } = visit;
    let (offer, mime_type, cache) = match &found {
        FoundResource::Resource(one) => (&one.registration, &one.spec.mime_type, one.cache),
        FoundResource::Template(one, _) => (&one.registration, &one.spec.mime_type, one.cache),
    };
    let subject = RunSubject::of(Method::ReadResource, &uri, &params);
    let mut course = ElicitingRun::new(offer, call, permit);
    let replied = match elicit::run(&app, offer, &ctx, &mut course, subject).await {
        RunEnd::Replied(replied) => replied,
        RunEnd::Instead(outcome) => return outcome,
    };
    let mut result: ReadResourceResult = settled(replied, &ctx, &uri)?;
    result.contents.iter_mut().for_each(|contents| complete(contents, &uri, mime_type));
    let audience =
        if app.has_rules_for(&found) { ListAudience::Caller } else { ListAudience::Everyone };
    app.caching.complete(&mut result, cache, audience);
    Ok(encode(&app, &ctx, result, 0, |result| &mut result.meta))
}

/// Fills in what the handler left to the request and the registration.
fn complete(contents: &mut ResourceContents, uri: &str, mime_type: &Option<String>) {
    let (own_uri, own_type) = match contents {
        ResourceContents::Text(contents) => (&mut contents.uri, &mut contents.mime_type),
        ResourceContents::Blob(contents) => (&mut contents.uri, &mut contents.mime_type),
        _ => return,
    };
    if own_uri.is_empty() {
        uri.clone_into(own_uri);
    }
    if own_type.is_none() {
        own_type.clone_from(mime_type);
    }
}
