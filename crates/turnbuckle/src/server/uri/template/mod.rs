//! Owns a template as its users see it, and its error. Does not own syntax, matching or expansion.

use std::{fmt, str::FromStr};

use super::characters::{Token, tokens};
use super::plan::{Plan, Step, plan};
use super::syntax::{self, Piece};
use super::variables::Variables;
use super::{expand, matching, overlap};

/// A URI template of RFC 6570 (all four levels) that addresses can be matched with.
///
/// ```
/// use turnbuckle::UriTemplate;
///
/// let template = UriTemplate::parse("notes://{folder}/{id}{?version,lang}")?;
/// let variables = template.matches("notes://a%20b/7?lang=de").unwrap();
/// assert_eq!(variables.text("folder"), Some("a b"));
/// assert_eq!(variables.text("id"), Some("7"));
/// assert_eq!(variables.text("lang"), Some("de"));
/// assert_eq!(variables.text("version"), None);
/// assert!(template.matches("notes://a/b/7").is_none());
/// # Ok::<(), turnbuckle::TemplateError>(())
/// ```
///
/// # What matches
///
/// | written | matches | holds |
/// |---|---|---|
/// | `{x}` | at least one character | no `/`, `?`, `#`, nor the reserved character that comes next in the template |
/// | `{x,y}` | values with commas between them, the last ones may be absent | as above, no `,` |
/// | `{+x}` | at least one character | anything |
/// | `{/x,y}`, `{.x,y}` | `/` or `.` before each value, the last ones or all may be absent | as `{x}`, no `.` |
/// | `{;x,y}` | `;x=…;y=…` in any order, each may be absent, no others | as `{x}`, no `;` |
/// | `{?x,y}`, `{&x,y}` | parameters of the query in any order, each may be absent, others are ignored | no `&`, no `#` |
/// | `{#x}` | the fragment, which may be absent | anything |
///
/// With `*`, the last variable of an expression takes all values that are left, as
/// [`TextValue::Many`](crate::TextValue); without, a variable has one text and may not be there twice.
/// With `:3`, a text has at most three characters.
///
/// Values are percent-decoded: `%2F` in the address is `/` in a value, although `/` as such ends it.
/// An address with a broken escape or a value that is not UTF-8 does not match, nor does one of more
/// than 8 KiB. Two spellings of one address match alike: `%7e`, `%7E` and `~`.
///
/// Matching takes time in proportion to the length of the address. That is possible because a template
/// that could be read in two ways is refused by [`parse`](UriTemplate::parse).
#[derive(Clone)]
pub struct UriTemplate {
    text: String,
    pieces: Vec<Piece>,
    plan: Plan,
    places: Vec<overlap::Place>,
}

impl UriTemplate {
    /// Reads a template of at most 2 KiB and 32 variables.
    ///
    /// What could not be matched without guessing is refused, and the error says what to write.
    ///
    /// ```
    /// use turnbuckle::UriTemplate;
    /// let error = UriTemplate::parse("cars://{make}-{model}").unwrap_err();
    /// assert!(error.to_string().starts_with("nobody can tell where `{make}` ends"), "{error}");
    /// ```
    pub fn parse(text: &str) -> Result<UriTemplate, TemplateError> {
        let pieces = syntax::read(text)?;
        let plan = plan(&pieces)?;
        let places = overlap::places(&plan);
        Ok(UriTemplate { text: text.to_owned(), pieces, plan, places })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of the variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        syntax::variables(&self.pieces).map(|variable| variable.name.as_str())
    }

    /// The values of the variables in an address; `None` if the address is another.
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        if uri.len() > matching::LONGEST {
            return None;
        }
        self.read(&tokens(uri)?).0
    }

    /// The address that has these values. A variable without a value leaves nothing.
    ///
    /// [`matches`](UriTemplate::matches) gives the values back, except where the address does not show
    /// them: an empty `{x}` or `{+x}`, what `:3` cuts off, a list without `*`, a value after an absent
    /// one in `{x,y}`, `{/x,y}` and `{.x,y}`, dots in `{.x}`, escapes in `{+x}` and `{#x}`, and what ends
    /// `{+x}` in this template.
    pub fn expand(&self, variables: &Variables) -> String {
        expand::expand(&self.pieces, variables)
    }

    /// Whether some address can match both templates.
    ///
    /// This may err on the side of yes, where the difference is only in what a query requires, how
    /// long a value may be or which names `{;x}` has. It never says no to templates that share an
    /// address.
    ///
    /// ```
    /// use turnbuckle::UriTemplate;
    /// let [id, name, all] = ["n://{id}", "n://{name}", "n://all/{x}"].map(|text| UriTemplate::parse(text).unwrap());
    /// assert!(id.overlaps(&name));
    /// assert!(!id.overlaps(&all));
    /// ```
    pub fn overlaps(&self, other: &UriTemplate) -> bool {
        // Nearly all pairs part here.
        let mut starts = self.start().iter().zip(other.start());
        starts.all(|(a, b)| a == b) && overlap::overlap(&self.places, &other.places)
    }

    /// What every address that matches begins with.
    pub(super) fn start(&self) -> &[Token] {
        match self.plan.before.first() {
            Some(Step::Literal(text)) => text,
            _ => &[],
        }
    }

    /// Also says how many characters were looked at.
    pub(super) fn read(&self, uri: &[Token]) -> (Option<Variables>, usize) {
        matching::read(&self.plan, uri)
    }
}

impl FromStr for UriTemplate {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<UriTemplate, TemplateError> {
        UriTemplate::parse(text)
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UriTemplate").field(&self.text).finish()
    }
}

/// A template that cannot be used, and what to write instead.
///
/// ```
/// use turnbuckle::UriTemplate;
/// let error = UriTemplate::parse("n://{id}/{id}").unwrap_err();
/// assert_eq!(error.to_string(), "`id` is there twice: give each variable a name of its own");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError(String);

impl TemplateError {
    pub(super) fn new(sentence: impl Into<String>) -> TemplateError {
        TemplateError(sentence.into())
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TemplateError {}

#[cfg(test)]
mod tests;
