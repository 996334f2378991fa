//! Owns which arguments of a tool are repeated in headers: what `x-mcp-header` in its input
//! schema says, and whether it may say that. Does not own how a value is spelt in a header:
//! `mirror` does.

mod decimal;
mod pick;
mod survey;
#[cfg(all(test, feature = "client", feature = "server"))]
mod tests;

use std::sync::Arc;

#[cfg(feature = "server")]
use turnbuckle_types::RpcError;

use self::pick::{Picked, pick};
use crate::protocol::headers;

/// The keyword of a schema that names a header.
const KEYWORD: &str = "x-mcp-header";

/// The arguments of one tool that are repeated in headers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Annotations(
    /// Invariant: not empty, sorted by path, and no two headers are the same. `None` when
    /// nothing is annotated, which is what nearly every tool has.
    Option<Arc<[Annotation]>>,
);

/// One argument that is repeated.
#[derive(Debug, PartialEq)]
struct Annotation {
    /// The keys that lead to it. Invariant: not empty.
    path: Vec<String>,
    /// In lower case, `mcp-param-` included.
    header: String,
}

impl Annotations {
    /// Reads them from the text of an input schema. The error is one reason why they are
    /// invalid, and with them the whole definition of the tool.
    pub(crate) fn of(schema: &str) -> Result<Annotations, String> {
        if !may_annotate(schema) {
            return Ok(Annotations::default());
        }
        let mut found = survey::survey(schema)?;
        if found.is_empty() {
            return Ok(Annotations::default());
        }
        found.sort_unstable_by(|one, two| one.path.cmp(&two.path));
        Ok(Annotations(Some(found.into())))
    }

    #[cfg(feature = "client")]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The headers, name and encoded value, for these arguments (the text of an object).
    ///
    /// A value is spelt by what it is, whatever type the schema declares: the peer finds the
    /// wrong type where it checks arguments, and says so better.
    #[cfg(feature = "client")]
    pub(crate) fn headers(&self, arguments: &str) -> Vec<(String, String)> {
        let annotations = self.0.as_deref().unwrap_or_default();
        let values = pick(annotations, arguments).unwrap_or_default();
        let spelt = annotations.iter().zip(values).filter_map(|(annotation, value)| {
            let text = match value {
                Picked::Text(text) => headers::encode(&text).into_owned(),
                Picked::Whole(number) => number.to_string(),
                Picked::Truth(truth) => truth.to_string(),
                Picked::Nothing | Picked::Unsafe | Picked::Other => return None,
            };
            Some((annotation.header.clone(), text))
        });
        spelt.collect()
    }

    /// Checks that the headers of a request say what its arguments (the text of an object) say.
    #[cfg(feature = "server")]
    pub(crate) fn check(&self, arguments: &str, headers: &http::HeaderMap) -> Result<(), RpcError> {
        let annotations = self.0.as_deref().unwrap_or_default();
        let Some(values) = pick(annotations, arguments) else {
            return Err(RpcError::invalid_params(
                "`params.arguments` can't be read: make it an object that has no member twice",
            ));
        };
        annotations
            .iter()
            .zip(values)
            .try_for_each(|(annotation, value)| annotation.check(&value, headers))
    }
}

#[cfg(feature = "server")]
impl Annotation {
    fn check(&self, value: &Picked<'_>, headers: &http::HeaderMap) -> Result<(), RpcError> {
        let header = match headers::find(headers, &self.header) {
            headers::HeaderLookup::Several => return Err(headers::repeated(&self.header)),
            headers::HeaderLookup::Once(header) => Some(header),
            headers::HeaderLookup::Absent => None,
        };
        match (value, header) {
            // What is wrong with a value of another type is said where arguments are checked.
            (Picked::Nothing | Picked::Other, None) => Ok(()),
            // 2026-07-28 transports/streamable-http §Server Validation: whoever routed the
            // request by this header believed something that the body does not say.
            (Picked::Nothing, Some(_)) => Err(headers::mismatch(format!(
                "{} is there, {} is not",
                self.spelt(),
                self.place()
            ))),
            // No header can carry it, and without one nobody on the way has seen it.
            (Picked::Unsafe, _) => Err(headers::mismatch(format!(
                "{} is beyond ±(2^53 − 1), which is as far as {} goes",
                self.place(),
                self.spelt()
            ))),
            (_, None) => Err(headers::mismatch(format!(
                "{} is there, {} is not",
                self.place(),
                self.spelt()
            ))),
            (value, Some(header)) => self.compare(value, header),
        }
    }

    fn compare(&self, value: &Picked<'_>, header: &http::HeaderValue) -> Result<(), RpcError> {
        let Some(header) = headers::decode(header) else {
            return Err(headers::mismatch(format!("{} is not validly encoded", self.spelt())));
        };
        let agrees = match value {
            Picked::Text(text) => *text == header,
            Picked::Whole(number) => {
                decimal::plain(&header) == Some(decimal::Decimal::Whole(*number))
            }
            Picked::Truth(truth) => header == truth.to_string(),
            Picked::Nothing | Picked::Unsafe | Picked::Other => false,
        };
        if agrees {
            return Ok(());
        }
        Err(headers::mismatch(format!(
            "{} says `{header}`, {} says {value}",
            self.spelt(),
            self.place()
        )))
    }

    fn spelt(&self) -> String {
        format!("the {} header", headers::spelt(&self.header))
    }

    fn place(&self) -> String {
        format!("the argument `{}`", self.path.join("."))
    }
}

/// Whether the keyword can be there at all. An escape may hide a letter of it, and all of its
/// letters have escapes that begin alike.
fn may_annotate(schema: &str) -> bool {
    let has = |word: &str| memchr::memmem::find(schema.as_bytes(), word.as_bytes()).is_some();
    has(KEYWORD) || has(r"\u00")
}
