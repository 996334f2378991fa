//! Sets of scopes.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// What a token is good for: a set of names.
///
/// ```
/// use turnbuckle_auth::Scopes;
/// let asked: Scopes = "files:read files:write".parse().unwrap();
/// let needed = Scopes::from_iter(["files:write", "admin"]);
/// assert!(!asked.contains_all(&needed));
/// assert_eq!(asked.union(&needed).to_string(), "admin files:read files:write");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(BTreeSet<String>);

impl Scopes {
    /// None at all.
    pub fn none() -> Scopes {
        Scopes::default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this one is among them.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// Whether all of `others` are among them.
    pub fn contains_all(&self, others: &Scopes) -> bool {
        others.0.is_subset(&self.0)
    }

    /// These and those.
    pub fn union(&self, others: &Scopes) -> Scopes {
        Scopes(self.0.union(&others.0).cloned().collect())
    }

    /// Each of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<S: Into<String>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Scopes {
        Scopes(scopes.into_iter().map(Into::into).filter(|scope| is_scope(scope)).collect())
    }
}

/// Splits at spaces; never fails. What can't be a scope (RFC 6749 §3.3) is left out.
impl FromStr for Scopes {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Scopes, Self::Err> {
        Ok(text.split(' ').collect())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{scope}")?;
        }
        Ok(())
    }
}

fn is_scope(text: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !text.is_empty() && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_scope_is_left_out() {
        let scopes: Scopes = " a  b\"c d\\e f\u{e9} g ".parse().unwrap();
        assert_eq!(scopes.to_string(), "a g");
    }
}
