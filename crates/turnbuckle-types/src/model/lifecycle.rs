//! Owns how a client and a server get to know each other, in both eras.
//! Does not own the decision which revision they speak.
//!
//! Of the errors of 2026-07-28, −32021 and −32022 carry data; −32020 carries none.

use crate::{
    CacheScope, ClientCapabilities, Implementation, Meta, ResultType, ServerCapabilities,
    wire::modern,
};

model! {
    /// The params of `initialize`, until 2025-11-25.
    ///
    /// ```
    /// use turnbuckle_types::{ClientCapabilities, Implementation, Initialize};
    /// let me = Implementation::new("shell", "1.0");
    /// let hello = Initialize::new("2025-11-25", ClientCapabilities::new(), me);
    /// assert_eq!(hello.protocol_version, "2025-11-25");
    /// ```
    pub struct Initialize {
        required {
            /// The revision that the client would like to speak.
            protocol_version("protocolVersion"): String,
            /// What it can do.
            capabilities("capabilities"): ClientCapabilities,
            /// Who it is.
            client_info("clientInfo"): Implementation,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `initialize`, until 2025-11-25.
    pub struct InitializeResult {
        required {
            /// The revision that is spoken.
            protocol_version("protocolVersion"): String,
            /// What the server can do.
            capabilities("capabilities"): ServerCapabilities,
            /// Who it is.
            server_info("serverInfo"): Implementation,
        }
        optional {
            /// How the model should use it.
            instructions("instructions"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `ping`, until 2025-11-25.
    pub struct Ping {
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `server/discover`, since 2026-07-28.
    pub struct Discover {
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `server/discover`, since 2026-07-28.
    ///
    /// ```
    /// use turnbuckle_types::{DiscoverResult, ServerCapabilities};
    /// let found = DiscoverResult::new(["2026-07-28".into()], ServerCapabilities::new());
    /// assert_eq!(found.supported_versions.len(), 1);
    /// ```
    pub struct DiscoverResult {
        required {
            /// The revisions that the server speaks.
            supported_versions("supportedVersions"): Vec<String>,
            /// What it can do.
            capabilities("capabilities"): ServerCapabilities,
        }
        optional {
            /// How the model should use it.
            instructions("instructions"): Option<String>,
            /// For how many milliseconds it may be cached.
            #[require(modern::stale)]
            ttl_ms("ttlMs"): Option<u64>,
            /// Who may share it.
            #[require(modern::private)]
            cache_scope("cacheScope"): Option<CacheScope>,
            /// What kind of result this is.
            #[require(modern::complete)]
            result_type("resultType"): Option<ResultType>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The data of error −32022: what was asked for, and what there is instead.
    ///
    /// ```
    /// use turnbuckle_types::UnsupportedVersion;
    /// let text = r#"{"supported":["2026-07-28"],"requested":"1900-01-01"}"#;
    /// let data: UnsupportedVersion = serde_json::from_str(text).unwrap();
    /// assert_eq!(data.requested, "1900-01-01");
    /// ```
    pub struct UnsupportedVersion {
        required {
            /// The revisions that the server speaks.
            supported("supported"): Vec<String>,
            /// The one it was asked for.
            requested("requested"): String,
        }
        optional {}
    }
}

model! {
    /// The data of error −32021: what the client would have to be able to do.
    pub struct MissingClientCapability {
        required {
            /// The capabilities.
            required_capabilities("requiredCapabilities"): ClientCapabilities,
        }
        optional {}
    }
}
