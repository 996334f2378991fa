//! Owns resource addresses: templates of RFC 6570 read, matched, filled in and compared, the values
//! they yield as typed arguments, and paths that stay where they belong. Does not own what is
//! registered under an address, nor how a request for one is answered.

mod characters;
pub(crate) mod directory;
mod expand;
mod matching;
mod overlap;
mod plan;
mod safe;
mod syntax;
mod table;
mod template;
mod text;
mod variables;

pub use safe::{PathError, PathSegment, SafePath, safe_join};
pub use template::{TemplateError, UriTemplate};
pub use variables::{TextValue, Variables};

pub(crate) use table::Table;
pub(crate) use text::{as_object, from_text};
