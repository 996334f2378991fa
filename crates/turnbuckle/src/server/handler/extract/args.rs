//! Owns the arguments that a caller gives, as handlers take them. Does not own their decoding.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use turnbuckle_types::Raw;

use super::{Arguments, Description, FromCall, Invocation, absent};
use crate::server::{
    handler::reply::Failure,
    schema::{decode_arguments, input_schema_of},
    uri,
};

/// The caller's arguments, decoded and checked before the handler runs: those of a tool, those of
/// a prompt, or the variables of a resource's URI. Ranges, lengths and patterns that the type's schema
/// has (`#[schemars(range(min = 1))]`) are checked for all of them.
///
/// ```
/// use turnbuckle::{Args, Server, tool};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Mul { a: i64, b: i64 }
/// async fn mul(Args(mul): Args<Mul>) -> i64 { mul.a * mul.b }
/// let server = Server::new("calc", "1.0").tool(tool("mul", mul));
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[doc(alias = "Parameters")]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromCall for Args<T> {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        let decoded = match &call.arguments {
            Arguments::Json(text) => decode_arguments(text.as_str(), call.checks.as_deref()),
            Arguments::Text(values) => uri::from_text(values).and_then(|arguments| {
                call.checks.as_ref().map_or(Ok(()), |checks| checks.run_on_texts(values))?;
                Ok(arguments)
            }),
        };
        decoded.map(Args).map_err(Failure::arguments)
    }

    fn describe(description: &mut Description) {
        description.input = Some(input_schema_of::<T>());
    }
}

/// The caller's arguments as the JSON object that came, for a tool with a hand-written schema.
/// Text that came by name is an object of strings.
#[derive(Clone, Debug)]
pub struct RawArgs(pub Raw);

impl FromCall for RawArgs {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        Ok(RawArgs(match &call.arguments {
            Arguments::Json(text) => text.clone(),
            Arguments::Text(values) => uri::as_object(values),
        }))
    }
}

/// What has been typed so far of the argument that a completer is to complete.
///
/// ```
/// use turnbuckle::{Args, Server, prompt, server::Typed};
/// async fn language(Typed(typed): Typed) -> Vec<&'static str> {
///     ["rust", "ruby", "python"].into_iter().filter(|name| name.starts_with(&typed)).collect()
/// }
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review { language: String }
/// async fn review(Args(review): Args<Review>) -> String {
///     format!("Review this {} code.", review.language)
/// }
/// let server =
///     Server::new("demo", "1.0").prompt(prompt("review", review).complete("language", language));
/// server.check()?;
/// # Ok::<(), turnbuckle::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed(pub String);

impl FromCall for Typed {
    async fn from_call(call: &Invocation) -> Result<Self, Failure> {
        call.typed.clone().map(Typed).ok_or_else(|| absent::<Typed>("typed text"))
    }
}
