//! Owns what a handler can take of the request and of the server around it.
//! Does not own how those came to be.

use std::any::{TypeId, type_name};

use super::{Description, FromCall, Invocation, absent};
use crate::{
    principal::Principal,
    server::handler::{context::Ctx, reply::Failure},
};

impl FromCall for Ctx {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        Ok(call.ctx.clone())
    }
}

/// State that the server was given with [`Server::state`](crate::Server::state).
///
/// A handler that needs state the server was not given is an error when the server starts,
/// not when the handler is called.
#[derive(Clone, Copy, Debug)]
pub struct State<S>(pub S);

impl<S: Clone + Send + Sync + 'static> FromCall for State<S> {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        call.states.get::<S>().map(State).ok_or_else(|| absent::<S>("state"))
    }

    fn describe(description: &mut Description) {
        description.needs.push((TypeId::of::<S>(), type_name::<S>()));
    }
}

/// A value that came with the request: an extension of the HTTP request, as tower and axum
/// services add them, or of the connection ([`Serving::extension`](crate::server::Serving::extension)).
///
/// `Option<Extension<T>>` where it may be missing.
#[derive(Clone, Copy, Debug)]
pub struct Extension<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromCall for Extension<T> {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        call.ctx.extension().map(Extension).ok_or_else(|| absent::<T>("extension"))
    }
}

impl<T: Clone + Send + Sync + 'static> FromCall for Option<Extension<T>> {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        Ok(call.ctx.extension().map(Extension))
    }
}

impl<C: Clone + Send + Sync + 'static> FromCall for Principal<C> {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        call.ctx.principal().ok_or_else(|| absent::<Principal<C>>("principal"))
    }
}

impl<C: Clone + Send + Sync + 'static> FromCall for Option<Principal<C>> {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        Ok(call.ctx.principal())
    }
}

/// A header of the HTTP request, read by its type. `Option<Header<T>>` where it may be missing.
///
/// ```
/// use turnbuckle::{
///     Server,
///     server::{Header, HttpHeader},
///     tool,
/// };
/// struct AcceptLanguage(String);
/// impl HttpHeader for AcceptLanguage {
///     const NAME: &'static str = "accept-language";
///     fn from_value(value: &str) -> Result<AcceptLanguage, String> {
///         Ok(AcceptLanguage(value.to_owned()))
///     }
/// }
/// async fn greet(language: Option<Header<AcceptLanguage>>) -> &'static str {
///     match language {
///         Some(Header(AcceptLanguage(tags))) if tags.starts_with("de") => "Guten Tag",
///         _ => "Hello",
///     }
/// }
/// let server = Server::new("demo", "1.0").tool(tool("greet", greet));
/// # let _ = server;
/// ```
#[cfg(feature = "http")]
#[derive(Clone, Copy, Debug)]
pub struct Header<T>(pub T);

/// What can be read from a header.
#[cfg(feature = "http")]
pub trait HttpHeader: Sized + Send + 'static {
    /// The header's name.
    const NAME: &'static str;
    /// Reads its value, or says what is wrong with it.
    fn from_value(value: &str) -> Result<Self, String>;
}

#[cfg(feature = "http")]
impl<T: HttpHeader> FromCall for Header<T> {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        let header = Option::<Header<T>>::from_call(call).await?;
        header.ok_or_else(|| {
            turnbuckle_types::RpcError::invalid_params(format!(
                "the header `{}` is missing",
                T::NAME
            ))
            .into()
        })
    }
}

#[cfg(feature = "http")]
impl<T: HttpHeader> FromCall for Option<Header<T>> {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        let Some(value) = call.ctx.header(T::NAME) else { return Ok(None) };
        T::from_value(value).map(|header| Some(Header(header))).map_err(|why| {
            turnbuckle_types::RpcError::invalid_params(format!("the header `{}`: {why}", T::NAME))
                .into()
        })
    }
}
