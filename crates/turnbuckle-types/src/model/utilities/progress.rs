//! Owns what is said about a request while it runs: how far it is, and to stop.
//! Does not own what stopping does.

use crate::{Meta, RequestId};

model! {
    /// The params of `notifications/progress`.
    ///
    /// ```
    /// use turnbuckle_types::Progress;
    /// let mut half = Progress::new("job", 50);
    /// half.total = Some(100.0);
    /// let text = serde_json::to_string(&half).unwrap();
    /// assert_eq!(text, r#"{"progressToken":"job","progress":50,"total":100}"#);
    /// ```
    pub struct Progress {
        required {
            /// The token of the request.
            progress_token("progressToken"): RequestId,
            /// How far it is: more than the last time.
            progress("progress"): f64,
        }
        optional {
            /// How far it will be at the end, if known.
            total("total"): Option<f64>,
            /// What people read about it.
            #[since(V2025_03_26)]
            message("message"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `notifications/cancelled`.
    ///
    /// 2025-11-25 allows it without an id, which then cancels nothing: not modelled.
    ///
    /// ```
    /// use turnbuckle_types::Cancelled;
    /// let mut stop = Cancelled::new(7);
    /// stop.reason = Some("timed out".into());
    /// assert_eq!(stop.request_id, 7.into());
    /// ```
    pub struct Cancelled {
        required {
            /// The request to stop.
            request_id("requestId"): RequestId,
        }
        optional {
            /// Why, for logs and people.
            reason("reason"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}
