//! Owns which era and revision a connection speaks. Does not own how the evidence is
//! gathered: `connect` sends the probe and asks here what its outcome means.

use serde::Deserialize;
use turnbuckle_types::{
    ClientCapabilities, DiscoverResult, Era, InitializeResult, Raw, Revision, RpcError, code,
};

/// What the probe brought.
#[derive(Debug)]
pub(crate) enum Observation {
    /// A result.
    Answered(Raw),
    /// An error of the peer, over HTTP with its status.
    Refused(RpcError, Option<u16>),
    /// An HTTP status, with no message.
    Status(u16),
    /// Nothing, in the time given.
    Silence,
    /// Nothing, and the server did not even read the probe.
    Unread,
    /// The server's end of the stream.
    Ended,
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Speak this modern revision.
    Modern(Revision, Box<Option<DiscoverResult>>),
    /// Probe once more, with this revision.
    Probe(Revision),
    /// Open with `initialize`, offering this revision.
    Legacy(Revision),
    /// Start the server anew, then open with `initialize`.
    Respawn(Revision),
    /// There is no revision in common.
    Fail(String),
    /// This says nothing about what the server speaks.
    None,
}

/// How many probes were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeAttempt {
    First,
    Second,
}

/// Judges the outcome of a probe that was sent with `probed`, for a client that speaks
/// `spoken`.
pub(crate) fn judge(
    observation: &Observation,
    probed: Revision,
    spoken: &[Revision],
    attempt: ProbeAttempt,
) -> Verdict {
    let legacy = || newest(spoken.iter().copied(), Era::Legacy);
    let fall_back = || match legacy() {
        Some(revision) => Verdict::Legacy(revision),
        None => Verdict::Fail(
            "the server does not speak a modern revision, and this client speaks no other".into(),
        ),
    };
    match observation {
        Observation::Answered(raw) => match raw.decode::<DiscoverResult>() {
            Ok(found) => choose(&found.supported_versions.clone(), spoken, Some(found)),
            Err(_) => fall_back(),
        },
        Observation::Refused(error, status) => match modern_error(error) {
            Some(ModernError::Unsupported(supported)) => match attempt {
                ProbeAttempt::First => retry(&supported, spoken),
                ProbeAttempt::Second => Verdict::Fail(format!(
                    "the server refused {probed} although it lists {}",
                    supported.join(", ")
                )),
            },
            // The server is modern; what it lacks is not for the probe to decide.
            Some(ModernError::Other) => Verdict::Modern(probed, Box::new(None)),
            None if status.is_some_and(|status| !is_evidence(status)) => Verdict::None,
            None => fall_back(),
        },
        Observation::Status(status) if is_evidence(*status) => fall_back(),
        Observation::Status(_) | Observation::Unread => Verdict::None,
        Observation::Silence => fall_back(),
        Observation::Ended => match legacy() {
            Some(revision) => Verdict::Respawn(revision),
            None => fall_back(),
        },
    }
}

/// Whether an HTTP status tells what a server speaks. Being asked who one is, being refused,
/// being told to come later, or finding the server broken does not.
fn is_evidence(status: u16) -> bool {
    match status {
        401 | 403 | 407 | 408 | 421 | 425 | 429 => false,
        _ => matches!(status, 200..=299 | 400..=499),
    }
}

/// −32022 on the first probe: once more with what is in common, even if that is the same.
fn retry(supported: &[String], spoken: &[Revision]) -> Verdict {
    match choose(supported, spoken, None) {
        Verdict::Modern(revision, _) => Verdict::Probe(revision),
        other => other,
    }
}

fn choose(supported: &[String], spoken: &[Revision], found: Option<DiscoverResult>) -> Verdict {
    let common =
        || supported.iter().filter_map(|name| name.parse().ok()).filter(|r| spoken.contains(r));
    if let Some(revision) = newest(common(), Era::Modern) {
        return Verdict::Modern(revision, Box::new(found));
    }
    if let Some(revision) = newest(common(), Era::Legacy) {
        return Verdict::Legacy(revision);
    }
    let ours: Vec<_> = spoken.iter().map(|revision| revision.as_str()).collect();
    Verdict::Fail(format!(
        "no revision in common: the server speaks {}, this client {}",
        supported.join(", "),
        ours.join(", ")
    ))
}

