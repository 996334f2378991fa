//! The targets. Inputs with several parts have a zero byte between them.

mod arguments;
mod authorization;
mod config;
mod cursors;
mod frames;
mod http_requests;
mod schemas;
mod sessions;
mod sse;
mod state;
mod templates;
mod tokens;

/// Every target by its name, which is also the name of its corpus.
pub const ALL: &[(&str, fn(&[u8]))] = &[
    ("arguments", arguments::run),
    ("authorization", authorization::run),
    ("config", config::run),
    ("cursors", cursors::run),
    ("frames", frames::run),
    ("http_requests", http_requests::run),
    ("schemas", schemas::run),
    ("sessions", sessions::run),
    ("sse", sse::run),
    ("state", state::run),
    ("templates", templates::run),
    ("tokens", tokens::run),
];

/// Returns the two parts of an input.
fn parts(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let middle = data.iter().position(|byte| *byte == 0)?;
    Some((&data[..middle], &data[middle + 1..]))
}

/// Returns the two parts of an input that consists of text.
fn texts(data: &[u8]) -> Option<(&str, &str)> {
    let (first, second) = parts(data)?;
    Some((std::str::from_utf8(first).ok()?, std::str::from_utf8(second).ok()?))
}
