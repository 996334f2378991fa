//! Owns finding the template that matches an address among many. Does not own whether two of them may
//! match the same.

use super::characters::{Token, tokens};
use super::matching;
use super::template::UriTemplate;
use super::variables::Variables;

/// Templates and what is registered under them.
///
/// They are sorted by the text before their first variable, so that an address is compared with those
/// that begin like it only. Of several that match, the one that begins with more text is taken, then
/// the one that came first.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Vec<(UriTemplate, T)>,
    /// Invariant: sorted by `start`, each of which is there once.
    groups: Vec<Group>,
}

/// Templates that begin with the same text.
#[derive(Debug)]
struct Group {
    start: Vec<Token>,
    members: Vec<usize>,
    /// The group with the longest start that this one's start begins with.
    parent: Option<usize>,
}

impl<T> Table<T> {
    /// What is registered for an address, and the values of its variables.
    pub(crate) fn find(&self, uri: &str) -> Option<(&UriTemplate, &T, Variables)> {
        self.find_counting(uri).0
    }

    /// Also says how many templates were tried.
    fn find_counting(&self, uri: &str) -> (Option<(&UriTemplate, &T, Variables)>, usize) {
        let uri = Some(uri).filter(|uri| uri.len() <= matching::LONGEST).and_then(tokens);
        let Some(uri) = uri else { return (None, 0) };
        // Whatever the address begins with is sorted before it, and begins this group's start.
        let mut next = self.groups.partition_point(|group| group.start <= uri).checked_sub(1);
        let mut tried = 0;
        while let Some(at) = next {
            let group = &self.groups[at];
            next = group.parent;
            if !uri.starts_with(&group.start) {
                continue;
            }
            for member in &group.members {
                let (template, value) = &self.entries[*member];
                tried += 1;
                if let Some(variables) = template.read(&uri).0 {
                    return (Some((template, value, variables)), tried);
                }
            }
        }
        (None, tried)
    }

    /// What is registered, in the order in which it came.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(UriTemplate, T)> {
        self.entries.iter()
    }
}

impl<T> FromIterator<(UriTemplate, T)> for Table<T> {
    fn from_iter<I: IntoIterator<Item = (UriTemplate, T)>>(entries: I) -> Table<T> {
        let entries: Vec<_> = entries.into_iter().collect();
        let mut order: Vec<usize> = (0..entries.len()).collect();
        // Stable, so that equals stay in the order in which they came.
        order.sort_by_key(|at| entries[*at].0.start());
        let mut groups: Vec<Group> = Vec::new();
        for at in order {
            let start = entries[at].0.start();
            if let Some(group) = groups.last_mut().filter(|group| group.start == start) {
                group.members.push(at);
                continue;
            }
            let mut parent = groups.len().checked_sub(1);
            while let Some(at) = parent
                && !start.starts_with(&groups[at].start)
            {
                parent = groups[at].parent;
            }
            groups.push(Group { start: start.to_vec(), members: vec![at], parent });
        }
        Table { entries, groups }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(templates: &[&str]) -> Table<usize> {
        let parsed = templates.iter().map(|text| UriTemplate::parse(text).unwrap());
        parsed.zip(0..).collect()
    }

    #[test]
    fn more_text_goes_first() {
        let table = table(&["{+any}", "a://{x}", "a://b/{x}", "a://b{x}", "a://b/{x}/c", "z://z"]);
        for (uri, found, x) in [
            ("a://x", 1, Some("x")),
            ("a://b/1", 2, Some("1")),
            ("a://b/1/c", 4, Some("1")),
            ("a://bc", 3, Some("c")),
            ("a://b", 1, Some("b")),
            ("a://b/1/d", 0, None),
            ("z://z", 5, None),
            ("z://", 0, None),
        ] {
            let (template, value, variables) = table.find(uri).unwrap();
            assert_eq!((*value, variables.text("x")), (found, x), "{uri} by {template}");
        }
        assert!(table.find("").is_none());
        assert!(table.find("a://%").is_none());
        assert_eq!(table.iter().count(), 6);
    }

    #[test]
    fn first_come_first_served_among_equals() {
        let table = table(&["a://{x}", "a://{y}"]);
        assert_eq!(table.find("a://1").unwrap().1, &0);
    }

    #[test]
    fn a_thousand_templates_are_not_tried_in_turn() {
        let texts: Vec<_> = (0..1000).map(|n| format!("kind{n}://{{id}}")).collect();
        let table = table(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        for n in [0, 1, 10, 100, 999] {
            let uri = format!("kind{n}://a");
            let (found, tried) = table.find_counting(&uri);
            assert_eq!((found.map(|found| *found.1), tried), (Some(n), 1), "{uri}");
        }
        assert_eq!(table.find_counting("other://a").1, 0);
    }
}
