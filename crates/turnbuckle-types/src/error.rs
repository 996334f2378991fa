//! The error object of the wire and the codes the protocol gives a meaning to.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::Raw;

/// Error codes of JSON-RPC and of the protocol.
pub mod code {
    /// The text is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON is not a JSON-RPC message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method in this revision.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method exists, its params are wrong.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// 2025-11-25 and earlier: no such resource.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// 2025-11-25 only: a URL elicitation must be completed first.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// 2026-07-28: HTTP headers and body disagree.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// 2026-07-28: the client lacks a capability that the request needs.
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// 2026-07-28: the request's protocol version is not served here.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// The error of a JSON-RPC response, with whatever the peer sent along.
///
/// ```
/// use turnbuckle_types::RpcError;
/// let error = RpcError::invalid_params("`name` is missing");
/// assert_eq!(error.code, -32602);
/// assert_eq!(error.to_string(), "`name` is missing (code -32602)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[doc(alias = "ErrorData")]
#[doc(alias = "McpError")]
pub struct RpcError {
    /// See [`code`](crate::code).
    pub code: i64,
    /// One sentence.
    pub message: Cow<'static, str>,
    /// Whatever else the sender said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

impl RpcError {
    /// An error with no data.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// Adds data; a value that can't be encoded leaves the error without any.
    #[must_use]
    pub fn with_data<T: Serialize + ?Sized>(mut self, data: &T) -> RpcError {
        self.data = Raw::new(data).ok();
        self
    }

    /// −32700
    pub fn parse(message: impl Into<Cow<'static, str>>) -> RpcError {
        RpcError::new(code::PARSE_ERROR, message)
    }

    /// −32600
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> RpcError {
        RpcError::new(code::INVALID_REQUEST, message)
    }

    /// −32601
    pub fn method_not_found(method: &str) -> RpcError {
        RpcError::new(code::METHOD_NOT_FOUND, format!("method not found: {method}"))
    }

    /// −32602
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> RpcError {
        RpcError::new(code::INVALID_PARAMS, message)
    }

    /// −32603
    pub fn internal(message: impl Into<Cow<'static, str>>) -> RpcError {
        RpcError::new(code::INTERNAL_ERROR, message)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}
