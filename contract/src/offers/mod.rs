//! Owns a server that offers one of everything. Does not own what is right: the tests say that.

mod callers;
mod prompts;
mod resources;
mod tools;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnbuckle::{Server, types::Icon};

pub use callers::Tenant;

use crate::Fixture;

/// The bytes of everything here that has bytes: they are no text.
pub const BYTES: &[u8] = &[0x00, 0xff, 0x10, 0x80];
/// How many values the longest completer has: more than may be sent.
pub const MANY: usize = 250;

/// A server with tools, prompts, resources and completers of every kind.
///
/// ```
/// use turnbuckle_contract::{Fixture, offers};
/// offers(&Fixture::default()).check().unwrap();
/// ```
pub fn offers(fixture: &Fixture) -> Server {
    Server::new("offers", "1.0")
        .state(fixture.clone())
        .group(tools::group())
        .group(callers::group())
        .group(resources::group())
        .group(prompts::group())
}

/// A language: a choice that nobody had to list.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    Rust,
    Ruby,
    Python,
}

#[derive(Deserialize, JsonSchema)]
struct Key {
    key: String,
}

fn icon() -> Icon {
    let mut icon = Icon::new("https://example.com/icon.png");
    icon.mime_type = Some("image/png".to_owned());
    icon
}
