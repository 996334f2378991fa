//! Owns the stream of a modern client on a legacy server: subscriptions, and what the server tells
//! unasked. Does not own streams within one era, nor the other way round: `relay` does.

use std::{collections::BTreeSet, future::poll_fn, sync::Arc};

use turnbuckle_types::{
    Acknowledged, Listen, Method, Raw, RpcError, ServerCapabilities, SubscriptionFilter,
};

use super::{
    call::{behind, farewell, say},
    flight::{Purpose, Told, Topics},
    link::Link,
    translate,
};
use crate::{
    client::Watched, dispatch::Outcome, envelope::params::decode, server::forward::Visitor,
};

/// How many resources one client may name.
pub(super) const MOST: usize = 1000;

/// A stream of a modern client on a legacy server: subscriptions, and what the server tells unasked.
/// Dropping the future unsubscribes.
pub(super) async fn on_legacy(link: Arc<Link>, visitor: Visitor) -> Outcome {
    let Visitor { params, ctx, permit, .. } = visitor;
    let Listen { notifications: asked, .. } = decode(&params)?;
    let lists = lists(&asked, &link.facts.capabilities);
    let uris = uris(&asked, &link.facts.capabilities)?;
    let topics = Topics {
        lists: lists.iter().map(|(method, _)| method.as_str()).collect(),
        uris: uris.iter().cloned().collect(),
    };
    // Entered first: nothing that happens from now on is missed.
    let sides = link.sides(ctx.revision());
    let entered = link.router.enter(Some(ctx.clone()), sides, Purpose::Stream(topics));
    let mut ended = link.router.ended();
    let mut watched: Vec<(String, Watched)> = Vec::new();
    for uri in uris {
        match link.watch(&uri).await {
            Ok(claim) => watched.push((uri, claim)),
            Err(error) => tracing::debug!(%error, "a resource can't be subscribed to"),
        }
    }
    let mut granted = SubscriptionFilter::new();
    lists.iter().for_each(|(_, grant)| grant(&mut granted));
    let named: Vec<_> = watched.iter().map(|(uri, _)| uri.clone()).collect();
    granted.resource_subscriptions = Some(named).filter(|named| !named.is_empty());
    let mut acknowledged = Acknowledged::new(granted);
    acknowledged.meta.set_subscription_id(ctx.request_id().clone());
    let acknowledged = Raw::at(&acknowledged, ctx.revision());
    say(&ctx, Method::Acknowledged.as_str(), acknowledged.as_str()).await;
    ctx.replies().at_shutdown(farewell(&ctx));
    loop {
        let told = tokio::select! {
            biased;
            told = poll_fn(|context| entered.flight.poll_told(context)) => told,
            why = ended.wait_for(Option::is_some) => {
                let why = why.ok().and_then(|why| why.as_ref().map(ToString::to_string));
                drop(permit);
                return Err(RpcError::internal(format!(
                    "the server behind this bridge has ended: {}",
                    why.unwrap_or_default()
                )));
            }
        };
        if entered.flight.is_behind() {
            return Err(behind());
        }
        if let Told::Note(note) = told {
            let params = translate::subscription(note.params.text(), Some(ctx.request_id()));
            say(&ctx, &note.method, &params).await;
        }
    }
}

type Grant = fn(&mut SubscriptionFilter);

/// The lists that are asked for and that the server tells of.
pub(super) fn lists(asked: &SubscriptionFilter, has: &ServerCapabilities) -> Vec<(Method, Grant)> {
    let all: [(Option<bool>, Option<bool>, Method, Grant); 3] = [
        (
            asked.tools_list_changed,
            has.tools.as_ref().and_then(|tools| tools.list_changed),
            Method::ToolListChanged,
            |granted| granted.tools_list_changed = Some(true),
        ),
        (
            asked.prompts_list_changed,
            has.prompts.as_ref().and_then(|prompts| prompts.list_changed),
            Method::PromptListChanged,
            |granted| granted.prompts_list_changed = Some(true),
        ),
        (
            asked.resources_list_changed,
            has.resources.as_ref().and_then(|resources| resources.list_changed),
            Method::ResourceListChanged,
            |granted| granted.resources_list_changed = Some(true),
        ),
    ];
    let both =
        all.into_iter().filter(|(asked, has, ..)| *asked == Some(true) && *has == Some(true));
    both.map(|(_, _, method, grant)| (method, grant)).collect()
}

/// The resources that are asked for, if the server takes subscriptions.
fn uris(
    asked: &SubscriptionFilter,
    has: &ServerCapabilities,
) -> Result<BTreeSet<String>, RpcError> {
    let takes = has.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true));
    let uris = asked.resource_subscriptions.iter().flatten().filter(|_| takes);
    let uris: BTreeSet<_> = uris.cloned().collect();
    if uris.len() > MOST {
        return Err(RpcError::invalid_params(format!(
            "`params.notifications.resourceSubscriptions` names {} resources; {MOST} may be named",
            uris.len()
        )));
    }
    Ok(uris)
}
