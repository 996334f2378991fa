//! The durations and sizes that the HTTP server uses where nothing else is configured.

use std::{num::NonZeroUsize, time::Duration};

// Responses.

/// An event stream is silent for this long before a comment is sent: proxies close idle streams
/// after 30 to 60 s.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The shortest window of silence: a window of zero would never let the task rest.
pub(crate) const SHORTEST_WINDOW: Duration = Duration::from_millis(1);
/// The longest window of silence: the clock can't represent every `Duration`.
pub(crate) const LONGEST_WINDOW: Duration = Duration::from_secs(365 * 24 * 3600);
/// The bytes of unsent messages at which a handler has to wait, so that a slow client can't fill the
/// memory.
pub(crate) const QUEUED_BYTES: usize = 256 * 1024;

// Connections.

/// The time for the head of a request, and for which a connection may be without a request.
pub(crate) const CONNECTION_IDLE: Duration = Duration::from_secs(30);
/// The age at which an HTTP/2 connection accepts no more requests, so that a balancer can move its
/// client.
pub(crate) const CONNECTION_AGE: Duration = Duration::from_secs(60 * 60);
/// The time for which a client may read nothing of a response that waits: longer than the
/// retransmissions of a bad connection.
pub(crate) const WRITE_PAUSE: Duration = Duration::from_secs(60);
/// The time between two looks for the end of a connection that has unread bytes behind its request.
pub(crate) const UNREAD_END: Duration = Duration::from_millis(250);

// Request bodies.

/// The longest pause within a body: longer than the retransmissions of a bad connection.
pub(crate) const BODY_PAUSE: Duration = Duration::from_secs(30);
/// The longest time for a whole body: one that trickles does not pause, but holds memory.
pub(crate) const BODY_WHOLE: Duration = Duration::from_secs(5 * 60);
/// The bytes that are read of a refused body: many clients send all of it before they read the
/// refusal.
pub(crate) const REFUSED_BODY_BYTES: usize = 64 << 10;
/// The time for the same.
pub(crate) const REFUSED_BODY_PAUSE: Duration = Duration::from_secs(1);

// Sessions.

/// The lifetime of a session: long enough for a day's work, short enough for a leaked id.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The wait that clients are told before they resume a stream that a handler closed.
pub(crate) const RETRY: Duration = Duration::from_millis(500);
/// The time for which a GET stream is kept after its connection is lost, so that the client can
/// resume it.
pub(crate) const GET_STREAM_GRACE: Duration = Duration::from_secs(60);
/// The time for which a question waits while no client reads its stream. A client that comes back
/// finds its events as long as [`EVENT_RETENTION`].
pub(crate) const UNREAD_QUESTION: Duration = EVENT_RETENTION;
/// The time after which a call is cancelled that no client attends: longer than a question waits, so
/// that its handler can end without an answer.
pub(crate) const UNATTENDED: Duration = Duration::from_secs(10 * 60);
/// The calls of one session that may be unattended at once. Further ones are cancelled.
pub(crate) const UNATTENDED_OF_SESSION: usize = 256;
/// The longest wait for cancelled handlers before a cancel or a DELETE is acknowledged.
pub(crate) const STOPPING: Duration = Duration::from_secs(1);
/// The time for which a cancel waits for its request: each message has an own connection, and on a
/// busy machine one overtakes another.
pub(crate) const EARLY_CANCEL: Duration = Duration::from_secs(5);
/// The cancels of one session that wait for their request.
pub(crate) const EARLY_CANCELS_OF_SESSION: usize = 64;
/// The cancels of all sessions that wait for their request, and the ended requests that are known so
/// that a late cancel does not wait.
pub(crate) const EARLY_CANCELS: usize = 1024;
/// The requests of one batch that are served.
pub(crate) const BATCH_REQUESTS: usize = 1000;
/// The progress notifications of a client that wait for the handler that asked.
pub(crate) const QUESTION_PROGRESS: usize = 64;
/// A session is kept for its next request for once to twice this time.
pub(crate) const IDLE_SESSION: Duration = Duration::from_secs(5);
/// The sessions that are kept for their next request: about 1 KiB each.
pub(crate) const IDLE_SESSIONS: usize = 1024;
/// The session ids that are kept open, so that they are not decrypted with every request: about
/// 1 KiB each.
pub(crate) const OPEN_SESSION_IDS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

// Stores in memory.

/// The longest time for which an expired entry is kept.
pub(crate) const LONGEST_SWEEP: Duration = Duration::from_secs(60);
/// The shortest time between two looks for expired entries.
pub(crate) const SHORTEST_SWEEP: Duration = Duration::from_secs(1);

/// The records of sessions.
pub(crate) const SESSION_RECORDS: usize = 10_000;
/// The marks of sessions that have ended, about 100 bytes each. Beyond them no session can be opened
/// or ended until one expires.
pub(crate) const SESSION_ENDS: usize = 1 << 18;
/// The bytes of all records.
pub(crate) const SESSION_RECORD_BYTES: usize = 64 << 20;
/// The time for which an unused record is kept: half a working day.
pub(crate) const SESSION_RECORD_IDLE: Duration = Duration::from_secs(4 * 60 * 60);
/// The bytes of the events of all streams.
pub(crate) const EVENT_BYTES: usize = 16 << 20;
/// The bytes of the events of one stream.
pub(crate) const EVENT_BYTES_OF_STREAM: usize = 1 << 20;
/// The streams of which events are kept.
pub(crate) const EVENT_STREAMS: usize = 10_000;
/// The time for which the events of a stream are kept after the last one: long enough for a client
/// that restarts.
pub(crate) const EVENT_RETENTION: Duration = Duration::from_secs(5 * 60);
