//! Owns how a test listens to what is traced while other tests run beside it. Does not own what it
//! listens for.

use std::sync::LazyLock;

use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
    subscriber::{DefaultGuard, Interest},
};

/// Lets `subscriber` hear what this thread does, until the guard is dropped.
///
/// Whether a span or an event is wanted at all is decided once for all threads, where it is first
/// reached. While only one subscriber is alive, the reaching thread's is asked alone, and that may
/// be a test that listens to nobody. So two are kept alive that never settle it, and each thread is
/// asked each time.
pub(crate) fn heard_by(subscriber: impl Into<Dispatch>) -> DefaultGuard {
    static KEPT: LazyLock<[Dispatch; 2]> =
        LazyLock::new(|| [Dispatch::new(Undecided), Dispatch::new(Undecided)]);
    LazyLock::force(&KEPT);
    tracing::dispatcher::set_default(&subscriber.into())
}

/// Hears nothing, and leaves open whether anyone does.
struct Undecided;

impl Subscriber for Undecided {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
