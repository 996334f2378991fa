//! Owns hearing all that is traced on this thread, and looking for secrets in it and in errors.
//! Does not own what is secret.

use std::{
    fmt::{self, Write as _},
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};
use turnbuckle::auth::Secret;

use crate::heard::heard_by;

/// Hears everything until it is dropped.
pub(crate) struct Ears {
    text: Arc<Mutex<String>>,
    _heard: DefaultGuard,
}

impl Ears {
    pub(crate) fn new() -> Ears {
        let text = Arc::<Mutex<String>>::default();
        Ears { _heard: heard_by(Notes(text.clone())), text }
    }

    /// Nothing of what is secret was traced, nor is any of it in the texts that are given.
    pub(crate) fn found_nothing(&self, secrets: &[Secret], texts: &[String]) {
        let heard = self.text.lock().unwrap();
        // One that hears nothing finds nothing either.
        assert!(heard.contains("tools/call") || heard.contains("tools/list"), "{heard}");
        for secret in secrets.iter().map(Secret::expose) {
            for text in texts.iter().chain([&*heard]) {
                assert!(!text.contains(secret), "{secret} is in {text}");
            }
        }
    }
}

/// All that can be read of an error.
pub(crate) fn told(error: &turnbuckle::Error) -> Vec<String> {
    let mut texts = vec![format!("{error}"), format!("{error:?}"), format!("{error:#?}")];
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        texts.extend([format!("{error}"), format!("{error:?}")]);
        source = error.source();
    }
    texts.extend(error.challenge().map(|challenge| format!("{challenge:?}")));
    texts
}

/// Writes down every field of every span and event.
struct Notes(Arc<Mutex<String>>);

impl Notes {
    fn note(&self, name: &str, record: impl FnOnce(&mut Fields<'_>)) {
        let mut text = self.0.lock().unwrap();
        text.push_str(name);
        record(&mut Fields(&mut text));
        text.push('\n');
    }
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        write!(self.0, " {}={value}", field.name()).unwrap();
    }
}

impl Subscriber for Notes {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.note(attributes.metadata().name(), |fields| attributes.record(fields));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, record: &Record<'_>) {
        self.note("recorded", |fields| record.record(fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.note(event.metadata().target(), |fields| event.record(fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
