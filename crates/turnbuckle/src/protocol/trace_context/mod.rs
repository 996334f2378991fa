//! Owns trace context as it travels in `_meta`: reading, checking, writing on.
//! Does not own spans: what a trace is joined to is decided where requests are handled.

use std::{borrow::Cow, fmt, str::FromStr};

use turnbuckle_types::Meta;
#[cfg(feature = "server")]
use turnbuckle_types::{Raw, jsonrpc::Params};

/// Longest `tracestate` and `baggage` that are carried on. W3C Baggage asks for 8,192 bytes and
/// 64 entries, W3C Trace Context for 512 bytes and 32 entries.
const LONGEST: usize = 8_192;
const STATES: usize = 32;
const BAGGAGE: usize = 64;

/// The trace that a request belongs to, and what travels along with it.
///
/// What does not follow [W3C Trace Context](https://www.w3.org/TR/trace-context/) or
/// [W3C Baggage](https://www.w3.org/TR/baggage/) is left out, as both ask for; it never fails a
/// request.
///
/// ```
/// use turnbuckle::{TraceContext, types::Meta};
/// let mut meta = Meta::new();
/// meta.set_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
/// meta.set_baggage("tenant=blue, note=two%20words");
/// let trace = TraceContext::from_meta(&meta);
/// assert!(trace.parent().unwrap().is_sampled());
/// assert_eq!(trace.entry("note").as_deref(), Some("two words"));
///
/// let mut onward = Meta::new();
/// trace.write_to(&mut onward);
/// assert_eq!(onward, meta);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    parent: Option<TraceParent>,
    /// Invariant: `None` without a parent.
    state: Option<String>,
    baggage: Option<String>,
}

/// Which trace, and which span of it: the value of `traceparent`.
///
/// ```
/// use turnbuckle::middleware::TraceParent;
/// let text = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
/// let parent: TraceParent = text.parse().unwrap();
/// assert_eq!(parent.to_string(), text);
/// let own = parent.with_span([7; 8]).unwrap();
/// assert_eq!(own.trace_id(), parent.trace_id());
/// assert!("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01".parse::<TraceParent>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// Invariant: not all zero.
    trace_id: [u8; 16],
    /// Invariant: not all zero.
    span_id: [u8; 8],
    flags: u8,
}

/// A `traceparent` that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTraceParent(());

impl TraceContext {
    /// Reads what is sound in `_meta`.
    pub fn from_meta(meta: &Meta) -> TraceContext {
        let parent = meta.traceparent().ok().flatten().and_then(|text| text.parse().ok());
        let state = || text(meta.tracestate(), sound_state);
        TraceContext {
            // Trace Context 4.3: without a sound traceparent, tracestate means nothing.
            state: parent.and_then(|_: TraceParent| state()),
            parent,
            baggage: text(meta.baggage(), sound_baggage),
        }
    }

    /// A trace that begins with this span.
    pub fn new(parent: TraceParent) -> TraceContext {
        TraceContext { parent: Some(parent), ..TraceContext::default() }
    }

    /// Whether there is nothing to carry on.
    pub fn is_empty(&self) -> bool {
        self.parent.is_none() && self.baggage.is_none()
    }

    /// Writes everything there is; what `_meta` says of it already is replaced.
    pub fn write_to(&self, meta: &mut Meta) {
        if let Some(parent) = &self.parent {
            meta.set_traceparent(&parent.to_string());
            meta.remove(Meta::TRACESTATE);
        }
        if let Some(state) = &self.state {
            meta.set_tracestate(state);
        }
        if let Some(baggage) = &self.baggage {
            meta.set_baggage(baggage);
        }
    }

    /// Adds everything there is to the `_meta` of a request's params, unless that speaks of a trace
    /// already.
    #[cfg(feature = "server")]
    pub(crate) fn carried_in(&self, params: Raw) -> Raw {
        let params = if params == Raw::null() { Raw::empty_object() } else { params };
        if self.is_empty() {
            return params;
        }
        let Ok(Params { meta: own, .. }) = Params::of(params.clone()) else { return params };
        let mut meta = match own.as_ref().map(Meta::from_raw) {
            Some(Ok(meta)) => meta,
            None => Meta::new(),
            Some(Err(_)) => return params,
        };
        let keys = [Meta::TRACEPARENT, Meta::TRACESTATE, Meta::BAGGAGE];
        if keys.into_iter().any(|key| meta.value(key).is_some()) {
            return params;
        }
        self.write_to(&mut meta);
        with_meta(&params, own.as_ref(), &meta).unwrap_or(params)
    }

    /// The trace and the span that asked.
    pub fn parent(&self) -> Option<TraceParent> {
        self.parent
    }

    /// What tracing systems keep for themselves: the text of `tracestate`.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The text of `baggage`.
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// One entry of the baggage, with what was percent-encoded decoded.
    pub fn entry(&self, key: &str) -> Option<Cow<'_, str>> {
        let entries = self.baggage.as_deref()?.split(',');
        let found = entries.filter_map(|entry| entry.split(';').next()?.split_once('='));
        let (_, value) = found.into_iter().find(|(name, _)| blank_trimmed(name) == key)?;
        Some(decoded(blank_trimmed(value)))
    }

    /// The same trace, asked from another span of it.
    #[must_use]
    pub fn with_parent(mut self, parent: TraceParent) -> TraceContext {
        if self.parent.is_none_or(|before| before.trace_id != parent.trace_id) {
            self.state = None;
        }
        self.parent = Some(parent);
        self
    }
}

