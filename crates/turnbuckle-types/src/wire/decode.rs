//! Decoders that are compiled in this crate, once. `Deserialize` is generic, so that every crate that
//! decodes a type with it compiles the decoders of that type and of all its parts again.

use serde::Deserialize;
use serde_json::{Deserializer, de::StrRead};

use crate::{
    Complete, CreateMessage, CreateMessageResult, Elicit, ElicitForm, ElicitUrl, GetPrompt,
    Initialize, ListResourcesResult, ListRoots, ListRootsResult, ListTools, Listen, Progress, Raw,
    ReadResource, SetLevel, Subscribe, Unsubscribe,
};

/// A type with a decoder that is compiled in this crate: those that a server reads.
#[doc(hidden)]
pub trait Decode: Sized {
    /// Decodes the next value.
    fn decode_next(decoder: &mut Deserializer<StrRead<'_>>) -> serde_json::Result<Self>;

    /// Decodes a value; the same as [`Raw::decode`].
    fn decode(raw: &Raw) -> serde_json::Result<Self>;
}

macro_rules! decode {
    ($($name:ident),+ $(,)?) => {
        $(
            impl Decode for $name {
                fn decode_next(
                    decoder: &mut Deserializer<StrRead<'_>>,
                ) -> serde_json::Result<Self> {
                    Self::deserialize(decoder)
                }

                fn decode(raw: &Raw) -> serde_json::Result<Self> {
                    // Nothing can follow the value: it is all that there is.
                    Self::decode_next(&mut Deserializer::from_str(raw.as_str()))
                }
            }
        )+
    };
}

decode!(
    Complete,
    CreateMessage,
    CreateMessageResult,
    Elicit,
    ElicitForm,
    ElicitUrl,
    GetPrompt,
    Initialize,
    ListResourcesResult,
    ListRoots,
    ListRootsResult,
    ListTools,
    Listen,
    Progress,
    ReadResource,
    SetLevel,
    Subscribe,
    Unsubscribe,
);
