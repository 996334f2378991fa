//! Owns: the URI of a resource as far as it concerns its function: whether it is one, and which
//! variables it has. Does not own: how a URI is matched.

use syn::{Error, LitStr, Result};

/// A variable of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) presence: Presence,
}

/// Whether a URI that the template matches has the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Always,
    /// It has an operator that leaves nothing where there is no value: `{?page}`.
    Perhaps,
}

/// Reports text that is no URI, before the server would.
pub(crate) fn check_text(uri: &LitStr) -> Result<()> {
    let text = uri.value();
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let plain = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !plain || !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) {
        let message = format!(
            "`{text}` is not a URI, which begins with a scheme: write `demo://{}`",
            text.trim_start_matches('/')
        );
        return Err(Error::new_spanned(uri, message));
    }
    variables(uri).map(drop)
}

/// The variables of a template (RFC 6570 §2), in their order. There are none in a plain URI.
pub(crate) fn variables(uri: &LitStr) -> Result<Vec<Variable>> {
    let text = uri.value();
    let wrong = |message: String| Error::new_spanned(uri, message);
    let mut variables = Vec::new();
    let mut pieces = text.split('{');
    let first = pieces.next().unwrap_or_default();
    let stray = || wrong(format!("`{text}` has a `}}` without its `{{`: write `{{name}}`"));
    if first.contains('}') {
        return Err(stray());
    }
    for piece in pieces {
        let Some((expression, rest)) = piece.split_once('}') else {
            return Err(wrong(format!("`{text}` has a `{{` without its `}}`: write `{{name}}`")));
        };
        if rest.contains('}') {
            return Err(stray());
        }
        let names = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']);
        let presence = match expression.starts_with(['#', '.', '/', ';', '?', '&']) {
            true => Presence::Perhaps,
            false => Presence::Always,
        };
        for variable in names.unwrap_or(expression).split(',') {
            let name = variable.split([':', '*']).next().unwrap_or_default();
            if name.is_empty() {
                let message = format!("`{{{expression}}}` names no variable: write `{{name}}`");
                return Err(wrong(message));
            }
            variables.push(Variable { name: name.to_owned(), presence });
        }
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    fn of(text: &str) -> LitStr {
        LitStr::new(text, Span::call_site())
    }

    fn names(text: &str) -> Vec<(String, Presence)> {
        let variables = variables(&of(text)).unwrap();
        variables.into_iter().map(|variable| (variable.name, variable.presence)).collect()
    }

    #[test]
    fn every_operator_is_read() {
        use Presence::{Always, Perhaps};
        let variable = |name: &str, presence| (name.to_owned(), presence);
        assert_eq!(names("demo://readme"), []);
        assert_eq!(
            names("demo://{user}/items{/path*}{.kind:3}"),
            [variable("user", Always), variable("path", Perhaps), variable("kind", Perhaps)]
        );
        assert_eq!(
            names("demo://{+rest}{?page,size}{&more}{#part}"),
            [
                variable("rest", Always),
                variable("page", Perhaps),
                variable("size", Perhaps),
                variable("more", Perhaps),
                variable("part", Perhaps),
            ]
        );
    }

    #[test]
    fn what_is_no_uri_is_told_what_is() {
        for (text, expected) in [
            ("readme", "`readme` is not a URI, which begins with a scheme: write `demo://readme`"),
            (
                "/docs/{id}",
                "`/docs/{id}` is not a URI, which begins with a scheme: write `demo://docs/{id}`",
            ),
            ("demo://{id", "`demo://{id` has a `{` without its `}`: write `{name}`"),
            ("demo://id}", "`demo://id}` has a `}` without its `{`: write `{name}`"),
            ("demo://{a}}", "`demo://{a}}` has a `}` without its `{`: write `{name}`"),
            ("demo://{}", "`{}` names no variable: write `{name}`"),
            ("demo://{?a,}", "`{?a,}` names no variable: write `{name}`"),
        ] {
            assert_eq!(check_text(&of(text)).unwrap_err().to_string(), expected);
        }
        assert!(check_text(&of("file:///a/{+path}")).is_ok());
    }
}
