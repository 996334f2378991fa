//! Owns one line of the log. Does not own who reads it.

use std::fmt;

use turnbuckle_types::RequestId;

use super::{redact, tell::WireLog};

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireDirection {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

/// What travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireKind {
    /// Nothing yet: there is a wire now.
    Opened,
    /// A request, of either side.
    Request,
    /// A notification.
    Notification,
    /// The result of a request.
    Result,
    /// An error in answer to a request, or in answer to nothing.
    Error,
    /// A request was given up, in the way that this wire has for it: a message on some, the end of a
    /// POST on others.
    Cancelled,
    /// A request ended without an answer.
    Failed,
    /// The connection was lost.
    Lost,
    /// The connection was closed on this side.
    Closed,
}

impl WireKind {
    /// One word, for a label.
    pub fn as_str(self) -> &'static str {
        match self {
            WireKind::Opened => "opened",
            WireKind::Request => "request",
            WireKind::Notification => "notification",
            WireKind::Result => "result",
            WireKind::Error => "error",
            WireKind::Cancelled => "cancelled",
            WireKind::Failed => "failed",
            WireKind::Lost => "lost",
            WireKind::Closed => "closed",
        }
    }
}

/// One message that travels, as it may be shown. `Display` makes one line of it.
///
/// ```
/// use turnbuckle::{WireKind, WireLine};
/// fn is_worth_a_look(line: &WireLine) -> bool {
///     matches!(line.kind, WireKind::Error | WireKind::Lost)
/// }
/// # let _ = is_worth_a_look;
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WireLine {
    /// Which way it goes.
    pub direction: WireDirection,
    /// What it is.
    pub kind: WireKind,
    /// The id of the request that it is, or answers. Over some wires a request has none before it
    /// is answered.
    pub id: Option<RequestId>,
    /// The method, also of what answers it.
    pub method: Option<String>,
    /// Params, result, error or reason: secrets masked, long ones cut short.
    pub text: String,
}

impl WireLine {
    pub(super) fn new(direction: WireDirection, kind: WireKind) -> WireLine {
        WireLine { direction, kind, id: None, method: None, text: String::new() }
    }

    pub(super) fn of(mut self, method: &str) -> WireLine {
        self.method = Some(method.to_owned());
        self
    }

    pub(super) fn with_id(mut self, id: Option<&RequestId>) -> WireLine {
        self.id = id.cloned();
        self
    }

    pub(super) fn json(mut self, text: &str, log: &WireLog) -> WireLine {
        self.text = log.cut(redact::json(text));
        self
    }

    pub(super) fn plain(mut self, text: &str, log: &WireLog) -> WireLine {
        // The line stays one.
        self.text = log.cut(redact::text(text).replace(['\n', '\r'], " "));
        self
    }
}

impl fmt::Display for WireLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.direction {
            WireDirection::Sent => "->",
            WireDirection::Received => "<-",
        };
        write!(f, "{arrow} {}", self.kind.as_str())?;
        if let Some(id) = &self.id {
            write!(f, " #{id}")?;
        }
        if let Some(method) = &self.method {
            // A server may name its methods as it likes.
            write!(f, " {}", method.escape_debug())?;
        }
        if !self.text.is_empty() {
            write!(f, " {}", self.text)?;
        }
        Ok(())
    }
}
