//! Custom methods, and requests and notifications of any method.

use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_types::{Meta, Method, Raw, jsonrpc};

use super::{
    super::{
        Call, Client,
        call::{Params, undecodable},
    },
    encoding, object,
};
use crate::{error::Result, rpc::Note};

/// A method that is not part of the protocol, with its types.
///
/// ```no_run
/// use serde::{Deserialize, Serialize};
/// use turnbuckle::client::CustomMethod;
///
/// #[derive(Serialize)]
/// struct Window { days: u32 }
/// #[derive(Deserialize)]
/// struct Usage { calls: u64 }
///
/// struct ReadUsage;
/// impl CustomMethod for ReadUsage {
///     const NAME: &'static str = "example.com/usage";
///     type Params = Window;
///     type Result = Usage;
/// }
///
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// let usage = client.method::<ReadUsage>(&Window { days: 7 }).await?;
/// println!("{} calls", usage.calls);
/// # Ok(()) }
/// ```
#[doc(alias = "CustomRequest")]
pub trait CustomMethod {
    /// Its name on the wire.
    const NAME: &'static str;
    /// The member of the params, a string, that Streamable HTTP repeats in the header `Mcp-Name`, so
    /// that a proxy can route requests. None by default.
    const NAMED_BY: Option<&'static str> = None;
    /// The params: anything that encodes to an object, or `()` for none.
    type Params: Serialize;
    /// The result.
    type Result: DeserializeOwned;
}

impl Client {
    /// Calls a custom method. Dropping the future cancels it.
    pub fn method<M: CustomMethod>(&self, params: &M::Params) -> Call<M::Result> {
        let (params, meta) = parts(params);
        let call = Call::new(&self.0, M::NAME, Params::Text(params), |_, raw| {
            raw.decode::<M::Result>().map_err(|error| undecodable(M::NAME, &error))
        });
        #[cfg(feature = "http")]
        let call = call.named_by(M::NAMED_BY);
        with_meta(call, meta)
    }

    /// Sends any request and returns its result as received. `params` is anything that
    /// encodes to an object; `()` for none. Dropping the future cancels it.
    pub fn request(&self, method: impl Into<String>, params: impl Serialize) -> Call<Raw> {
        let method = method.into();
        let (params, meta) = parts(&params);
        let tool = params.as_ref().ok().and_then(|params| called_tool(&method, params));
        let mut call = Call::new(&self.0, method, Params::Text(params), |_, raw| Ok(raw.clone()));
        if let Some(tool) = tool {
            call = call.about_tool(&tool);
        }
        with_meta(call, meta)
    }

    /// Sends any notification. Waits only while the server does not read; after the
    /// connection has closed it is dropped. Dropping the future before that sends nothing.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let text = object(&params)?;
        let params = match text.as_str() {
            "" => jsonrpc::Params::default(),
            _ => jsonrpc::Params::of(Raw::from_json(text).map_err(encoding)?)?,
        };
        let note = Note { method: method.into(), params };
        self.0.link().transport.notify(note).await;
        Ok(())
    }
}

/// Returns the text of params, and their `_meta`.
fn parts(params: &impl Serialize) -> (Result<String>, Meta) {
    let mut meta = Meta::new();
    let params = object(params).and_then(|text| split_meta(text, &mut meta));
    (params, meta)
}

fn with_meta<T>(call: Call<T>, meta: Meta) -> Call<T> {
    meta.iter().fold(call, |call, (key, value)| call.meta(key.to_owned(), value.clone()))
}

/// Returns the tool that a request calls, so that its listing is taken into account.
fn called_tool(method: &str, params: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct NamedParams {
        name: String,
    }
    let calls = Method::from_name(method) == Some(Method::CallTool);
    calls
        .then(|| serde_json::from_str::<NamedParams>(params).ok())
        .flatten()
        .map(|named| named.name)
}

/// Moves the `_meta` of raw params to where the client merges it with its own.
fn split_meta(text: String, meta: &mut Meta) -> Result<String> {
    if !text.contains("\"_meta\"") {
        return Ok(text);
    }
    let mut members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&text).map_err(encoding)?;
    if let Some(found) = members.remove("_meta") {
        *meta = serde_json::from_value(found).map_err(encoding)?;
    }
    serde_json::to_string(&members).map_err(encoding)
}
