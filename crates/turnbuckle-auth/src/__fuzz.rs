//! The internals that the targets in `fuzz/` call directly. Not covered by semantic versioning.

use serde_json::{Map, Value};

use crate::{
    SigningKey,
    jose::{
        KeySet, dpop, encode,
        jwt::{self, TokenRules},
    },
};

/// The issuer that [`verify`] expects.
pub const ISSUER: &str = "https://auth.example.com";
/// The audience that [`verify`] expects, and the URL that a proof has to be for.
pub const RESOURCE: &str = "https://mcp.example.com/mcp";
/// The time at which tokens and proofs are verified.
pub const NOW: u64 = 1_000_000;
/// The clock difference that is accepted, in seconds.
pub const SKEW: u64 = 5;
/// The age of the oldest proof that is accepted, in seconds.
pub const OLDEST: u64 = 60;

/// Signs two texts as the header and the payload of a token, whatever they are.
pub fn sign(key: &SigningKey, header: &[u8], payload: &[u8]) -> String {
    let signed = format!("{}.{}", encode(header), encode(payload));
    let signature = key.sign(signed.as_bytes()).unwrap_or_default();
    format!("{signed}.{}", encode(signature))
}

/// Verifies an access token with the keys of a key set document.
pub fn verify(token: &str, keys: &[u8]) -> Option<Map<String, Value>> {
    let rules = TokenRules {
        issuer: ISSUER,
        audiences: &[RESOURCE.to_owned()],
        types: &["jwt", "at+jwt"],
        now: NOW,
        skew: SKEW,
    };
    jwt::verify(token, &KeySet::read(keys).ok()?, &rules).ok()
}

/// Checks a proof for a `POST` without an access token. Checking it again must fail.
pub fn check_proof(proof: &str) -> [Option<String>; 2] {
    let expected = dpop::ExpectedProof {
        method: "POST",
        url: RESOURCE,
        access_token: None,
        thumbprint: None,
        nonces: None,
        now: NOW,
        oldest: OLDEST,
        skew: SKEW,
    };
    let replays = dpop::Replays::new(8);
    [(); 2].map(|()| dpop::check(proof, &expected, &replays).ok().map(|checked| checked.thumbprint))
}
