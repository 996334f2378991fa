//! URI templates of RFC 6570: parsing, matching, expansion, decoding variables into types, and
//! paths that stay within a directory.

mod characters;
pub(crate) mod directory;
mod expand;
mod matching;
mod router;
mod safe;
mod syntax;
mod template;
mod text;
mod variables;

pub use safe::{PathError, PathSegment, SafePath, safe_join};
pub use template::{TemplateError, UriTemplate};
pub use variables::{TextValue, Variables};

pub(crate) use router::UriRouter;
pub(crate) use text::{as_object, from_text};
