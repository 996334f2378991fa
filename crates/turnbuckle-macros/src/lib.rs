//! The attribute macros of the turnbuckle SDK.
