//! Owns a line in the log for each request. Does not own the span that every request has.

use tower_layer::Layer;

use super::{
    apply::Applied,
    audit::{Audit, AuditEntry},
};

/// Logs every request when it has ended: one `tracing` event with method, name, outcome and how
/// long it took, inside the span of the request.
///
/// Every request has a span without this layer. This one is for logs in which requests are to be
/// read as lines.
///
/// ```
/// use turnbuckle::{Server, layer::Trace};
/// let server = Server::new("demo", "1.0").layer(Trace::info());
/// # let _ = server;
/// ```
#[derive(Clone, Debug)]
pub struct Trace(Audit);

impl Trace {
    /// At level `info`.
    pub fn info() -> Trace {
        Trace(Audit::new(|entry| {
            let Entry { name, principal, outcome, code, milliseconds } = Entry::of(entry);
            tracing::info!(
                target: "turnbuckle::layer",
                method = entry.method, name, principal, outcome, code, milliseconds,
                "a request has ended"
            );
        }))
    }

    /// At level `debug`.
    pub fn debug() -> Trace {
        Trace(Audit::new(|entry| {
            let Entry { name, principal, outcome, code, milliseconds } = Entry::of(entry);
            tracing::debug!(
                target: "turnbuckle::layer",
                method = entry.method, name, principal, outcome, code, milliseconds,
                "a request has ended"
            );
        }))
    }
}

/// The fields that both levels have.
struct Entry<'a> {
    name: Option<&'a str>,
    principal: Option<&'a str>,
    outcome: &'static str,
    code: Option<i64>,
    milliseconds: f64,
}

impl<'a> Entry<'a> {
    fn of(entry: &AuditEntry<'a>) -> Entry<'a> {
        Entry {
            name: entry.name,
            principal: entry.principal,
            outcome: entry.ended.as_str(),
            code: entry.ended.code(),
            milliseconds: entry.latency.as_secs_f64() * 1_000.0,
        }
    }
}

impl<S> Layer<S> for Trace {
    type Service = Applied<Audit, S>;

    fn layer(&self, inner: S) -> Self::Service {
        self.0.layer(inner)
    }
}
