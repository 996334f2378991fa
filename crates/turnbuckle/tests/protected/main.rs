//! A protected server over sockets: who is let in, who is turned away and how, and what those see who
//! are let in. Tokens come from an authorization server for tests, which is asked over sockets too.

#![cfg(all(feature = "auth", feature = "client", feature = "sse-2024", feature = "server"))]

mod binding;
mod exchange;
mod expiry;
mod identity;
mod metadata;
mod mounted;
mod private_authority;
mod scopes;
mod statuses;
mod support;
mod verifiers;