fn newest(revisions: impl Iterator<Item = Revision>, era: Era) -> Option<Revision> {
    revisions.filter(|revision| revision.era() == era).max()
}

/// An error that only a modern server sends, recognised by its code and its data.
enum ModernError {
    Unsupported(Vec<String>),
    Other,
}

fn modern_error(error: &RpcError) -> Option<ModernError> {
    #[derive(Deserialize)]
    struct Unsupported {
        supported: Vec<String>,
        #[serde(rename = "requested")]
        _requested: String,
    }
    #[derive(Deserialize)]
    struct Missing {
        #[serde(rename = "requiredCapabilities")]
        _required: ClientCapabilities,
    }
    let data = error.data.as_ref();
    match error.code {
        code::UNSUPPORTED_VERSION => {
            let found: Unsupported = data?.decode().ok()?;
            Some(ModernError::Unsupported(found.supported))
        }
        code::MISSING_CLIENT_CAPABILITY => {
            data?.decode::<Missing>().ok().map(|_| ModernError::Other)
        }
        // 2026-07-28: this one carries no data.
        code::HEADER_MISMATCH => Some(ModernError::Other),
        _ => None,
    }
}

/// Checks the revision that a server answered `initialize` with.
pub(crate) fn agreed(
    result: &InitializeResult,
    offered: Revision,
    pinned: Option<Revision>,
    spoken: &[Revision],
) -> Result<Revision, String> {
    let answered = &result.protocol_version;
    let known = answered
        .parse::<Revision>()
        .ok()
        .filter(|revision| revision.era() == Era::Legacy && spoken.contains(revision));
    match known {
        Some(revision) if pinned.is_none_or(|pinned| pinned == revision) => Ok(revision),
        _ => Err(format!(
            "the server answered {offered} with revision `{answered}`, which this client does not speak"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MODERN: Revision = Revision::V2026_07_28;
    const LEGACY: Revision = Revision::V2025_11_25;

    fn verdict(observation: Observation) -> Verdict {
        judge(&observation, MODERN, &Revision::ALL, ProbeAttempt::First)
    }

    fn refused(code: i64, data: Option<serde_json::Value>) -> Observation {
        let error = RpcError::new(code, "m");
        let error = match data {
            Some(data) => error.with_data(&data),
            None => error,
        };
        Observation::Refused(error, None)
    }

    fn discovered(versions: &[&str]) -> Observation {
        Observation::Answered(
            json!({"supportedVersions": versions, "capabilities": {}, "resultType": "complete"})
                .into(),
        )
    }

    #[test]
    fn a_discover_result_means_modern() {
        assert!(matches!(
            verdict(discovered(&["2026-07-28", "2025-11-25"])),
            Verdict::Modern(MODERN, found) if found.is_some()
        ));
        assert_eq!(
            verdict(discovered(&["2025-06-18", "2025-03-26"])),
            Verdict::Legacy(Revision::V2025_06_18)
        );
        assert!(
            matches!(verdict(discovered(&["2099-01-01"])), Verdict::Fail(why) if why.contains("2099-01-01"))
        );
    }

    #[test]
    fn a_recognised_modern_error_means_modern() {
        let supported =
            |versions: &[&str]| json!({"supported": versions, "requested": "2026-07-28"});
        for (observation, expected) in [
            (refused(-32022, Some(supported(&["2026-07-28"]))), Verdict::Probe(MODERN)),
            (
                refused(-32022, Some(supported(&["2025-11-25", "2024-11-05"]))),
                Verdict::Legacy(LEGACY),
            ),
            (
                refused(-32021, Some(json!({"requiredCapabilities": {}}))),
                Verdict::Modern(MODERN, Box::new(None)),
            ),
            (refused(-32020, None), Verdict::Modern(MODERN, Box::new(None))),
        ] {
            assert_eq!(verdict(observation), expected);
        }
        assert!(matches!(
            verdict(refused(-32022, Some(supported(&["2099-01-01"])))),
            Verdict::Fail(_)
        ));
    }

    #[test]
    fn the_second_refusal_of_the_version_is_final() {
        let observation =
            refused(-32022, Some(json!({"supported": ["2026-07-28"], "requested": "2026-07-28"})));
        let verdict = judge(&observation, MODERN, &Revision::ALL, ProbeAttempt::Second);
        assert!(matches!(verdict, Verdict::Fail(why) if why.contains("2026-07-28")));
    }

    #[test]
    fn anything_else_means_legacy() {
        for observation in [
            refused(-32601, None),
            refused(-32602, None),
            refused(-32600, Some(json!("not initialized"))),
            refused(-32000, None),
            refused(-32022, None),
            refused(-32022, Some(json!({"supported": "x"}))),
            refused(-32021, Some(json!([]))),
            refused(0, None),
            Observation::Answered(json!({}).into()),
            Observation::Answered(json!([1]).into()),
            Observation::Silence,
        ] {
            let shown = format!("{observation:?}");
            assert_eq!(verdict(observation), Verdict::Legacy(LEGACY), "{shown}");
        }
        assert_eq!(verdict(Observation::Ended), Verdict::Respawn(LEGACY));
    }

    #[test]
    fn a_client_without_legacy_revisions_fails_plainly() {
        let verdict = judge(&Observation::Silence, MODERN, &[MODERN], ProbeAttempt::First);
        assert!(matches!(verdict, Verdict::Fail(_)));
    }

    #[test]
    fn a_handshake_is_agreed_only_on_what_the_client_speaks() {
        let answer = |version: &str| {
            InitializeResult::new(
                version,
                turnbuckle_types::ServerCapabilities::new(),
                turnbuckle_types::Implementation::new("s", "1"),
            )
        };
        let agree =
            |version: &str, pinned| agreed(&answer(version), LEGACY, pinned, &Revision::ALL);
        assert_eq!(agree("2025-11-25", None), Ok(LEGACY));
        assert_eq!(agree("2024-11-05", None), Ok(Revision::V2024_11_05));
        assert!(agree("2024-11-05", Some(LEGACY)).unwrap_err().contains("2024-11-05"));
        assert!(agree("2026-07-28", None).is_err(), "a modern revision needs no handshake");
        assert!(agree("1.0", None).unwrap_err().contains("1.0"));
    }

    #[test]
    fn an_http_status_is_evidence_only_where_it_is_about_what_was_asked() {
        let legacy = Verdict::Legacy(LEGACY);
        for status in [400, 404, 405, 406, 415, 422] {
            assert_eq!(verdict(Observation::Status(status)), legacy, "{status}");
            let unknown = Observation::Refused(RpcError::new(-32000, "m"), Some(status));
            assert_eq!(verdict(unknown), legacy, "{status}");
        }
        let unknown = Observation::Refused(RpcError::new(-32601, "m"), Some(200));
        assert_eq!(verdict(unknown), legacy);
        for status in [401, 403, 408, 429, 500, 502, 503, 504, 301, 307] {
            assert_eq!(verdict(Observation::Status(status)), Verdict::None, "{status}");
            let unknown = Observation::Refused(RpcError::new(-32000, "m"), Some(status));
            assert_eq!(verdict(unknown), Verdict::None, "{status}");
        }
        // A modern error is a modern error whatever it came with.
        for status in [400, 401, 403, 500] {
            let modern =
                Observation::Refused(RpcError::new(code::HEADER_MISMATCH, "m"), Some(status));
            assert!(matches!(verdict(modern), Verdict::Modern(MODERN, _)), "{status}");
        }
    }
}
