//! Owns what follows from the eras of the two sides of a bridge: one value, and every verdict on it.
//! Does not own what a room does then. Pure.

use turnbuckle_types::{Era, LogLevel, Method, Revision};

/// The revisions that are spoken on the two sides of a bridge. Nothing else in a bridge looks at an
/// era: whoever depends on it asks this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sides {
    /// With the client.
    pub(crate) near: Revision,
    /// With the server.
    pub(crate) far: Revision,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// The bridge says what the server said about itself.
    Described,
    /// The bridge keeps a log level, and tells it with every request.
    Noted,
    /// The bridge listens in the client's stead, to one resource more or less.
    Watched,
    Unwatched,
    /// A stream is made of subscriptions and of what the server tells unasked.
    Streamed,
    /// The server gets it.
    Forwarded,
    /// The server gets it, and may ask something meanwhile that its client can only be asked by a
    /// result: the request may also be one that goes on with an earlier one.
    Parkable,
}

/// How a question of the server reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// As a request, as it came.
    Live,
    /// In a result, while the call waits at the server.
    Parked,
    /// It comes in a result, is put to the client as a request, and the call is made again.
    Put,
    /// It is a part of results, which are not looked at.
    Carried,
}

/// How a client hears of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// By what the server says, as it comes.
    Passed,
    /// By a stream of the bridge's own.
    Relayed,
}

/// Whose a connection to the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One client's: what the server is told, it remembers for the connection.
    Own,
    /// Everybody's.
    Shared,
}

impl Sides {
    pub(super) fn eras(self) -> (Era, Era) {
        (self.near.era(), self.far.era())
    }

    /// What becomes of a request that the client's era has.
    pub(crate) fn course(self, method: Option<Method>) -> Course {
        match (method, self.eras()) {
            (Some(Method::Discover), (Era::Modern, _)) => Course::Described,
            (Some(Method::SetLevel), (_, Era::Modern)) => Course::Noted,
            (Some(Method::Subscribe), (_, Era::Modern)) => Course::Watched,
            (Some(Method::Unsubscribe), (_, Era::Modern)) => Course::Unwatched,
            (Some(Method::Listen), (Era::Modern, Era::Legacy)) => Course::Streamed,
            (_, (Era::Modern, Era::Legacy)) => Course::Parkable,
            _ => Course::Forwarded,
        }
    }

    pub(crate) fn asking(self) -> Asking {
        match self.eras() {
            (Era::Legacy, Era::Legacy) => Asking::Live,
            (Era::Modern, Era::Legacy) => Asking::Parked,
            (Era::Legacy, Era::Modern) => Asking::Put,
            (Era::Modern, Era::Modern) => Asking::Carried,
        }
    }

    pub(crate) fn changes(self) -> Changes {
        match self.eras() {
            (Era::Legacy, Era::Modern) => Changes::Relayed,
            _ => Changes::Passed,
        }
    }

    pub(crate) fn sharing(self) -> Sharing {
        match self.eras() {
            (Era::Legacy, Era::Legacy) => Sharing::Own,
            _ => Sharing::Shared,
        }
    }

    /// Whether a client that wants messages of at least this severity is told one.
    pub(crate) fn hears(self, least: Option<LogLevel>, level: Option<LogLevel>) -> bool {
        match (self.near.era(), least, level) {
            // The server was told by the client itself.
            (Era::Legacy, _, _) => true,
            (Era::Modern, Some(least), Some(level)) => level >= least,
            (Era::Modern, Some(_), None) => true,
            (Era::Modern, None, _) => false,
        }
    }
}

/// Whether only the other era than that of the client has it: to the client there is no such
/// method, whatever the server is.
pub(crate) fn is_foreign(method: Method, near: Revision) -> bool {
    let mut own = Revision::ALL.into_iter().filter(|revision| revision.era() == near.era());
    method.row().client.is_some_and(|span| !own.any(|revision| span.contains(revision)))
}
