//! Owns what events have made stale, and since when: pure. Does not own the answers, nor where
//! events come from.

use std::{collections::HashMap, time::SystemTime};

use turnbuckle_types::{Method, ResourceUpdated};

use super::key::Topic;
use crate::dispatch::Note;

/// How many resources are told apart; past that all are stale.
const MOST: usize = 1024;

/// A moment in the order of what happens here. Each is after all that were given out before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order(u64);

/// When something became stale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    /// What was begun before is stale.
    pub(super) order: Order,
    /// The same for what others have put into a store, by the clock.
    pub(super) time: SystemTime,
}

pub(super) struct Evicted {
    next: u64,
    everything: Since,
    lists: HashMap<Method, Since>,
    every_resource: Since,
    resources: HashMap<String, Since>,
}

impl Default for Evicted {
    fn default() -> Evicted {
        let never = Since { order: Order(0), time: SystemTime::UNIX_EPOCH };
        Evicted {
            next: 0,
            everything: never,
            lists: HashMap::new(),
            every_resource: never,
            resources: HashMap::new(),
        }
    }
}

impl Evicted {
    /// Now.
    pub(super) fn order(&mut self) -> Order {
        self.next += 1;
        Order(self.next)
    }

    pub(super) fn everything(&mut self, time: SystemTime) {
        self.everything = Since { order: self.order(), time };
        self.lists.clear();
        self.resources.clear();
    }

    pub(super) fn evict(&mut self, topic: &Topic, time: SystemTime) {
        let since = Since { order: self.order(), time };
        match topic {
            Topic::List(method) => {
                self.lists.insert(*method, since);
            }
            Topic::Resource(uri) => {
                if self.resources.len() >= MOST && !self.resources.contains_key(uri) {
                    self.resources.clear();
                    self.every_resource = since;
                }
                self.resources.insert(uri.clone(), since);
            }
        }
    }

    /// Since when a topic's older answers are stale.
    pub(super) fn since(&self, topic: &Topic) -> Since {
        let (own, all) = match topic {
            Topic::List(method) => (self.lists.get(method), None),
            Topic::Resource(uri) => (self.resources.get(uri), Some(&self.every_resource)),
        };
        let others = own.into_iter().chain(all).copied();
        let latest = |a: Since, b: Since| if a.order > b.order { a } else { b };
        others.fold(self.everything, latest)
    }
}

/// What a notification makes stale.
pub(super) fn by(note: &Note) -> Vec<Topic> {
    // Most notifications are of another kind, such as progress.
    if !note.method.ends_with("/list_changed") && !note.method.ends_with("/updated") {
        return Vec::new();
    }
    match Method::from_name(&note.method) {
        Some(Method::ToolListChanged) => vec![Topic::List(Method::ListTools)],
        Some(Method::PromptListChanged) => vec![Topic::List(Method::ListPrompts)],
        // Templates stand for resources, too, and have no event of their own.
        Some(Method::ResourceListChanged) => {
            vec![Topic::List(Method::ListResources), Topic::List(Method::ListResourceTemplates)]
        }
        Some(Method::ResourceUpdated) => {
            match serde_json::from_str::<ResourceUpdated>(note.params.text()) {
                Ok(updated) => concerned(&updated.uri),
                Err(_) => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// The resource itself and those that it is a part of, each with and without a slash at its end.
fn concerned(uri: &str) -> Vec<Topic> {
    let mut topics = vec![Topic::Resource(uri.to_owned())];
    let path = uri.find("://").map_or(0, |scheme| scheme + 3);
    for (slash, _) in uri.match_indices('/').filter(|(at, _)| *at >= path).take(64) {
        topics.extend([slash, slash + 1].map(|end| Topic::Resource(uri[..end].to_owned())));
    }
    topics
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    #[test]
    fn what_was_begun_before_an_event_is_stale_and_what_comes_after_is_not() {
        let mut evicted = Evicted::default();
        let tools = Topic::List(Method::ListTools);
        let before = evicted.order();
        assert!(evicted.since(&tools).order < before);
        evicted.evict(&tools, NOW);
        let after = evicted.order();
        let since = evicted.since(&tools).order;
        assert!(before < since && since < after);
        assert!(evicted.since(&Topic::List(Method::ListPrompts)).order < before, "only its own");
        evicted.everything(NOW);
        assert!(evicted.since(&tools).order > after);
    }

    #[test]
    fn too_many_resources_are_stale_together() {
        let mut evicted = Evicted::default();
        let kept = Topic::Resource("kept:".into());
        let before = evicted.order();
        for count in 0..MOST {
            evicted.evict(&Topic::Resource(format!("a:{count}")), NOW);
        }
        assert!(evicted.since(&kept).order < before);
        evicted.evict(&Topic::Resource("a:more".into()), NOW);
        assert!(evicted.since(&kept).order > before);
        assert!(evicted.since(&Topic::Resource("a:0".into())).order > before);
        assert!(evicted.resources.len() <= MOST);
    }

    #[test]
    fn each_event_has_its_topics() {
        let topics = |method: &str, params: serde_json::Value| {
            by(&Note::new(method.to_owned(), Some(params.into())))
        };
        let list = |method| Topic::List(method);
        let none = || json!({});
        let tools = topics("notifications/tools/list_changed", none());
        assert_eq!(tools, [list(Method::ListTools)]);
        let prompts = topics("notifications/prompts/list_changed", none());
        assert_eq!(prompts, [list(Method::ListPrompts)]);
        let resources = topics("notifications/resources/list_changed", none());
        assert_eq!(resources, [list(Method::ListResources), list(Method::ListResourceTemplates)]);
        let read = |uri: &str| Topic::Resource(uri.to_owned());
        let updated = |uri: &str| topics("notifications/resources/updated", json!({"uri": uri}));
        assert_eq!(updated("note:7"), [read("note:7")]);
        let parts = ["file:///a/b", "file://", "file:///", "file:///a", "file:///a/"];
        assert_eq!(updated("file:///a/b"), parts.map(read));
        assert_eq!(topics("notifications/progress", json!({"uri": "a"})), []);
        assert_eq!(topics("notifications/resources/updated", none()), []);
    }
}
