//! Owns pictures and sound made from bytes. Does not own where they are put.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use turnbuckle_types::{AudioContent, CallToolResult, ContentBlock, ImageContent};

use super::{Failure, IntoReply};
use crate::server::handler::context::Ctx;

macro_rules! media {
    (
        $(#[doc = $doc:expr])*
        $name:ident => $content:ident;
        $( $(#[doc = $kdoc:expr])* $kind:ident = $mime:literal; )*
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name($content);

        impl $name {
            /// Of any type: `mime_type` says which.
            pub fn new(mime_type: impl Into<String>, bytes: impl AsRef<[u8]>) -> $name {
                $name($content::new(STANDARD.encode(bytes), mime_type))
            }

            $(
                $(#[doc = $kdoc])*
                pub fn $kind(bytes: impl AsRef<[u8]>) -> $name {
                    $name::new($mime, bytes)
                }
            )*
        }

        impl From<$name> for ContentBlock {
            fn from(media: $name) -> ContentBlock {
                media.0.into()
            }
        }

        impl IntoReply for $name {
            async fn into_reply(self, _: &Ctx) -> Result<CallToolResult, Failure> {
                Ok(CallToolResult::new([self.into()]))
            }
        }
    };
}

media! {
    /// A picture, from its bytes.
    ///
    /// ```
    /// use turnbuckle::{Server, server::Image, tool};
    /// async fn chart() -> Image { Image::png([0x89, b'P', b'N', b'G']) }
    /// let server = Server::new("charts", "1.0").tool(tool("chart", chart));
    /// # let _ = server;
    /// ```
    Image => ImageContent;
    /// A PNG.
    png = "image/png";
    /// A JPEG.
    jpeg = "image/jpeg";
    /// A WebP.
    webp = "image/webp";
    /// An SVG.
    svg = "image/svg+xml";
}

media! {
    /// Sound, from its bytes.
    ///
    /// ```
    /// use turnbuckle::{Server, server::Audio, tool};
    /// async fn beep() -> Audio { Audio::wav(b"RIFF") }
    /// let server = Server::new("sounds", "1.0").tool(tool("beep", beep));
    /// # let _ = server;
    /// ```
    Audio => AudioContent;
    /// A WAV.
    wav = "audio/wav";
    /// An MP3.
    mp3 = "audio/mpeg";
    /// An Ogg.
    ogg = "audio/ogg";
}
