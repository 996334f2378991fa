//! Owns what a span was told of itself, as tests read it. Does not own which spans are looked at.

use std::{collections::BTreeMap, fmt};

use tracing::field::{Field, Visit};

/// Each field and its value.
#[derive(Clone, Default)]
pub(crate) struct Fields(pub(crate) BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}
