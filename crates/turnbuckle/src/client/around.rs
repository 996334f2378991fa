//! Owns what stands around every call: layers, a span, numbers, the trace that it belongs to.
//! Does not own how a call is made: `call` does, once it has passed.

use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use tracing::{Instrument as _, Span};
use turnbuckle_types::{Meta, Method, Raw, RequestId, Revision};

use super::{
    Call, ClientBuilder,
    call::{CallResponse, Params},
    layer::{Calls, Request, Response, Said},
    link::Carried,
};
use crate::{
    error::{Error, Executed, Result},
    observe::{self, Ended, Labels, Metrics, Side, Subject, Topic, Watch, Wire},
    trace::TraceContext,
};

type TraceSource = Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>;

/// What a client was told to put around its calls.
#[derive(Clone, Default)]
pub(super) struct Around {
    pub(super) layers: Calls,
    metrics: Option<Arc<dyn Metrics>>,
    trace: Option<TraceSource>,
}

impl Around {
    /// Whether there is anything. All that a call costs where there is not.
    pub(super) fn is_wanted(&self) -> bool {
        !self.layers.is_empty()
            || self.metrics.is_some()
            || self.trace.is_some()
            || observe::wanted(Side::Client)
    }
}

impl ClientBuilder {
    /// Tells someone of every call that starts and ends, so that they can be counted: those in
    /// flight, how long they take, how they end. A call that is dropped has ended as cancelled. The
    /// last that is given is told.
    pub fn metrics(mut self, metrics: impl Metrics) -> ClientBuilder {
        self.around.metrics = Some(Arc::new(metrics));
        self
    }

    /// Says in which trace calls are made: `source` is asked for each, inside its span, and what it
    /// gives is written into the call's `_meta` as `traceparent`, `tracestate` and `baggage`. A call
    /// that speaks of a trace already ([`Call::trace`]) is left as it is.
    ///
    /// ```
    /// use turnbuckle::{Client, TraceContext};
    /// fn of_my_tracing_system() -> Option<TraceContext> {
    ///     let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01".parse().ok()?;
    ///     Some(TraceContext::new(parent))
    /// }
    /// let builder = Client::builder().trace_context(of_my_tracing_system);
    /// # let _ = builder;
    /// ```
    pub fn trace_context(
        mut self,
        source: impl Fn() -> Option<TraceContext> + Send + Sync + 'static,
    ) -> ClientBuilder {
        self.around.trace = Some(Arc::new(source));
        self
    }
}

/// Makes a call with all that stands around it. Dropping the future cancels the call.
pub(super) async fn run<T: Send + 'static>(call: Call<T>) -> Result<T> {
    let _in_flight = call.request.client.supervisor.enter()?;
    let read = call.reader();
    let passed = pass(call, |mut call: Call<T>| async move {
        if let Some(cached) = call.cached {
            return call.send_cached(cached).await;
        }
        let CallResponse { value, raw, .. } = call.send().await?;
        Ok((value, raw))
    });
    match passed.await? {
        Passed::Through(value) => Ok(value),
        // What a layer says instead of the server is read as the server's would be.
        Passed::Answered(result) => read(result),
    }
}

/// How a call came back.
pub(super) enum Passed<V> {
    /// With what the server's answer was made into.
    Through(V),
    /// With an answer of a layer.
    Answered(Raw),
}

/// Takes a call through whatever stands around it, and then to `make`, which gives what it makes of
/// the server's answer, and that answer; more than once, if a layer likes. Dropping the future drops
/// whatever it has come to.
pub(super) async fn pass<T, V, F>(
    mut call: Call<T>,
    make: impl Fn(Call<T>) -> F + Send + Sync + 'static,
) -> Result<Passed<V>>
where
    T: Send + 'static,
    V: Send + 'static,
    F: Future<Output = Result<(V, Raw)>> + Send + 'static,
{
    let around = call.request.client.settings().around.clone();
    let (revision, carried) =
        call.request.client.supervisor.with_link(|link| (link.revision(), link.carried));
    let sending = Sending {
        method: call.request.method.clone(),
        // What can't even be said passes nothing.
        params: call.request.params.text(revision)?,
        meta: std::mem::take(&mut call.request.meta),
        #[cfg(feature = "http")]
        headers: std::mem::take(&mut call.request.about.headers),
        id: call.request.id.clone(),
        revision,
        carried,
    };
    around.pass(sending, move |left| make(call.duplicate().passed(left))).await
}

/// A request before it passes.
pub(super) struct Sending {
    pub(super) method: Cow<'static, str>,
    /// The text of an object, or empty for none.
    pub(super) params: String,
    pub(super) meta: Meta,
    #[cfg(feature = "http")]
    pub(super) headers: Headers,
    pub(super) id: Option<RequestId>,
    pub(super) revision: Revision,
    pub(super) carried: Carried,
}

