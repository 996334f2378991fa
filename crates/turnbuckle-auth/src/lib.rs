//! Authorization for the Model Context Protocol, both sides of it.
//!
//! A client's side is one pure state machine ([`flow`]) over one value ([`Grant`]): whom it asks,
//! for what, as whom, and what it got. A server's side ([`resource_server`]) says what it is, looks
//! at what a request brings, and answers with a challenge that tells a client what to do.
//!
//! Strings of the protocol (an issuer, a resource, `iss`) are opaque here: they are compared byte
//! for byte, and sent on as they came.

mod challenge;
mod error;
mod fetch;
mod guard;
#[cfg(any(feature = "client", feature = "server"))]
mod jose;
mod scopes;
mod secret;
mod time;
#[cfg(any(feature = "client", feature = "server"))]
mod token;

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
pub mod resource_server;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(all(fuzzing, feature = "client", feature = "server"))]
#[doc(hidden)]
pub mod __fuzz;

pub use challenge::{Challenge, Scheme};
pub use error::{AuthError, AuthErrorKind};
pub use fetch::{Addresses, BoxFuture, Fetch, Rules};
pub use guard::{Origin, may_ask, may_dial};
#[cfg(any(feature = "client", feature = "server"))]
pub use jose::{Algorithm, SigningKey};
pub use scopes::Scopes;
pub use secret::Secret;
pub use time::{Clock, SystemClock};
#[cfg(any(feature = "client", feature = "server"))]
pub use token::registration::{RegisteredBy, Registration, TokenAuth, Tokens};

#[cfg(feature = "keyring")]
pub use client::KeyringStore;
#[cfg(feature = "client")]
pub use client::{
    ApplicationType, Auth, AuthLayer, AuthService, BoxError, DpopUse, Endpoints, FileStore, Grant,
    GrantStore, Guarded, HandledLogin, IdentityKind, IdentityProvider, IdentityRequest,
    IdentitySource, Lease, LoggedOut, Login, LoginRequest, LoopbackLogin, MemoryStore, Offline,
    Pinned, Random, Registered, ResourceParameter, Settings, StoreFuture, StoreKey, Stored, Swap,
    SystemRandom, Unattended, Version, Waiting, Way, flow, open_in_browser,
};
