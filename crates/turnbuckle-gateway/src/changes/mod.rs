//! Notifications of changes between the eras: a modern client's listen stream on a legacy server, and
//! a legacy client's subscriptions on a modern server.

mod listen;
mod relay;
mod stream;

use turnbuckle::types::{Method, RpcError, ServerCapabilities, SubscriptionFilter};

pub(crate) use listen::serve_listen_stream;
pub(crate) use relay::{ChangeRelay, RelayTask};

/// The most resources that one client may subscribe to.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1000;

/// Returns the error for a client with too many subscriptions.
pub(crate) fn too_many_subscriptions() -> RpcError {
    RpcError::internal(format!(
        "too many subscriptions on this connection: the limit is {MAX_SUBSCRIPTIONS}"
    ))
}

/// A kind of list change, which a filter can ask for and a server can support.
struct ListChange {
    method: Method,
    wanted: fn(&mut SubscriptionFilter) -> &mut Option<bool>,
}

/// Returns the list changes that a filter asks for and the server reports.
fn list_changes(filter: &SubscriptionFilter, server: &ServerCapabilities) -> Vec<ListChange> {
    let tools = server.tools.as_ref().and_then(|tools| tools.list_changed);
    let prompts = server.prompts.as_ref().and_then(|prompts| prompts.list_changed);
    let resources = server.resources.as_ref().and_then(|resources| resources.list_changed);
    let all = [
        (
            tools,
            ListChange {
                method: Method::ToolListChanged,
                wanted: |filter| &mut filter.tools_list_changed,
            },
        ),
        (
            prompts,
            ListChange {
                method: Method::PromptListChanged,
                wanted: |filter| &mut filter.prompts_list_changed,
            },
        ),
        (
            resources,
            ListChange {
                method: Method::ResourceListChanged,
                wanted: |filter| &mut filter.resources_list_changed,
            },
        ),
    ];
    let mut filter = filter.clone();
    let both = all.into_iter().filter(|(reported, change)| {
        *reported == Some(true) && *(change.wanted)(&mut filter) == Some(true)
    });
    both.map(|(_, change)| change).collect()
}
