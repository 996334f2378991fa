//! Owns what the handler of a resource can return. Does not own what failures become.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::Serialize;
use turnbuckle_types::{
    BlobResourceContents, Raw, ReadResourceResult, ResourceContents, TextResourceContents,
};

use super::{Failure, IntoReply, Json};
use crate::server::handler::context::Ctx;

macro_rules! replies {
    ($($kind:ty: |$value:ident| $contents:expr;)*) => {$(
        impl IntoReply<ReadResourceResult> for $kind {
            async fn into_reply(self, _: &Ctx) -> Result<ReadResourceResult, Failure> {
                let $value = self;
                Ok(ReadResourceResult::new($contents))
            }
        }
    )*};
}

replies! {
    ResourceContents: |contents| [contents];
    TextResourceContents: |text| [text.into()];
    BlobResourceContents: |blob| [blob.into()];
    Vec<ResourceContents>: |contents| contents;
    String: |said| [text(said)];
    &'static str: |said| [text(said)];
    Vec<u8>: |bytes| [blob(&bytes)];
    &'static [u8]: |bytes| [blob(bytes)];
    Bytes: |bytes| [blob(&bytes)];
}

impl IntoReply<ReadResourceResult> for ReadResourceResult {
    async fn into_reply(self, _: &Ctx) -> Result<ReadResourceResult, Failure> {
        Ok(self)
    }
}

impl<T: Serialize + Send> IntoReply<ReadResourceResult> for Json<T> {
    async fn into_reply(self, _: &Ctx) -> Result<ReadResourceResult, Failure> {
        let raw = Raw::new(&self.0).map_err(Failure::internal)?;
        let mut contents = TextResourceContents::new("", raw.as_str());
        contents.mime_type = Some("application/json".to_owned());
        Ok(ReadResourceResult::new([contents.into()]))
    }
}

/// Whose URI is empty: the one that is read is meant.
fn text(text: impl Into<String>) -> ResourceContents {
    TextResourceContents::new("", text).into()
}

fn blob(bytes: &[u8]) -> ResourceContents {
    BlobResourceContents::new("", STANDARD.encode(bytes)).into()
}
