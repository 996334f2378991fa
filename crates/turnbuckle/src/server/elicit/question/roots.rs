//! Owns the question for the places that a client lets a server work in.
//! Does not own what is done there.

use crate::server::elicit::question::{AnswerMismatch, Question, decoded, sealed};
use turnbuckle_types::{ListRoots, ListRootsResult, Method, Raw, Revision, Root};

/// Asks for the client's roots.
///
/// ```
/// use turnbuckle::{Ctx, Server, ToolError, elicit::roots, tool};
/// async fn places(ctx: Ctx) -> Result<String, ToolError> {
///     let places = ctx.ask("roots", roots()).await?;
///     Ok(places.into_iter().map(|root| root.uri).collect::<Vec<_>>().join("\n"))
/// }
/// let server = Server::new("files", "1.0").tool(tool("places", places));
/// # let _ = server;
/// ```
#[doc(alias = "roots/list")]
#[doc(alias = "list_roots")]
pub fn roots() -> Roots {
    Roots { _private: () }
}

/// The question for a client's roots: see [`roots`].
#[derive(Clone, Debug)]
#[must_use = "a question is asked with `Ctx::ask`"]
#[doc(alias = "ListRootsRequest")]
#[doc(alias = "roots/list")]
pub struct Roots {
    _private: (),
}

impl sealed::QuestionParts for Roots {
    fn method(&self) -> Method {
        Method::ListRoots
    }

    fn params(&self, revision: Revision) -> Result<Raw, String> {
        Ok(Raw::at(&ListRoots::new(), revision))
    }
}

impl Question for Roots {
    type Answer = Vec<Root>;

    fn check(&self, answer: &Raw) -> Result<Vec<Root>, AnswerMismatch> {
        let roots = decoded::<ListRootsResult>(answer)?.roots;
        // 2026-07-28 client/roots §Root: this MUST be a `file://` URI.
        match roots.iter().find(|root| !is_file(&root.uri)) {
            Some(root) => {
                Err(AnswerMismatch::Unfit(format!("`{}` is not a file:// URI", root.uri)))
            }
            None => Ok(roots),
        }
    }
}

fn is_file(uri: &str) -> bool {
    uri.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("file://"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // req: roots:uri:file-scheme
    #[test]
    fn a_root_is_a_file_or_no_root() {
        let count = |answer: serde_json::Value| roots().check(&answer.into()).map(|all| all.len());
        assert_eq!(count(json!({"roots": []})), Ok(0));
        assert_eq!(count(json!({"roots": [{"uri": "file:///a"}, {"uri": "FILE:///b"}]})), Ok(2));
        for bad in [
            json!({"roots": [{"uri": "file:///a"}, {"uri": "https://a.org"}]}),
            json!({"roots": [{"uri": ""}]}),
            json!({"roots": [{"uri": "file:/a"}]}),
            json!({"roots": [{}]}),
            json!({"roots": null}),
            json!({}),
            json!(5),
        ] {
            assert!(matches!(count(bad.clone()), Err(AnswerMismatch::Unfit(_))), "{bad}");
        }
    }
}
