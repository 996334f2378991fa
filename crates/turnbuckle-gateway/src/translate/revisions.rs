//! The decisions that depend on the revisions of the two sides of a gateway. No other module looks at
//! an era.

use turnbuckle::types::{Era, LogLevel, Method, Revision};

/// The revisions that are spoken on the two sides of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Revisions {
    /// With the client.
    pub(crate) downstream: Revision,
    /// With the server.
    pub(crate) upstream: Revision,
}

/// How a gateway handles a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// Answers with the server's description of itself.
    Describe,
    /// Stores a log level, which is then sent with every request.
    StoreLogLevel,
    /// Adds a resource to the gateway's own listen stream.
    Subscribe,
    /// Removes a resource from the gateway's own listen stream.
    Unsubscribe,
    /// Serves a listen stream with subscriptions and the server's notifications.
    ServeListenStream,
    /// Forwards it to the server.
    Forward,
    /// Forwards it to the server, or resumes a pending call: a question of the server reaches the
    /// client in a result.
    ForwardOrResume,
}

/// How a question of the server reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionRoute {
    /// The server's request is forwarded as a request.
    Request,
    /// The server's request becomes a result that requires input, while the call stays pending.
    PendingCall,
    /// The server's result that requires input becomes requests, then the call is retried.
    Retry,
    /// Results that require input are forwarded unread.
    PassThrough,
}

/// How a client learns of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// The server's notifications are forwarded.
    Forwarded,
    /// The gateway has a listen stream of its own.
    Relayed,
}

/// Who uses a connection to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One client, because the server keeps settings for each connection.
    Own,
    /// All clients.
    Shared,
}

impl Revisions {
    /// Returns the eras: downstream, upstream.
    pub(super) fn eras(self) -> (Era, Era) {
        (self.downstream.era(), self.upstream.era())
    }

    /// Returns how to handle a request of a method that exists in the client's era.
    pub(crate) fn handling(self, method: Option<Method>) -> Handling {
        match (method, self.eras()) {
            (Some(Method::Discover), (Era::Modern, _)) => Handling::Describe,
            (Some(Method::SetLevel), (_, Era::Modern)) => Handling::StoreLogLevel,
            (Some(Method::Subscribe), (_, Era::Modern)) => Handling::Subscribe,
            (Some(Method::Unsubscribe), (_, Era::Modern)) => Handling::Unsubscribe,
            (Some(Method::Listen), (Era::Modern, Era::Legacy)) => Handling::ServeListenStream,
            (_, (Era::Modern, Era::Legacy)) => Handling::ForwardOrResume,
            _ => Handling::Forward,
        }
    }

    pub(crate) fn question_route(self) -> QuestionRoute {
        match self.eras() {
            (Era::Legacy, Era::Legacy) => QuestionRoute::Request,
            (Era::Modern, Era::Legacy) => QuestionRoute::PendingCall,
            (Era::Legacy, Era::Modern) => QuestionRoute::Retry,
            (Era::Modern, Era::Modern) => QuestionRoute::PassThrough,
        }
    }

    pub(crate) fn changes(self) -> Changes {
        match self.eras() {
            (Era::Legacy, Era::Modern) => Changes::Relayed,
            _ => Changes::Forwarded,
        }
    }

    pub(crate) fn sharing(self) -> Sharing {
        match self.eras() {
            (Era::Legacy, Era::Legacy) => Sharing::Own,
            _ => Sharing::Shared,
        }
    }

    /// Returns whether a client that wants log messages of at least `least` gets one of `level`.
    pub(crate) fn wants_log(self, least: Option<LogLevel>, level: Option<LogLevel>) -> bool {
        match (self.downstream.era(), least, level) {
            // The client has set its level on the server itself.
            (Era::Legacy, _, _) => true,
            (Era::Modern, Some(least), Some(level)) => level >= least,
            (Era::Modern, Some(_), None) => true,
            (Era::Modern, None, _) => false,
        }
    }
}

/// Returns whether a method exists only in the era that the client does not speak. The client is told
/// that there is no such method, whatever the server speaks.
pub(crate) fn is_foreign(method: Method, downstream: Revision) -> bool {
    let mut own = Revision::ALL.into_iter().filter(|revision| revision.era() == downstream.era());
    method.row().client.is_some_and(|span| !own.any(|revision| span.contains(revision)))
}
