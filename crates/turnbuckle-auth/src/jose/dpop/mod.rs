//! Proofs that whoever shows a token has its key (RFC 9449): made by clients, checked by servers.

#[cfg(feature = "server")]
mod check;
#[cfg(feature = "server")]
mod nonces;
mod proof;
#[cfg(feature = "server")]
mod replay;

#[cfg(feature = "server")]
pub(crate) use check::{ExpectedProof, Refused, check};
#[cfg(feature = "server")]
pub(crate) use nonces::Nonces;
pub(crate) use proof::proof;
#[cfg(feature = "server")]
pub(crate) use replay::Replays;

use super::{encode, sha256};

/// `ath`: which token a proof is for (RFC 9449 §4.2).
fn token_digest(access_token: &str) -> String {
    encode(sha256(access_token))
}
