//! The client's side of authorization.

mod auth;
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

use session::{attempts, bound, flights};

use crate::token::{authenticate, request as token, text};

pub use auth::Auth;
pub use drive::IdentitySource;
pub use flow::{IdentityKind, IdentityRequest, LoginRequest};
pub use grant::{Endpoints, Grant};
pub use guarded::Guarded;
pub use layer::{AuthLayer, AuthService, BoxError, Unattended};
pub use login::{HandledLogin, Login, LoopbackLogin, Waiting, open_in_browser};
pub use random::{Random, SystemRandom};
pub use session::LoggedOut;
pub use settings::{
    ApplicationType, DpopUse, IdentityProvider, Offline, Pinned, Registered, ResourceParameter,
    Settings, Way,
};
#[cfg(feature = "keyring")]
pub use store::KeyringStore;
pub use store::{
    FileStore, GrantStore, Lease, MemoryStore, StoreFuture, StoreKey, Stored, Swap, Version,
};
