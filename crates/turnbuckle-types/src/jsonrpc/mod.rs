//! JSON-RPC frames, decoded in two phases.
//!
//! Owns: the envelope, strictly, with `params` and `result` left as slices of the
//! receive buffer. Does not own: what a method's params mean, or which ids are live.

mod parse;
#[cfg(test)]
mod tests;
mod write;

use std::{fmt, ops::Deref};

use bytestring::ByteString;

pub use parse::{parse, parse_line};
pub use write::{write_error, write_notification, write_request, write_result, write_result_head};

use crate::{Raw, RequestId, RpcError};

/// What one line or one body holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// One frame.
    Single(Frame),
    /// A batch, which only 2025-03-26 has. Each element is still to be judged on its own.
    Batch(Vec<Result<Frame, Fault>>),
}

/// One JSON-RPC message whose envelope is sound.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Is one.
    Response(Response),
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// As it came.
    pub id: RequestId,
    /// The method's name.
    pub method: Text,
    /// Its params.
    pub params: Params,
}

/// A notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The method's name.
    pub method: Text,
    /// Its params.
    pub params: Params,
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Absent (or null on the wire) where the peer could not read the id it answers.
    pub id: Option<RequestId>,
    /// The result or the error.
    pub outcome: Result<Raw, RpcError>,
}

/// `params` as it came: the whole object, and the members that routing looks at, found in
/// the same pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// The object; `None` where the message has no `params`.
    pub raw: Option<Raw>,
    /// Its `_meta`.
    pub meta: Option<Raw>,
    /// Its `name`.
    pub name: Option<Raw>,
    /// Its `arguments`.
    pub arguments: Option<Raw>,
    /// The request that a notification speaks of: its `requestId` or `progressToken`.
    pub subject: Option<Raw>,
    /// What it brings because it asked for input before.
    pub retry: Option<Box<Retry>>,
}

/// The members of a request that asked for input before. Few requests have them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Retry {
    /// Its `inputResponses`: what it was given.
    pub input_responses: Option<Raw>,
    /// Its `requestState`: what it had the client keep.
    pub request_state: Option<Raw>,
}

impl Params {
    /// The object's text; `{}` where there is none.
    pub fn text(&self) -> &str {
        self.raw.as_ref().map_or("{}", Raw::as_str)
    }
}

/// A name that is a slice of the receive buffer.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(ByteString);

impl Text {
    /// A name that needs no buffer.
    pub const fn from_static(text: &'static str) -> Text {
        Text(ByteString::from_static(text))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(ByteString::from(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(ByteString::from(text))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// Text that is not a sound frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The id, whenever it could be read.
    pub id: Option<RequestId>,
    /// What the sender seems to have meant.
    pub role: FrameRole,
    /// What to answer, if it is to be answered.
    pub error: RpcError,
}

/// Which side of a conversation a broken frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRole {
    /// It asks for something, or can't be told: the receiver answers with the error.
    Request,
    /// It answers something: whoever waits for that id is told, and nothing is sent.
    Response,
}
