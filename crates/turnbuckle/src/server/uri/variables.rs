//! The values of the variables of a template.

/// A text, or several.
///
/// ```
/// use turnbuckle::server::TextValue;
/// assert_eq!(TextValue::from("a"), TextValue::One("a".to_owned()));
/// assert_eq!(TextValue::from(["a", "b"]).iter().collect::<Vec<_>>(), ["a", "b"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextValue {
    /// The value of a plain variable.
    One(String),
    /// The values of a variable with `*`.
    Many(Vec<String>),
}

impl TextValue {
    /// Returns the text, or each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let texts = match self {
            TextValue::One(text) => std::slice::from_ref(text),
            TextValue::Many(texts) => texts,
        };
        texts.iter().map(String::as_str)
    }
}

impl From<&str> for TextValue {
    fn from(text: &str) -> TextValue {
        TextValue::One(text.to_owned())
    }
}

impl From<String> for TextValue {
    fn from(text: String) -> TextValue {
        TextValue::One(text)
    }
}

impl From<Vec<String>> for TextValue {
    fn from(texts: Vec<String>) -> TextValue {
        TextValue::Many(texts)
    }
}

impl<const N: usize> From<[&str; N]> for TextValue {
    fn from(texts: [&str; N]) -> TextValue {
        TextValue::Many(texts.map(str::to_owned).into())
    }
}

/// The values of a template's variables.
///
/// ```
/// use turnbuckle::server::{UriTemplate, Variables};
///
/// let template = UriTemplate::parse("note://{id}{?tag*}")?;
/// let variables = Variables::new().with("id", "a/b").with("tag", ["x", "y"]);
/// assert_eq!(template.expand(&variables), "note://a%2Fb?tag=x&tag=y");
/// assert_eq!(variables.text("id"), Some("a/b"));
/// # Ok::<(), turnbuckle::server::TemplateError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(
    /// Invariant: sorted by name, and no name appears twice.
    Vec<(String, VariableValue)>,
);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VariableValue {
    Text(TextValue),
    Pairs(Vec<(String, String)>),
}

impl Variables {
    /// Creates an empty set of values.
    pub fn new() -> Variables {
        Variables::default()
    }

    /// Sets the value of a variable, replacing an earlier one.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<TextValue>) -> Variables {
        self.set(name.into(), VariableValue::Text(value.into()));
        self
    }

    /// Sets the value of a variable to names and values, an associative array in RFC 6570. Such a
    /// value can be expanded; matching never yields one.
    #[must_use]
    pub fn with_pairs<K: Into<String>, V: Into<String>>(
        mut self,
        name: impl Into<String>,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Variables {
        let pairs = pairs.into_iter().map(|(key, value)| (key.into(), value.into()));
        self.set(name.into(), VariableValue::Pairs(pairs.collect()));
        self
    }

    /// Returns the value of a variable.
    pub fn value(&self, name: &str) -> Option<&TextValue> {
        match self.any(name)? {
            VariableValue::Text(value) => Some(value),
            VariableValue::Pairs(_) => None,
        }
    }

    /// Returns the value of a variable that has one text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            TextValue::One(text) => Some(text),
            TextValue::Many(_) => None,
        }
    }

    /// Returns `true` if no variable has a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the variables that have texts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &TextValue)> {
        self.0.iter().filter_map(|(name, value)| match value {
            VariableValue::Text(value) => Some((name.as_str(), value)),
            VariableValue::Pairs(_) => None,
        })
    }

    pub(super) fn any(&self, name: &str) -> Option<&VariableValue> {
        self.position(name).ok().map(|at| &self.0[at].1)
    }

    /// Adds the text of a variable, unless it has one already.
    pub(super) fn add(&mut self, name: &str, text: String) -> Option<()> {
        let at = self.position(name).err()?;
        self.0.insert(at, (name.to_owned(), VariableValue::Text(TextValue::One(text))));
        Some(())
    }

    /// Adds one of the texts of a variable with `*`.
    pub(super) fn push(&mut self, name: &str, text: String) {
        match self.position(name) {
            Ok(at) => {
                if let VariableValue::Text(TextValue::Many(texts)) = &mut self.0[at].1 {
                    texts.push(text);
                }
            }
            Err(at) => {
                let texts = TextValue::Many(vec![text]);
                self.0.insert(at, (name.to_owned(), VariableValue::Text(texts)));
            }
        }
    }

    fn set(&mut self, name: String, value: VariableValue) {
        match self.position(&name) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (name, value)),
        }
    }

    /// Returns the index of a variable, or the one where it belongs.
    fn position(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    /// Returns the variables that have texts, for [`from_text`](super::from_text).
    pub(crate) fn into_texts(self) -> Vec<(String, TextValue)> {
        let text = |(name, value)| match value {
            VariableValue::Text(value) => Some((name, value)),
            VariableValue::Pairs(_) => None,
        };
        self.0.into_iter().filter_map(text).collect()
    }
}
