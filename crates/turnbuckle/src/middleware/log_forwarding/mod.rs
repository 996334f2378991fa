//! Forwards the `tracing` events of a request to its client as log messages.

mod queue;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};
use turnbuckle_types::{LogLevel, LogMessage};

pub(crate) use queue::{EnteredQueue, LogQueue, is_forwarding, relay};

/// A `tracing` layer that sends the events of a request to its client as `notifications/message`,
/// if the client wants messages of that level.
///
/// An event belongs to a request if it happens in its handler, or in a span that was opened there,
/// on any task or thread. Its message and fields are the data, its target is the logger. Events
/// never wait for the client: if 64 messages wait to be sent, further ones are dropped, and the
/// client is told how many.
///
/// Everything that passes the filters of this layer is sent to the client: add a filter if handlers
/// log anything that a client must not read. This crate's own events are never sent.
///
/// ```
/// use tracing_subscriber::{Layer as _, filter::LevelFilter, layer::SubscriberExt as _};
/// use turnbuckle::middleware::ForwardLogs;
/// let subscriber = tracing_subscriber::registry()
///     .with(ForwardLogs::new().with_filter(LevelFilter::INFO));
/// # let _ = subscriber;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ForwardLogs {
    dropped: Arc<AtomicU64>,
}

impl ForwardLogs {
    /// Creates the layer. From now on the events of requests are collected.
    pub fn new() -> ForwardLogs {
        queue::enable_forwarding();
        ForwardLogs::default()
    }

    /// Returns how many messages were dropped because clients did not read fast enough.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The request that a span was opened in.
struct OpenedIn(Arc<LogQueue>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ForwardLogs {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let (Some(queue), Some(span)) = (LogQueue::current(), context.span(id)) {
            span.extensions_mut().replace(OpenedIn(queue));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let target = metadata.target();
        // Sending would cause further events without end.
        if target == "turnbuckle" || target.starts_with("turnbuckle::") {
            return;
        }
        // The request that runs here comes first: a span may have been opened in another request,
        // whose client must not see this event.
        let queue = LogQueue::current().or_else(|| opened_in(event, &context));
        let Some(queue) = queue else { return };
        let level = level(*metadata.level());
        if !queue.wants(level) {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut message = LogMessage::new(level, Value::Object(fields.0));
        message.logger = Some(target.to_owned());
        if !queue.push(message) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn opened_in<S: Subscriber + for<'a> LookupSpan<'a>>(
    event: &Event<'_>,
    context: &Context<'_, S>,
) -> Option<Arc<LogQueue>> {
    let mut spans = context.event_scope(event)?;
    spans.find_map(|span| span.extensions().get::<OpenedIn>().map(|opened| opened.0.clone()))
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warning,
        Level::INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

/// The fields of an event as JSON.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add(field, value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests;
