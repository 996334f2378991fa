//! The listen stream of a modern client on a legacy server, made of subscriptions and of the server's
//! notifications.

use std::{collections::BTreeSet, future::poll_fn, sync::Arc};

use turnbuckle::{
    __seam::{ForwardedRequest, ResourceClaim, decode},
    types::{Acknowledged, Listen, Method, Raw, RpcError, ServerCapabilities, SubscriptionFilter},
};

use super::{MAX_SUBSCRIPTIONS, list_changes};
use crate::{
    call::{RequestPurpose, ServerMessage, Topics, changes_lost, listen_result},
    gateway::Outcome,
    translate,
    upstream::UpstreamConnection,
};

/// Serves a listen stream. Dropping the future unsubscribes.
pub(crate) async fn serve_listen_stream(
    connection: Arc<UpstreamConnection>,
    request: ForwardedRequest,
) -> Outcome {
    let caller = &request.caller;
    let Listen { notifications: filter, .. } = decode(&request.params)?;
    let lists = list_changes(&filter, &connection.server.capabilities);
    let uris = subscribable(&filter, &connection.server.capabilities)?;
    let topics = Topics {
        lists: lists.iter().map(|change| change.method.as_str()).collect(),
        uris: uris.iter().cloned().collect(),
    };
    // Registered first, so that no later change is missed.
    let revisions = connection.revisions(caller.revision());
    let purpose = RequestPurpose::Stream(topics);
    let in_flight = connection.router.register(Some(caller.clone()), revisions, purpose);
    let mut closed = connection.router.closed();
    let mut claims: Vec<(String, ResourceClaim)> = Vec::new();
    for uri in uris {
        match connection.subscribe(&uri).await {
            Ok(claim) => claims.push((uri, claim)),
            Err(error) => tracing::debug!(%error, "a resource can't be subscribed to"),
        }
    }
    let mut granted = SubscriptionFilter::new();
    lists.iter().for_each(|change| *(change.wanted)(&mut granted) = Some(true));
    let subscribed: Vec<_> = claims.iter().map(|(uri, _)| uri.clone()).collect();
    granted.resource_subscriptions = Some(subscribed).filter(|uris| !uris.is_empty());
    let mut acknowledged = Acknowledged::new(granted);
    acknowledged.meta.set_subscription_id(caller.request_id().clone());
    let acknowledged = Raw::at(&acknowledged, caller.revision());
    caller.notify(Method::Acknowledged.as_str(), acknowledged.as_str()).await;
    caller.set_shutdown_result(listen_result(caller));
    loop {
        let message = tokio::select! {
            biased;
            message = poll_fn(|context| in_flight.request.poll_message(context)) => message,
            error = closed.wait_for(Option::is_some) => {
                let error = error.ok().and_then(|error| error.as_ref().map(ToString::to_string));
                return Err(RpcError::internal(format!(
                    "the server behind this gateway has ended: {}",
                    error.unwrap_or_default()
                )));
            }
        };
        if in_flight.request.has_dropped() {
            return Err(changes_lost());
        }
        if let ServerMessage::Notification(note) = message {
            let id = Some(caller.request_id());
            let params = translate::with_subscription_id(note.params.text(), id);
            caller.notify(&note.method, &params).await;
        }
    }
}

/// Returns the resources of a filter, if the server supports subscriptions.
fn subscribable(
    filter: &SubscriptionFilter,
    server: &ServerCapabilities,
) -> Result<BTreeSet<String>, RpcError> {
    let resources = server.resources.as_ref();
    let is_supported = resources.is_some_and(|resources| resources.subscribe == Some(true));
    let uris = filter.resource_subscriptions.iter().flatten().filter(|_| is_supported);
    let uris: BTreeSet<_> = uris.cloned().collect();
    if uris.len() > MAX_SUBSCRIPTIONS {
        return Err(RpcError::invalid_params(format!(
            "`params.notifications.resourceSubscriptions` names {} resources; {MAX_SUBSCRIPTIONS} \
             may be named",
            uris.len()
        )));
    }
    Ok(uris)
}
