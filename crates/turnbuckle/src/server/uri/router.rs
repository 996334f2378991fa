//! Finds the template that a URI belongs to.

use std::cmp::Reverse;

use super::{characters::tokens, matching::MAX_URI, template::UriTemplate, variables::Variables};

/// Templates and the values that are registered under them, the most specific template first: the
/// one with the most literal characters, of these the one with the fewest `{+x}`, of these the one
/// that was registered first.
#[derive(Debug)]
pub(crate) struct UriRouter<T> {
    entries: Vec<(UriTemplate, T)>,
}

impl<T> UriRouter<T> {
    /// Returns the value under the most specific template that matches, and the variables.
    pub(crate) fn find(&self, uri: &str) -> Option<(&T, Variables)> {
        let uri = tokens(Some(uri).filter(|uri| uri.len() <= MAX_URI)?)?;
        self.entries.iter().find_map(|(template, value)| Some((value, template.read(&uri)?)))
    }
}

impl<T> FromIterator<(UriTemplate, T)> for UriRouter<T> {
    fn from_iter<I: IntoIterator<Item = (UriTemplate, T)>>(entries: I) -> UriRouter<T> {
        let mut entries: Vec<_> = entries.into_iter().collect();
        // Stable: equals stay in the order of their registration.
        entries.sort_by_cached_key(|(template, _)| {
            (Reverse(template.literal_length()), template.open_variables())
        });
        UriRouter { entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(templates: &[&str]) -> UriRouter<usize> {
        let parsed = templates.iter().map(|text| UriTemplate::parse(text).unwrap());
        parsed.zip(0..).collect()
    }

    #[test]
    fn the_most_specific_template_is_found() {
        let templates = ["{+any}", "a://{x}", "a://b/{x}", "a://b{x}", "a://b/{x}/c", "z://z"];
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
            for reversed in [false, true] {
                let mut templates = templates.to_vec();
                if reversed {
                    templates.reverse();
                }
                let router = router(&templates);
                let (value, variables) = router.find(uri).unwrap();
                let found = if reversed { templates.len() - 1 - found } else { found };
                assert_eq!((*value, variables.text("x")), (found, x), "{uri}");
            }
        }
        let router = router(&templates);
        assert!(router.find("").is_none());
        assert!(router.find("a://%").is_none());
    }

    #[test]
    fn specificity_is_literal_text_then_open_variables_then_order() {
        for (uri, templates, winner) in [
            ("n://all", ["n://{id}", "n://{+path}"], 0),
            ("n://all", ["n://{+path}", "n://{id}"], 1),
            ("n://a.md", ["n://{id}", "n://{id}.md"], 1),
            ("n://a/b.md", ["n://{x}/{y}", "n://{+path}.md"], 1),
            ("n://me/archive/1", ["n://me/{+rest}", "n://{user}/archive/{id}"], 1),
            ("n://a", ["n://{x}", "n://{x}{?q}"], 0),
            ("n://a", ["n://{x}{?q}", "n://{x}"], 0),
            ("n://a?q=1", ["n://{x}", "n://{x}{?q}"], 1),
            ("n://a/b", ["n://a{/x}", "n://a{/x*}"], 0),
            ("n://a/b/c", ["n://a{/x}", "n://a{/x*}"], 1),
        ] {
            let found = router(&templates).find(uri).map(|(value, _)| *value);
            assert_eq!(found, Some(winner), "{uri} with {templates:?}");
        }
    }
}
