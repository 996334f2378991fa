//! The list of protocol revisions and the two eras they fall into.

use std::{fmt, str::FromStr};

use crate::code;

/// How a revision conveys version, identity and capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// An `initialize` handshake opens a connection: 2024-11-05 to 2025-11-25.
    Legacy,
    /// Every request carries its own metadata: 2026-07-28.
    Modern,
}

/// A published revision of the protocol.
///
/// ```
/// use turnbuckle_types::{Era, Revision};
/// let revision: Revision = "2025-11-25".parse().unwrap();
/// assert_eq!(revision.era(), Era::Legacy);
/// assert!(revision < Revision::LATEST);
/// assert!("2025-11-26".parse::<Revision>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[doc(alias = "ProtocolVersion")]
#[doc(alias = "protocolVersion")]
pub enum Revision {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches, annotations.
    V2025_03_26,
    /// 2025-06-18: structured output, elicitation, no batches.
    V2025_06_18,
    /// 2025-11-25: icons, sampling with tools, tasks.
    V2025_11_25,
    /// 2026-07-28: stateless.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Revision; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest revision.
    pub const LATEST: Revision = Self::V2026_07_28;
    /// The newest revision that opens with a handshake.
    pub const LATEST_LEGACY: Revision = Self::V2025_11_25;

    /// What a message over HTTP is in that neither says so nor belongs to a session.
    ///
    /// 2025-11-25 basic/transports §Protocol Version Header.
    pub const ASSUMED: Revision = Self::V2025_03_26;

    /// The date that names this revision on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era this revision belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => {
                Era::Legacy
            }
            Self::V2026_07_28 => Era::Modern,
        }
    }

    /// Whether a stream of events may begin with one that has an id and no data, so that it can be
    /// resumed before it has said anything. Clients of older revisions can't read that.
    pub const fn has_priming(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// What the structured output of a tool may be in this revision.
    pub const fn structured_output(self) -> StructuredOutput {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 => StructuredOutput::None,
            Self::V2025_06_18 | Self::V2025_11_25 => StructuredOutput::Objects,
            Self::V2026_07_28 => StructuredOutput::Anything,
        }
    }

    /// How a server asks its client something in this revision.
    pub const fn questions(self) -> Questions {
        match self.era() {
            Era::Legacy => Questions::AsRequests,
            Era::Modern => Questions::InResults,
        }
    }

    /// The code of the error for a resource that is not there.
    pub const fn resource_not_found(self) -> i64 {
        match self.era() {
            Era::Legacy => code::RESOURCE_NOT_FOUND,
            Era::Modern => code::INVALID_PARAMS,
        }
    }

    /// Whether results say for how long they may be kept, and for whom.
    pub const fn has_cache_hints(self) -> bool {
        match self.era() {
            Era::Legacy => false,
            Era::Modern => true,
        }
    }

    /// Returns `true` if a connection opens with `initialize`.
    pub const fn has_handshake(self) -> bool {
        matches!(self.era(), Era::Legacy)
    }

    /// Returns `true` if every request carries the revision, the client and its capabilities in
    /// `_meta`.
    pub const fn has_request_metadata(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Returns `true` if results carry the name of the server in `_meta`.
    pub const fn has_server_info(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Returns `true` if clients repeat annotated tool arguments in HTTP headers.
    pub const fn has_param_headers(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Returns how a client cancels a request over Streamable HTTP.
    pub const fn http_cancel(self) -> HttpCancel {
        match self.era() {
            Era::Legacy => HttpCancel::Notify,
            Era::Modern => HttpCancel::CloseResponse,
        }
    }

    /// Whether JSON-RPC batches exist in this revision.
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the structured output of a tool may be.
///
/// ```
/// use turnbuckle_types::{Revision, StructuredOutput};
/// assert_eq!(Revision::V2025_06_18.structured_output(), StructuredOutput::Objects);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructuredOutput {
    /// There is none.
    None,
    /// An object, and nothing else.
    Objects,
    /// Any JSON.
    Anything,
}

/// How a server asks its client something.
///
/// ```
/// use turnbuckle_types::{Questions, Revision};
/// assert_eq!(Revision::V2026_07_28.questions(), Questions::InResults);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Questions {
    /// By requests of its own, while it works.
    AsRequests,
    /// By a result that asks, after which the client tries again.
    InResults,
}

/// How a client cancels a request over Streamable HTTP.
///
/// ```
/// use turnbuckle_types::{HttpCancel, Revision};
/// assert_eq!(Revision::V2025_11_25.http_cancel(), HttpCancel::Notify);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpCancel {
    /// It posts `notifications/cancelled`.
    Notify,
    /// It closes the response of that request.
    CloseResponse,
}

/// A string that names no published revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRevision(pub String);

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a protocol revision this SDK knows", self.0)
    }
}

impl std::error::Error for UnknownRevision {}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
            .ok_or_else(|| UnknownRevision(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_parses_back_and_they_are_in_order() {
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
        }
        assert!(Revision::ALL.is_sorted());
        assert_eq!(Revision::ALL.last(), Some(&Revision::LATEST));
        assert_eq!(Revision::LATEST_LEGACY.era(), Era::Legacy);
    }
}
