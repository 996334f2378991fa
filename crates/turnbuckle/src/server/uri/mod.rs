//! Owns resource addresses: templates of RFC 6570 read, matched, filled in and compared, the values
//! they yield as typed arguments, and paths that stay where they belong. Does not own what is
//! registered under an address, nor how a request for one is answered.

mod characters;
#[cfg_attr(not(test), expect(dead_code, reason = "nothing serves a directory yet"))]
pub(crate) mod directory;
mod expand;
mod matching;
mod overlap;
mod plan;
mod safe;
mod syntax;
#[cfg_attr(not(test), expect(dead_code, reason = "nothing is registered under a template yet"))]
mod table;
mod template;
mod text;
mod variables;

pub use safe::{PathError, PathSegment, SafePath, safe_join};
pub use template::{TemplateError, UriTemplate};
pub use variables::{TextValue, Variables};

#[expect(unused_imports, reason = "nothing is registered under a template yet")]
pub(crate) use table::Table;
pub(crate) use text::{as_object, from_text};
