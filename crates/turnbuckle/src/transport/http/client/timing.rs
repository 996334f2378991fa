//! Every duration and count of the HTTP client, in both eras, with its reason.

use std::time::Duration;

// Requests.

/// How long a server may take to accept a message that has no answer: a notification, an answer
/// to its own request, the end of a session.
pub(crate) const ACCEPT: Duration = Duration::from_secs(30);
/// How much of a body that brings nothing more is read, and for how long, so that its connection
/// can be used again. A body that takes longer is closed.
pub(crate) const END_OF_BODY: (usize, Duration) = (64 << 10, Duration::from_secs(1));
/// How long an unused connection is kept. Servers and proxies commonly close after 60 to 120 s.
pub(crate) const POOL_IDLE: Duration = Duration::from_secs(90);
/// How much of a message is handed over at a time. HTTP/1.1 still writes everything that it was
/// handed when the call is dropped: a message that is handed over whole arrives whole, and runs.
pub(crate) const PIECE: usize = 16 << 10;
/// How many redirects one request follows.
pub(crate) const REDIRECTS: usize = 5;
/// How much of a refusal is read, to decode or quote it.
pub(crate) const REFUSAL_BYTES: usize = 64 << 10;
/// How many characters of a refusal are quoted in an error.
pub(crate) const QUOTED_CHARS: usize = 200;
/// How many events may wait for a caller that does not poll a call that keeps running.
pub(crate) const WAITING_EVENTS: usize = 64;

// Cancelling a legacy call. The server has a third duration: how long it remembers a cancel that
// arrived before its request.

/// How far apart two messages may arrive that were sent at the same time on two connections. A
/// cancel is posted no earlier than this after its request, unless the response has begun.
pub(crate) const SKEW: Duration = Duration::from_millis(20);
/// How long a cancel may take from the drop of the call until the server has accepted it. Half of
/// it is for the request to be sent and its response to begin.
pub(crate) const CANCEL: Duration = Duration::from_secs(10);
/// How many cancels are posted at once. Each has a connection, and 64 keep up with 1,000 cancels
/// in less than 100 ms.
pub(crate) const CANCELS_AT_ONCE: usize = 64;
/// How many calls may be in flight, or dropped and not yet cancelled. One more waits.
pub(crate) const CALLS: usize = 4096;

// Sessions and streams of the legacy era.

/// How long closing the client may take: half of it for cancels, then all of it for the end of
/// the session.
pub(crate) const CLOSE: Duration = Duration::from_secs(2);
/// How long a server may take to answer `initialize` when a session is opened again.
pub(crate) const OPEN_SESSION: Duration = Duration::from_secs(60);
/// How long connecting waits for the GET stream. Servers may never open it.
pub(crate) const OPEN_STREAM: Duration = Duration::from_secs(3);
/// A connection that lasted this long was a success, even if it brought no event.
pub(crate) const STREAM_LASTED: Duration = Duration::from_secs(10);
/// The pause before a reconnect if the server asks for none.
pub(crate) const RECONNECT: Duration = Duration::from_secs(1);
/// A server that asks for at least this pause and ends the connection itself wants to be polled:
/// that spends nothing of the retry budget.
pub(crate) const POLLING: Duration = Duration::from_millis(100);
/// How many answers to the server's requests are posted at once. Each has a connection; further ones
/// wait.
pub(crate) const ANSWERS_AT_ONCE: usize = 64;
/// How many error responses to the server's requests may be on their way at once. A server that
/// sends requests without waiting learns nothing from one more.
pub(crate) const REFUSALS_AT_ONCE: usize = 64;

// HTTP with server-sent events, revision 2024-11-05.

/// How long a server may take to send the `endpoint` event.
#[cfg(feature = "sse-2024")]
pub(crate) const ENDPOINT: Duration = Duration::from_secs(10);
/// How many messages may be on their way at once.
#[cfg(feature = "sse-2024")]
pub(crate) const POSTS_AT_ONCE: usize = 64;
/// The capacity of the pipe between the dispatcher and the two HTTP directions.
#[cfg(feature = "sse-2024")]
pub(crate) const PIPE: usize = 64 << 10;
