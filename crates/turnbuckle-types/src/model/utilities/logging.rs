//! Log messages that a server sends to its client.

use crate::{Meta, Raw};

keywords! {
    /// How severe a log message is, the least severe first.
    ///
    /// ```
    /// use turnbuckle_types::LogLevel;
    /// assert!(LogLevel::Error > LogLevel::Info);
    /// ```
    pub enum LogLevel {
        /// For whoever writes the code.
        Debug = "debug",
        /// For whoever wonders.
        Info = "info",
        /// Normal, and worth a look.
        Notice = "notice",
        /// Not yet an error.
        Warning = "warning",
        /// Something failed.
        Error = "error",
        /// A part is down.
        Critical = "critical",
        /// Act at once.
        Alert = "alert",
        /// Nothing works.
        Emergency = "emergency",
    }
}

model! {
    /// The params of `logging/setLevel`, until 2025-11-25.
    pub struct SetLevel {
        required {
            /// The least severe messages that are wanted.
            level("level"): LogLevel,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `notifications/message`.
    ///
    /// ```
    /// use serde_json::json;
    /// use turnbuckle_types::{LogLevel, LogMessage};
    /// let message = LogMessage::new(LogLevel::Warning, json!("disk almost full"));
    /// assert_eq!(message.data.as_str(), "\"disk almost full\"");
    /// ```
    pub struct LogMessage {
        required {
            /// How severe it is.
            level("level"): LogLevel,
            /// Any JSON: a string, or an object with details.
            data("data"): Raw,
        }
        optional {
            /// Which part of the server says it.
            logger("logger"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}