/// A request as layers have left it.
pub(super) struct Left {
    /// What a layer has put in the place of its params.
    pub(super) params: Option<Raw>,
    pub(super) meta: Meta,
    #[cfg(feature = "http")]
    pub(super) headers: Headers,
}

#[cfg(feature = "http")]
type Headers = Vec<(http::HeaderName, http::HeaderValue)>;

impl Around {
    /// The same for a request that is no call of anybody's.
    pub(super) async fn pass<V, F>(
        &self,
        mut sending: Sending,
        make: impl Fn(Left) -> F + Send + Sync + 'static,
    ) -> Result<Passed<V>>
    where
        V: Send + 'static,
        F: Future<Output = Result<(V, Raw)>> + Send + 'static,
    {
        let known = Method::from_name(&sending.method);
        let name = name(&sending.method, &sending.params);
        let label = known.map_or("_OTHER", Method::as_str);
        let trace = TraceContext::from_meta(&sending.meta);
        let span = if observe::wanted(Side::Client) {
            observe::open(&Subject {
                side: Side::Client,
                method: label,
                about: topic(known, name.as_deref()),
                id: sending.id.as_ref(),
                revision: sending.revision,
                wire: Some(wire(sending.carried)),
                trace: &trace,
            })
        } else {
            Span::none()
        };
        let watch = Watch::start(Side::Client, span, self.metrics.clone(), || Labels {
            method: label,
            name: name
                .clone()
                .filter(|_| matches!(known, Some(Method::CallTool | Method::GetPrompt))),
            revision: sending.revision,
            bytes_in: sending.params.len(),
        });
        let span = watch.span().clone();
        let passing = async move {
            if let Some(source) = self.trace.as_ref().filter(|_| trace.is_empty())
                && let Some(trace) = source()
            {
                trace.write_to(&mut sending.meta);
            }
            let passed = layered(&self.layers, sending, name, make).await;
            watch.tell(|| match &passed {
                Ok((_, raw)) => (Ended::of_call(Ok(raw)), raw.as_str().len()),
                Err(error) => (Ended::of_call(Err(error)), 0),
            });
            passed.map(|(passed, _)| passed)
        };
        passing.instrument(span).await
    }
}

async fn layered<V, F>(
    layers: &Calls,
    sending: Sending,
    name: Option<String>,
    make: impl Fn(Left) -> F + Send + Sync + 'static,
) -> Result<(Passed<V>, Raw)>
where
    V: Send + 'static,
    F: Future<Output = Result<(V, Raw)>> + Send + 'static,
{
    let Sending { method, params: text, meta, revision, .. } = sending;
    if layers.is_empty() {
        let left = Left {
            params: None,
            meta,
            #[cfg(feature = "http")]
            headers: sending.headers,
        };
        return make(left).await.map(|(value, raw)| (Passed::Through(value), raw));
    }
    let params = if text.is_empty() { Raw::empty_object() } else { encoded(text)? };
    let said = Said {
        method,
        params,
        meta,
        #[cfg(feature = "http")]
        headers: sending.headers,
    };
    let request = Request::new(said, name, revision);
    let attempts = Arc::<Attempts<V>>::default();
    let tried = attempts.clone();
    let answered = layers.run_often(request, move |request| {
        let making = make(Left::of(request));
        let attempt = Attempt { of: tried.clone(), ran: Ran::Maybe };
        Box::pin(attempt.made(making))
    });
    let answered = answered.await;
    let result = answered.map_err(|error| attempts.judged(error))?.into_result();
    Ok(match attempts.take() {
        Some((value, raw)) if raw == result => (Passed::Through(value), result),
        _ => (Passed::Answered(result.clone()), result),
    })
}

impl Left {
    fn of(request: Request) -> Left {
        let (said, replaced) = request.into_said();
        Left {
            params: replaced.then_some(said.params),
            meta: said.meta,
            #[cfg(feature = "http")]
            headers: said.headers,
        }
    }
}

/// What the attempts at one call came to. A layer may make none, or many.
struct Attempts<V> {
    /// What the last answer was made into. Layers see text; this waits here, and counts if the text
    /// comes back as it is.
    made: Mutex<Option<(V, Raw)>>,
    /// Whether any of them may have run.
    ran: AtomicBool,
}

impl<V> Default for Attempts<V> {
    fn default() -> Attempts<V> {
        Attempts { made: Mutex::default(), ran: AtomicBool::default() }
    }
}

