//! Owns what waits to be read on a listen stream: each thing once, in the order in which it was
//! first told, and no more than may wait. Does not own where it comes from.

use std::collections::{HashSet, VecDeque};

use super::Event;

/// What waits for whoever reads.
#[derive(Debug)]
pub(super) struct Coalesced {
    waiting: VecDeque<Event>,
    /// The resources among them.
    uris: HashSet<String>,
    /// How many may wait.
    most: usize,
}

impl Coalesced {
    pub(super) fn new(most: usize) -> Coalesced {
        // Nothing less than one could ever be told.
        Coalesced { waiting: VecDeque::new(), uris: HashSet::new(), most: most.max(1) }
    }

    /// Adds what does not wait already. Where there is no room everything that waits gives way to
    /// one [`Event::Missed`], which says no less.
    pub(super) fn push(&mut self, event: Event) {
        if self.holds(&event) {
            return;
        }
        if self.is_full() {
            self.waiting.clear();
            self.uris.clear();
            self.waiting.push_back(Event::Missed);
            return;
        }
        if let Event::ResourceUpdated(uri) = &event {
            self.uris.insert(uri.clone());
        }
        self.waiting.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front()?;
        if let Event::ResourceUpdated(uri) = &event {
            self.uris.remove(uri);
        }
        Some(event)
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= self.most
    }

    fn holds(&self, event: &Event) -> bool {
        match event {
            Event::ResourceUpdated(uri) => self.uris.contains(uri),
            // What has a meaning of its own is told as often as it is said.
            Event::Other { .. } => false,
            _ => self.waiting.contains(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(uri: &str) -> Event {
        Event::ResourceUpdated(uri.into())
    }

    fn all(coalesced: &mut Coalesced) -> Vec<Event> {
        std::iter::from_fn(|| coalesced.pop()).collect()
    }

    #[test]
    fn each_thing_waits_once_where_it_was_first_told() {
        let mut coalesced = Coalesced::new(8);
        for _ in 0..3 {
            coalesced.push(updated("a:1"));
            coalesced.push(Event::ToolsChanged);
            coalesced.push(updated("a:2"));
            coalesced.push(Event::PromptsChanged);
        }
        let once = [updated("a:1"), Event::ToolsChanged, updated("a:2"), Event::PromptsChanged];
        assert_eq!(all(&mut coalesced), once);
        // What was read may be told again.
        coalesced.push(updated("a:1"));
        assert_eq!(all(&mut coalesced), [updated("a:1")]);
    }

    #[test]
    fn what_does_not_fit_is_one_word_for_everything() {
        let mut coalesced = Coalesced::new(2);
        coalesced.push(updated("a:1"));
        coalesced.push(updated("a:2"));
        coalesced.push(updated("a:1"));
        coalesced.push(updated("a:3"));
        assert_eq!(all(&mut coalesced), [Event::Missed]);
        coalesced.push(updated("a:1"));
        assert_eq!(all(&mut coalesced), [updated("a:1")]);
        let mut none = Coalesced::new(0);
        none.push(Event::ToolsChanged);
        assert_eq!(all(&mut none), [Event::ToolsChanged]);
    }
}
