//! The handshake of the legacy era.

use turnbuckle_types::{Initialize, Revision};

/// The handshake with which a legacy client opened a connection or a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientHello {
    /// The revision that was chosen.
    pub(crate) revision: Revision,
    /// The params of `initialize`.
    pub(crate) client: Initialize,
}