impl TraceParent {
    /// From its parts; `None` if an id is all zero, which stands for "no id".
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], flags: u8) -> Option<TraceParent> {
        (trace_id != [0; 16] && span_id != [0; 8]).then_some(TraceParent {
            trace_id,
            span_id,
            flags,
        })
    }

    /// The trace.
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// The span.
    pub fn span_id(&self) -> [u8; 8] {
        self.span_id
    }

    /// Whether the sender records this trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// The same trace from another span; `None` if that is all zero.
    pub fn with_span(self, span_id: [u8; 8]) -> Option<TraceParent> {
        TraceParent::new(self.trace_id, span_id, self.flags)
    }
}

impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    fn from_str(text: &str) -> Result<TraceParent, InvalidTraceParent> {
        parse(text.as_bytes()).ok_or(InvalidTraceParent(()))
    }
}

/// `00-{32 digits}-{16 digits}-{2 digits}`, digits in lower case. A later version may go on after
/// a dash; what it adds is not ours to understand.
fn parse(text: &[u8]) -> Option<TraceParent> {
    let (known, more) = text.split_at_checked(55)?;
    let [version] = hex::<1>(&known[..2])?;
    let room = match version {
        0 => more.is_empty(),
        0xff => false,
        _ => more.is_empty() || more[0] == b'-',
    };
    let dashes = [2, 35, 52].into_iter().all(|at| known[at] == b'-');
    if !room || !dashes {
        return None;
    }
    let [mut flags] = hex::<1>(&known[53..])?;
    if version > 0 {
        // Of later versions only the first flag is known to mean the same.
        flags &= 1;
    }
    TraceParent::new(hex(&known[3..35])?, hex(&known[36..52])?, flags)
}

fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

impl fmt::Display for InvalidTraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a W3C traceparent, such as `00-{32 hex digits}-{16 hex digits}-01`")
    }
}

impl std::error::Error for InvalidTraceParent {}

/// The text of params with another `_meta` in place of their `own`, which is a slice of them.
#[cfg(feature = "server")]
fn with_meta(params: &Raw, own: Option<&Raw>, meta: &Meta) -> Option<Raw> {
    let (text, meta) = (params.as_str(), serde_json::to_string(meta).ok()?);
    let Some(own) = own.map(Raw::as_str) else {
        let rest = text.strip_prefix('{')?.trim_start();
        let comma = if rest == "}" { "" } else { "," };
        return Raw::from_json(format!(r#"{{"_meta":{meta}{comma}{rest}"#)).ok();
    };
    let start = own.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let (before, after) = (text.get(..start)?, text.get(start..)?.strip_prefix(own)?);
    Raw::from_json(format!("{before}{meta}{after}")).ok()
}

fn text<E>(
    read: Result<Option<Cow<'_, str>>, E>,
    sound: impl FnOnce(&str) -> bool,
) -> Option<String> {
    let text = read.ok().flatten()?;
    (text.len() <= LONGEST && sound(&text)).then(|| text.into_owned())
}

/// Trace Context 3.3.1: `key=value` entries, distinct, divided by commas; empty ones do no harm.
fn sound_state(text: &str) -> bool {
    let mut keys = Vec::new();
    for entry in text.split(',').map(blank_trimmed).filter(|entry| !entry.is_empty()) {
        let Some((key, value)) = entry.split_once('=') else { return false };
        if keys.len() == STATES || keys.contains(&key) || !state_key(key) || !state_value(value) {
            return false;
        }
        keys.push(key);
    }
    !keys.is_empty()
}

fn state_key(key: &str) -> bool {
    let starts = |part: &str, digits: fn(&u8) -> bool| part.as_bytes().first().is_some_and(digits);
    let plain = |part: &str| {
        part.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(&byte)
        })
    };
    match key.split_once('@') {
        None => key.len() <= 256 && starts(key, u8::is_ascii_lowercase) && plain(key),
        Some((tenant, system)) => {
            let either = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            tenant.len() <= 241
                && system.len() <= 14
                && starts(tenant, either)
                && starts(system, u8::is_ascii_lowercase)
                && plain(tenant)
                && plain(system)
        }
    }
}

fn state_value(value: &str) -> bool {
    let octet = |byte: u8| (0x20..=0x7e).contains(&byte) && byte != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(octet) && !value.ends_with(' ')
}

/// Baggage 3.2: `key=value;property` entries divided by commas.
fn sound_baggage(text: &str) -> bool {
    let mut count = 0;
    let sound = text.split(',').all(|entry| {
        count += 1;
        let mut parts = entry.split(';').map(blank_trimmed);
        let pair = parts.next().and_then(|pair| pair.split_once('='));
        let property = |property: &str| match property.split_once('=') {
            Some(pair) => baggage_pair(pair),
            None => token(property),
        };
        pair.is_some_and(baggage_pair) && parts.all(property)
    });
    sound && count <= BAGGAGE
}

fn baggage_pair((key, value): (&str, &str)) -> bool {
    let octet =
        |byte: u8| matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e);
    token(blank_trimmed(key)) && blank_trimmed(value).bytes().all(octet)
}

/// RFC 7230's word for a name.
fn token(word: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !word.is_empty() && word.bytes().all(letter)
}

fn blank_trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Percent-decodes. Baggage 3.3.1: what does not decode to UTF-8 is replaced by U+FFFD.
fn decoded(value: &str) -> Cow<'_, str> {
    if !value.contains('%') {
        return Cow::Borrowed(value);
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        let pair = after.get(..2).filter(|_| *first == b'%');
        let byte = pair.and_then(|pair| hex::<1>(&pair.to_ascii_lowercase()));
        bytes.push(byte.map_or(*first, |[byte]| byte));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
