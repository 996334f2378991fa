//! Owns a `subscriptions/listen` stream: acknowledged first, then what was asked for.
//! Does not own the changes themselves.

use std::{future::poll_fn, sync::Arc};

use turnbuckle_types::{
    Acknowledged, ListenResult, Meta, Raw, RequestId, Revision, RpcError, Signal,
    SubscriptionFilter, write_at,
};

use super::app::App;
use crate::dispatch::{Outcome, duplex::Replies};

/// Serves one stream until its client, or the connection, ends it.
pub(super) async fn listen(
    app: Arc<App>,
    id: RequestId,
    asked: SubscriptionFilter,
    revision: Revision,
    replies: Replies,
) -> Outcome {
    let mut changes = app.changes.watch();
    let mut granted = SubscriptionFilter::new();
    granted.tools_list_changed =
        asked.tools_list_changed.filter(|wanted| *wanted && !app.tools.is_empty());
    let wants_tools = granted.tools_list_changed.is_some();

    // 2026-07-28 basic/patterns/subscriptions §Acknowledgment: the first message of the stream.
    let mut acknowledged = Acknowledged::new(granted);
    acknowledged.meta = subscription(&id);
    say(&replies, "notifications/subscriptions/acknowledged", |out| {
        write_at(&acknowledged, revision, out);
    })
    .await;

    let mut changed = Signal::new();
    changed.meta = subscription(&id);
    // The sender lives in `app`, so this ends only by being dropped.
    while changes.changed().await.is_ok() {
        if wants_tools {
            say(&replies, "notifications/tools/list_changed", |out| {
                write_at(&changed, revision, out);
            })
            .await;
        }
    }
    Err(RpcError::internal("the server stopped listening for changes"))
}

/// The result that ends a stream in good order.
pub(super) fn farewell(app: &App, id: &RequestId, revision: Revision) -> Raw {
    let mut result = ListenResult::new();
    result.meta = subscription(id);
    app.name_in(&mut result.meta, revision);
    Raw::at(&result, revision)
}

fn subscription(id: &RequestId) -> Meta {
    let mut meta = Meta::new();
    meta.set_subscription_id(id.clone());
    meta
}

async fn say(replies: &Replies, method: &str, mut render: impl FnMut(&mut Vec<u8>)) {
    poll_fn(|context| replies.poll_note(context, method, &mut render)).await;
}