impl<V> Attempts<V> {
    fn slot(&self) -> MutexGuard<'_, Option<(V, Raw)>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<(V, Raw)> {
        self.slot().take()
    }

    /// What was tried before the error decides, too, whether the call may have run.
    fn judged(&self, error: Error) -> Error {
        if self.ran.load(Relaxed) && !error.maybe_executed() {
            return error.with_executed(Executed::Maybe);
        }
        error
    }
}

/// One attempt. Dropped before its end, it may have run.
struct Attempt<V> {
    of: Arc<Attempts<V>>,
    ran: Ran,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ran {
    No,
    Maybe,
}

impl<V> Attempt<V> {
    async fn made(mut self, making: impl Future<Output = Result<(V, Raw)>>) -> Result<Response> {
        let (value, raw) = match making.await {
            Ok(made) => made,
            Err(error) => {
                self.ran = if error.maybe_executed() { Ran::Maybe } else { Ran::No };
                return Err(error);
            }
        };
        let response = Response::new(raw.clone());
        let before = self.of.slot().replace((value, raw));
        // Outside the lock: it may be a stream, which is ended so.
        drop(before);
        Ok(response)
    }
}

impl<V> Drop for Attempt<V> {
    fn drop(&mut self) {
        if self.ran == Ran::Maybe {
            self.of.ran.store(true, Relaxed);
        }
    }
}

impl<T> Call<T> {
    /// The call as layers have left it.
    fn passed(mut self, left: Left) -> Call<T> {
        self.request.meta = left.meta;
        #[cfg(feature = "http")]
        (self.request.about.headers = left.headers);
        if let Some(params) = left.params {
            let known = Method::from_name(&self.request.method);
            let tool = name(&self.request.method, params.as_str());
            if let Some(tool) = tool.filter(|_| known == Some(Method::CallTool)) {
                self = self.about_tool(&tool);
            }
            let text = params.as_str().to_owned();
            self.request.params = match self.request.params {
                // What is asked next is answered to what was said first.
                Params::Answered { first, .. } => Params::Answered { first, again: text },
                _ => Params::Text(Ok(text)),
            };
        }
        self
    }
}

fn encoded(text: String) -> Result<Raw> {
    // What was encoded here can be read.
    Raw::from_json(text).map_err(|error| Error::refused(error.to_string()))
}

fn wire(carried: Carried) -> Wire {
    match carried {
        #[cfg(feature = "http")]
        Carried::ByHttp => Wire::Http,
        Carried::Otherwise => Wire::Other,
    }
}

fn topic(known: Option<Method>, name: Option<&str>) -> Topic<'_> {
    match (known, name) {
        (Some(Method::CallTool), Some(tool)) => Topic::Tool(tool),
        (Some(Method::GetPrompt), Some(prompt)) => Topic::Prompt(prompt),
        (Some(Method::ReadResource | Method::Subscribe | Method::Unsubscribe), Some(uri)) => {
            Topic::Resource(uri)
        }
        _ => Topic::Nothing,
    }
}

/// What a call is about, by its params.
pub(super) fn name(method: &str, params: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct About {
        name: Option<String>,
        uri: Option<String>,
        #[serde(rename = "ref")]
        reference: Option<Box<About>>,
    }
    let about = |params| serde_json::from_str::<About>(params).ok();
    match Method::from_name(method)? {
        Method::CallTool | Method::GetPrompt => about(params)?.name,
        Method::ReadResource | Method::Subscribe | Method::Unsubscribe => about(params)?.uri,
        Method::Complete => about(params)?.reference.and_then(|of| of.name.or(of.uri)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_error_says_what_any_attempt_may_have_done() {
        let attempts = Arc::<Attempts<u32>>::default();
        let attempt = || Attempt { of: attempts.clone(), ran: Ran::Maybe };
        let judged = || attempts.judged(Error::refused("no")).maybe_executed();
        let refused = attempt().made(async { Err(Error::refused("not sent")) }).await;
        assert!(refused.is_err() && !judged());
        drop(attempt().made(std::future::pending()));
        assert!(judged(), "it was given up on its way");
        let made = attempt().made(async { Ok((7, Raw::empty_object())) }).await;
        assert!(made.is_ok() && attempts.take().is_some_and(|(value, _)| value == 7));
    }

    #[test]
    fn a_call_is_about_what_its_params_name() {
        let of = |method, params| name(method, params);
        assert_eq!(of("tools/call", r#"{"name":"a","uri":"b"}"#).as_deref(), Some("a"));
        assert_eq!(of("resources/read", r#"{"name":"a","uri":"b"}"#).as_deref(), Some("b"));
        let prompt = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x"}}"#;
        assert_eq!(of("completion/complete", prompt).as_deref(), Some("p"));
        assert_eq!(of("tools/list", r#"{"name":"a"}"#), None);
        assert_eq!(of("tools/call", ""), None);
    }
}
