//! `subscriptions/listen`, of 2026-07-28.

use crate::{Meta, ResultType, wire::modern};

model! {
    /// Which notifications are wanted, or granted.
    ///
    /// ```
    /// use turnbuckle_types::{Listen, SubscriptionFilter};
    /// let mut filter = SubscriptionFilter::new();
    /// filter.tools_list_changed = Some(true);
    /// filter.resource_subscriptions = Some(vec!["note://7".into()]);
    /// let listen = Listen::new(filter);
    /// ```
    pub struct SubscriptionFilter {
        optional {
            /// The list of tools changed.
            tools_list_changed("toolsListChanged"): Option<bool>,
            /// The list of prompts changed.
            prompts_list_changed("promptsListChanged"): Option<bool>,
            /// The list of resources changed.
            resources_list_changed("resourcesListChanged"): Option<bool>,
            /// One of these resources changed.
            resource_subscriptions("resourceSubscriptions"): Option<Vec<String>>,
        }
    }
}

model! {
    /// The params of `subscriptions/listen`.
    pub struct Listen {
        required {
            /// What is wanted.
            notifications("notifications"): SubscriptionFilter,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `subscriptions/listen`: the server has ended it. Its `_meta` names
    /// the subscription.
    pub struct ListenResult {
        optional {
            /// What kind of result this is.
            #[require(modern::complete)]
            result_type("resultType"): Option<ResultType>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `notifications/subscriptions/acknowledged`, the first message of a
    /// subscription.
    pub struct Acknowledged {
        required {
            /// What is granted.
            notifications("notifications"): SubscriptionFilter,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}
