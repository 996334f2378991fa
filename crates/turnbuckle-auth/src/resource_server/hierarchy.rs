//! Owns which scopes imply which. Does not own what a token says, nor what is needed.

use std::collections::BTreeMap;

use crate::Scopes;

/// 2026-07-28 basic/authorization: a broader scope is good for the narrower ones that it implies.
#[derive(Clone, Debug, Default)]
pub(super) struct Hierarchy(BTreeMap<String, Scopes>);

impl Hierarchy {
    pub(super) fn add(&mut self, scope: String, implied: Scopes) {
        let known = self.0.entry(scope).or_default();
        *known = known.union(&implied);
    }

    /// These, with all that they imply.
    pub(super) fn all(&self, granted: Scopes) -> Scopes {
        if self.0.is_empty() {
            return granted;
        }
        let mut all = granted;
        loop {
            let implied = all.iter().filter_map(|scope| self.0.get(scope));
            let more = implied.fold(all.clone(), |sum, scopes| sum.union(scopes));
            // It grows or ends, so a circle does too.
            if more == all {
                return all;
            }
            all = more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(scopes: &str) -> String {
        let mut hierarchy = Hierarchy::default();
        hierarchy.add("admin".into(), Scopes::from_iter(["write"]));
        hierarchy.add("admin".into(), Scopes::from_iter(["users"]));
        hierarchy.add("write".into(), Scopes::from_iter(["read"]));
        hierarchy.add("a".into(), Scopes::from_iter(["b"]));
        hierarchy.add("b".into(), Scopes::from_iter(["a"]));
        hierarchy.all(scopes.parse().unwrap()).to_string()
    }

    #[test]
    fn what_is_broader_has_what_is_narrower_and_not_the_other_way_round() {
        assert_eq!(all("admin"), "admin read users write");
        assert_eq!(all("write other"), "other read write");
        assert_eq!(all("read"), "read");
        assert_eq!(all(""), "");
    }

    #[test]
    fn a_circle_ends() {
        assert_eq!(all("a"), "a b");
    }
}
