//! [`UriTemplate`] and its error.

use std::{fmt, str::FromStr};

use super::{
    characters::{Token, tokens},
    expand,
    matching::{MAX_URI, Matcher},
    syntax::{self, Operator, Piece},
    variables::Variables,
};

/// A URI template of RFC 6570 (all four levels) that URIs can be matched with.
///
/// ```
/// use turnbuckle::server::UriTemplate;
///
/// let template = UriTemplate::parse("notes://{folder}/{id}{?version,lang}")?;
/// let variables = template.matches("notes://a%20b/7?lang=de").unwrap();
/// assert_eq!(variables.text("folder"), Some("a b"));
/// assert_eq!(variables.text("id"), Some("7"));
/// assert_eq!(variables.text("lang"), Some("de"));
/// assert_eq!(variables.text("version"), None);
/// assert!(template.matches("notes://a/b/7").is_none());
/// # Ok::<(), turnbuckle::server::TemplateError>(())
/// ```
///
/// # Matching
///
/// | expression | matches | characters of a value |
/// |---|---|---|
/// | `{x}` | at least one character | no `/`, `?`, `#`, nor the reserved character that comes next in the template |
/// | `{x,y}` | values with commas between them, the last ones may be absent | as above, no `,` |
/// | `{+x}` | at least one character | any; no `?` before `{?…}`, no `#` before `{#…}` |
/// | `{/x,y}`, `{.x,y}` | `/` or `.` before each value, the last ones or all may be absent | as `{x}`, no `.` in `{.x}` |
/// | `{;x,y}` | `;x=…;y=…` in any order, each may be absent, no others | as `{x}`, no `;` |
/// | `{?x,y}`, `{&x,y}` | parameters of the query in any order, each may be absent, others are ignored | no `&`, no `#` |
/// | `{#x}` | the fragment, which may be absent | any |
///
/// Where this leaves a choice, a value takes as many characters as possible, the first value first:
/// `{name}.{ext}` reads `a.tar.gz` as `a.tar` and `gz`.
///
/// With `*`, the last variable of an expression takes all values that are left, as
/// [`TextValue::Many`](crate::server::TextValue); without `*`, a variable has one text. With `:3`, a text of
/// more than three characters does not match.
///
/// Values are percent-decoded: `%2F` in the URI is `/` in a value, although `/` itself ends the value.
/// A URI with a broken escape or a value that is not UTF-8 does not match, nor does one of more
/// than 8 KiB. Two spellings of one URI match alike: `%7e`, `%7E` and `~`.
///
/// Matching takes time in proportion to the length of the URI.
///
/// # Specificity
///
/// A server may have several templates that match one URI. The most specific one answers: the one
/// with the most literal characters; of these the one with the fewest `{+x}`; of these the one that
/// was registered first. Two templates that differ in the names of their variables only are refused.
#[derive(Clone)]
#[doc(alias = "ResourceTemplate")]
#[doc(alias = "RFC6570")]
pub struct UriTemplate {
    text: String,
    pieces: Vec<Piece>,
    matcher: Matcher,
}

impl UriTemplate {
    /// Parses a template of at most 2 KiB and 32 variables.
    ///
    /// ```
    /// use turnbuckle::server::UriTemplate;
    /// let error = UriTemplate::parse("cars://{make}{model}").unwrap_err();
    /// assert!(error.to_string().starts_with("nothing separates `{make}` from"), "{error}");
    /// ```
    pub fn parse(text: &str) -> Result<UriTemplate, TemplateError> {
        let pieces = syntax::parse(text)?;
        let matcher = Matcher::new(&pieces)?;
        Ok(UriTemplate { text: text.to_owned(), pieces, matcher })
    }

    /// Returns the text of the template.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the names of the variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        syntax::variables(&self.pieces).map(|variable| variable.name.as_str())
    }

    /// Returns the values of the variables in a URI, or `None` if it does not match.
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        if uri.len() > MAX_URI {
            return None;
        }
        self.read(&tokens(uri)?)
    }

    /// Returns the URI that has these values. A variable without a value adds nothing.
    ///
    /// [`matches`](UriTemplate::matches) gives the values back, except where the URI does not show
    /// them: an empty `{x}` or `{+x}`, characters that `:3` cuts off, a list without `*`, a value after
    /// an absent one in `{x,y}`, `{/x,y}` and `{.x,y}`, dots in `{.x}`, escapes in `{+x}` and `{#x}`, and
    /// values that the template does not separate clearly.
    pub fn expand(&self, variables: &Variables) -> String {
        expand::expand(&self.pieces, variables)
    }

    /// Returns `true` if the templates differ in the names of their variables only, so that they
    /// match the same URIs.
    pub(crate) fn has_shape_of(&self, other: &UriTemplate) -> bool {
        self.matcher.has_shape_of(&other.matcher)
    }

    pub(super) fn literal_length(&self) -> usize {
        self.matcher.literal_length()
    }

    /// Returns the number of variables in `{+…}`.
    pub(super) fn open_variables(&self) -> usize {
        let count = |piece: &Piece| match piece {
            Piece::Expression(expression) if expression.operator == Operator::Reserved => {
                expression.variables.len()
            }
            _ => 0,
        };
        self.pieces.iter().map(count).sum()
    }

    pub(super) fn read(&self, uri: &[Token]) -> Option<Variables> {
        self.matcher.read(uri)
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

/// An invalid template. The message says what to write instead.
///
/// ```
/// use turnbuckle::server::UriTemplate;
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
