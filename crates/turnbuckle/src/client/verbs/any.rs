//! Owns the verbs for what no other verb is for: any request, any notification, methods of one's own.
//! Does not own what they mean.

use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_types::{Meta, Method, Raw, jsonrpc};

use super::{
    super::{
        Call, Client,
        call::{Params, undecodable},
    },
    encoding, object,
};
use crate::{dispatch::Note, error::Result};

/// A method that the protocol does not know, with the types that it takes and gives.
///
/// ```no_run
/// use serde::{Deserialize, Serialize};
/// use turnbuckle::CustomMethod;
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
pub trait CustomMethod {
    /// Its name on the wire.
    const NAME: &'static str;
    /// Which member of the params, a string, names what a request is about. Over Streamable HTTP it is
    /// repeated in the header `Mcp-Name`, as a tool's name is, for whoever routes requests without
    /// reading them. Nothing is repeated unless this says so.
    const NAMED_BY: Option<&'static str> = None;
    /// What it takes: anything that encodes to an object, or `()` for nothing.
    type Params: Serialize;
    /// What it gives.
    type Result: DeserializeOwned;
}

impl Client {
    /// Calls a method of one's own, by its types. Dropping the future cancels it.
    pub fn method<M: CustomMethod>(&self, params: &M::Params) -> Call<M::Result> {
        let (params, meta) = parts(params);
        let call = Call::new(&self.0, M::NAME, Params::Text(params), |_, raw| {
            raw.decode::<M::Result>().map_err(|error| undecodable(M::NAME, &error))
        });
        #[cfg(feature = "http")]
        let call = call.named_by(M::NAMED_BY);
        with_meta(call, meta)
    }

    /// Sends any request and returns its result as it came. `params` is anything that
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

/// The text of params, and the `_meta` that stood in them.
fn parts(params: &impl Serialize) -> (Result<String>, Meta) {
    let mut meta = Meta::new();
    let params = object(params).and_then(|text| split_meta(text, &mut meta));
    (params, meta)
}

fn with_meta<T>(call: Call<T>, meta: Meta) -> Call<T> {
    meta.iter().fold(call, |call, (key, value)| call.meta(key.to_owned(), value.clone()))
}

/// The tool that a request written by hand calls: what is known of it counts there too.
fn called_tool(method: &str, params: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let calls = Method::from_name(method) == Some(Method::CallTool);
    calls.then(|| serde_json::from_str::<Named>(params).ok()).flatten().map(|named| named.name)
}

/// Moves a `_meta` that the caller wrote into raw params to where the stamp merges it.
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
