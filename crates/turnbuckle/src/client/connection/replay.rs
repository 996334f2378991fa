//! Owns whether a call that failed may be made again: a pure function. Does not own waiting for a
//! connection, nor the call.

use turnbuckle_types::Method;

use crate::error::Error;

/// When a call is made again after its connection was lost.
///
/// It is one call all the while, in the time that it was given.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// use turnbuckle::client::Retry;
/// let found = client
///     .call_tool("search", serde_json::json!({"text": "turnbuckle"}))
///     .retry(Retry::Idempotent)
///     .await?;
/// # let _ = found; Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// Never.
    Never,
    /// If it certainly was not begun: it was never sent.
    #[default]
    IfNotSent,
    /// Also, and once, if it may have run, where that does no harm: what only reads, and tools that
    /// their listing marks as read-only or idempotent. A gateway's 502, 503 or 504 counts as lost.
    Idempotent,
}

/// Whether running a call twice does no more than running it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twice {
    Harmless,
    Unknown,
}

impl Twice {
    /// Of a request that calls no tool.
    pub(crate) fn of(method: Option<Method>) -> Twice {
        match method {
            Some(
                Method::ListTools
                | Method::ListPrompts
                | Method::ListResources
                | Method::ListResourceTemplates
                | Method::ReadResource
                | Method::GetPrompt
                | Method::Complete
                | Method::Discover
                | Method::Ping,
            ) => Twice::Harmless,
            _ => Twice::Unknown,
        }
    }
}

/// Whether a call that failed so may be made again on a new connection.
pub(crate) fn may_repeat(retry: Retry, twice: Twice, error: &Error) -> bool {
    if !is_lost(error) {
        return false;
    }
    match retry {
        Retry::Never => false,
        _ if !error.maybe_executed() => true,
        Retry::IfNotSent => false,
        Retry::Idempotent => twice == Twice::Harmless,
    }
}

/// Whether the call failed because its connection did, and not because anyone wanted it to.
fn is_lost(error: &Error) -> bool {
    let gateway = error.as_rpc().is_none() && matches!(error.status(), Some(502..=504));
    #[cfg(feature = "http")]
    if error.is_withdrawn() {
        return false;
    }
    error.is_closed() || gateway
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Closed, Executed};

    #[test]
    fn only_what_was_not_begun_or_does_no_harm_is_made_again() {
        let closed = |executed| Closed::new("gone").error(executed);
        let (no, maybe) = (closed(Executed::No), closed(Executed::Maybe));
        let repeats = |retry, error| {
            let of = |twice| may_repeat(retry, twice, error);
            [Twice::Harmless, Twice::Unknown].map(of)
        };
        assert_eq!(repeats(Retry::Never, &no), [false, false]);
        assert_eq!(repeats(Retry::IfNotSent, &no), [true, true]);
        assert_eq!(repeats(Retry::IfNotSent, &maybe), [false, false]);
        assert_eq!(repeats(Retry::Idempotent, &no), [true, true]);
        assert_eq!(repeats(Retry::Idempotent, &maybe), [true, false]);
        let timeout = Error::timeout("x", "timed out");
        assert_eq!(repeats(Retry::Idempotent, &timeout), [false, false]);
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_call_that_was_taken_back_is_not_made_again() {
        let withdrawn = Closed::new("cancelled").error(Executed::Withdrawn);
        assert!(withdrawn.is_closed() && withdrawn.maybe_executed());
        assert!(!may_repeat(Retry::Idempotent, Twice::Harmless, &withdrawn));
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_gateway_that_finds_nobody_behind_it_is_a_connection_that_is_lost() {
        let harmless = |error: &Error| may_repeat(Retry::Idempotent, Twice::Harmless, error);
        for (status, repeated) in
            [(500, false), (502, true), (503, true), (504, true), (404, false)]
        {
            let error = Error::http(status, "no".to_owned());
            assert_eq!(harmless(&error), repeated, "{status}");
            let unknown = may_repeat(Retry::IfNotSent, Twice::Harmless, &error);
            assert!(!unknown, "{status}");
        }
    }
}
