//! Owns the numbers past which a peer is refused. Does not own the refusals themselves:
//! each room that reads a limit words its own error.

/// Limits of one connection, and of one server, each with a default that suits most programs.
///
/// ```
/// use turnbuckle::Limits;
/// let limits = Limits::default().line_bytes(64 * 1024).in_flight(32);
/// assert_eq!(limits.in_flight, 32);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message on a stream wire: 16 MiB. A longer line costs that line only;
    /// the sender is told the limit and the connection lives.
    pub line_bytes: usize,
    /// How deep arrays and objects may nest in a message: 100.
    pub json_depth: usize,
    /// How many of the peer's requests may run at once on one connection: 4,096. One more
    /// is refused with an error that names the limit.
    pub in_flight: usize,
    /// How many notifications of one request may wait: 1,024. A handler that is faster
    /// than its peer waits; on the receiving side the oldest progress gives way.
    pub queued_notifications: usize,
    /// How many bytes may wait for a peer that does not read: 64 MiB. What this side asks
    /// waits long before; past it the peer's requests are refused, and a peer that goes on
    /// sending is let go.
    pub unsent_bytes: usize,
    /// How many bytes one answer over HTTP may bring in all, as the client sees it: 256 MiB.
    /// A listen stream has no such end.
    pub stream_bytes: usize,
    /// How many `subscriptions/listen` streams a server may have open at once, over all its
    /// connections: 10,000. One more is refused with an error that names the limit.
    pub listeners: usize,
    /// The longest body of a request over HTTP: 4 MiB. A longer one is refused with status
    /// 413: before any of it is read where its length is declared, else as soon as it is
    /// passed.
    pub body_bytes: usize,
    /// How many requests may run at once on one HTTP endpoint, whatever their connections:
    /// 16,384. One more is refused with status 503.
    pub http_in_flight: usize,
    /// How many sessions of the legacy era may be in use at once on one HTTP endpoint: 10,000.
    /// In use is one in which something runs, or of which a stream is open; one that was merely
    /// opened costs nothing. One more is refused with status 503.
    pub sessions: usize,
    /// How many connections one address may have to an HTTP listener at once: 1,024. One more is
    /// closed at once. Addresses of IPv6 count by their /64 network. Behind a proxy, whose
    /// connections all have its address, set it to `usize::MAX`.
    pub connections_per_peer: usize,
    /// How many bytes of messages a server may keep in memory at once, over all its connections:
    /// 256 MiB. A request counts from its first byte until its handler ends, a response until its
    /// last byte is written. One peer address, one principal and one connection of a stream may each
    /// use half of it. A request beyond it is refused, over HTTP with status 503; requests that run
    /// continue. A client counts the answers that it reads and the notifications that it keeps.
    ///
    /// Messages below 1 KiB do not count, and values that handlers decode or keep do not either.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            line_bytes: 16 << 20,
            json_depth: 100,
            in_flight: 4096,
            queued_notifications: 1024,
            unsent_bytes: 64 << 20,
            stream_bytes: 256 << 20,
            listeners: 10_000,
            body_bytes: 4 << 20,
            http_in_flight: 16_384,
            sessions: 10_000,
            connections_per_peer: 1024,
            memory_bytes: 256 << 20,
        }
    }
}

impl Limits {
    /// Sets [`line_bytes`](Limits::line_bytes).
    #[must_use]
    pub fn line_bytes(mut self, bytes: usize) -> Limits {
        self.line_bytes = bytes;
        self
    }

    /// Sets [`json_depth`](Limits::json_depth).
    #[must_use]
    pub fn json_depth(mut self, levels: usize) -> Limits {
        self.json_depth = levels;
        self
    }

    /// Sets [`in_flight`](Limits::in_flight).
    #[must_use]
    pub fn in_flight(mut self, requests: usize) -> Limits {
        self.in_flight = requests;
        self
    }

    /// Sets [`queued_notifications`](Limits::queued_notifications).
    #[must_use]
    pub fn queued_notifications(mut self, notifications: usize) -> Limits {
        self.queued_notifications = notifications;
        self
    }

    /// Sets [`unsent_bytes`](Limits::unsent_bytes).
    #[must_use]
    pub fn unsent_bytes(mut self, bytes: usize) -> Limits {
        self.unsent_bytes = bytes;
        self
    }

    /// Sets [`stream_bytes`](Limits::stream_bytes).
    #[must_use]
    pub fn stream_bytes(mut self, bytes: usize) -> Limits {
        self.stream_bytes = bytes;
        self
    }

    /// Sets [`listeners`](Limits::listeners).
    #[must_use]
    pub fn listeners(mut self, streams: usize) -> Limits {
        self.listeners = streams;
        self
    }

    /// Sets [`body_bytes`](Limits::body_bytes).
    #[must_use]
    pub fn body_bytes(mut self, bytes: usize) -> Limits {
        self.body_bytes = bytes;
        self
    }

    /// Sets [`http_in_flight`](Limits::http_in_flight).
    #[must_use]
    pub fn http_in_flight(mut self, requests: usize) -> Limits {
        self.http_in_flight = requests;
        self
    }

    /// Sets [`connections_per_peer`](Limits::connections_per_peer).
    #[must_use]
    pub fn connections_per_peer(mut self, connections: usize) -> Limits {
        self.connections_per_peer = connections;
        self
    }

    /// Sets [`memory_bytes`](Limits::memory_bytes).
    #[must_use]
    pub fn memory_bytes(mut self, bytes: usize) -> Limits {
        self.memory_bytes = bytes;
        self
    }

    /// Sets [`sessions`](Limits::sessions).
    #[must_use]
    pub fn sessions(mut self, sessions: usize) -> Limits {
        self.sessions = sessions;
        self
    }
}

/// The longest prefix of `text` of at most `bytes` bytes that ends between two characters.
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) fn prefix(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    // `str::floor_char_boundary` is newer than the oldest supported compiler.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
