//! Owns who a request comes from, as whoever stands before the server found out.
//! Does not own how that is found out.

/// Who sends a request: a name that is theirs alone, and what else is known of them.
///
/// Whatever checks credentials before the server adds one to the extensions of the HTTP request
/// ([`attach`](Principal::attach)), and a handler takes it as an argument. Sessions, cursors and
/// request state answer only to the principal that they were made for. On wires that are one
/// client's own, such as the standard streams, everything comes from [`Principal::local`].
///
/// ```
/// # #[cfg(feature = "http")]
/// # fn example() {
/// use turnbuckle::Principal;
/// #[derive(Clone)]
/// struct Claims { admin: bool }
/// let mut request = http::Request::new(());
/// Principal::new("alice").with_claims(Claims { admin: true }).attach(request.extensions_mut());
/// let alice = request.extensions().get::<Principal<Claims>>().unwrap();
/// assert_eq!((alice.name(), alice.claims().admin), ("alice", true));
/// # }
/// # #[cfg(feature = "http")]
/// # example();
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "AuthInfo")]
#[doc(alias = "AccessToken")]
pub struct Principal<C = ()> {
    name: String,
    claims: C,
}

impl Principal {
    /// By a name that is theirs alone and stays the same: the subject of a token, not the token.
    pub fn new(name: impl Into<String>) -> Principal {
        Principal { name: name.into(), claims: () }
    }

    /// Whoever started this process.
    pub fn local() -> Principal {
        Principal::new("local")
    }

    /// Adds what else is known of them.
    pub fn with_claims<C>(self, claims: C) -> Principal<C> {
        Principal { name: self.name, claims }
    }
}

impl<C> Principal<C> {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What else is known of them.
    pub fn claims(&self) -> &C {
        &self.claims
    }
}

#[cfg(feature = "http")]
impl<C: Clone + Send + Sync + 'static> Principal<C> {
    /// Says that a request is theirs.
    pub fn attach(self, extensions: &mut http::Extensions) {
        extensions.insert(Principal::new(self.name.clone()));
        extensions.insert(self);
    }
}
