//! Owns a client's side of authorization. Does not own the requests that need it.

mod attempts;
mod auth;
mod authenticate;
mod code;
mod drive;
pub mod flow;
mod grant;
mod guarded;
mod layer;
mod login;
mod metadata;
mod random;
mod registration;
mod session;
mod settings;
mod store;
mod text;
mod token;

pub use auth::Auth;
pub use drive::Identity;
pub use flow::{IdentityKind, IdentityRequest, LoginRequest};
pub use grant::{Endpoints, Grant, RegisteredBy, Registration, TokenAuth, Tokens};
pub use guarded::Guarded;
pub use layer::{AuthLayer, AuthService, BoxError};
pub use login::{HandledLogin, Login, LoopbackLogin, Waiting, open_in_browser};
pub use random::{Random, SystemRandom};
pub use settings::{
    ApplicationType, DpopUse, IdentityProvider, Offline, Pinned, Registered, ResourceParameter,
    Settings, Way,
};
#[cfg(feature = "keyring")]
pub use store::KeyringStore;
pub use store::{
    FileStore, GrantStore, Lease, MemoryStore, StoreFuture, StoreKey, Stored, Swap, Version,
};
