//! The content blocks of tools' results, prompts and messages.

use crate::{
    Annotations, Icon, Meta, ResourceContents,
    wire::legacy::{audio_as_text, link_as_text},
};

tagged! {
    /// A piece of content.
    ///
    /// A kind that a revision lacks is written for it as a text that names what was
    /// there; a kind that the model lacks passes through.
    ///
    /// ```
    /// use turnbuckle_types::{AudioContent, ContentBlock, Raw, Revision};
    /// let block = ContentBlock::from(AudioContent::new("UklGRg==", "audio/wav"));
    /// let old = Raw::at(&block, Revision::V2024_11_05);
    /// assert_eq!(old.as_str(), r#"{"type":"text","text":"[audio: audio/wav]"}"#);
    /// ```
    pub enum ContentBlock by "type" {
        /// Text.
        Text(TextContent) = "text",
        /// An image.
        Image(ImageContent) = "image",
        /// Sound.
        #[since(V2025_03_26, audio_as_text)]
        Audio(AudioContent) = "audio",
        /// A resource that can be read.
        #[since(V2025_06_18, link_as_text)]
        ResourceLink(Box<ResourceLink>) = "resource_link",
        /// A resource that has been read.
        Resource(Box<EmbeddedResource>) = "resource",
    }
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> ContentBlock {
        ContentBlock::Text(TextContent::new(text))
    }

    /// The text, if it is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            ContentBlock::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<TextContent> for ContentBlock {
    fn from(content: TextContent) -> ContentBlock {
        ContentBlock::Text(content)
    }
}

impl From<ImageContent> for ContentBlock {
    fn from(content: ImageContent) -> ContentBlock {
        ContentBlock::Image(content)
    }
}

impl From<AudioContent> for ContentBlock {
    fn from(content: AudioContent) -> ContentBlock {
        ContentBlock::Audio(content)
    }
}

impl From<ResourceLink> for ContentBlock {
    fn from(link: ResourceLink) -> ContentBlock {
        ContentBlock::ResourceLink(Box::new(link))
    }
}

impl From<EmbeddedResource> for ContentBlock {
    fn from(resource: EmbeddedResource) -> ContentBlock {
        ContentBlock::Resource(Box::new(resource))
    }
}

model! {
    /// Text.
    ///
    /// ```
    /// use turnbuckle_types::TextContent;
    /// let text: TextContent = serde_json::from_str(r#"{"type":"text","text":"hi"}"#).unwrap();
    /// assert_eq!(text, TextContent::new("hi"));
    /// ```
    pub struct TextContent {
        tag("type") = "text";
        required {
            /// The text.
            text("text"): String,
        }
        optional {
            /// Who it is for.
            annotations("annotations"): Option<Annotations>,
            /// Metadata.
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// An image.
    ///
    /// ```
    /// use turnbuckle_types::{ContentBlock, ImageContent};
    /// let block = ContentBlock::from(ImageContent::new("iVBORw0KGgo=", "image/png"));
    /// assert!(block.as_text().is_none());
    /// ```
    pub struct ImageContent {
        tag("type") = "image";
        required {
            /// The bytes, in base64.
            data("data"): String,
            /// The type.
            mime_type("mimeType"): String,
        }
        optional {
            /// Who it is for.
            annotations("annotations"): Option<Annotations>,
            /// Metadata.
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// Sound.
    pub struct AudioContent {
        tag("type") = "audio";
        required {
            /// The bytes, in base64.
            data("data"): String,
            /// The type.
            mime_type("mimeType"): String,
        }
        optional {
            /// Who it is for.
            annotations("annotations"): Option<Annotations>,
            /// Metadata.
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// A resource that is part of a message.
    ///
    /// ```
    /// use turnbuckle_types::{EmbeddedResource, TextResourceContents};
    /// let note = EmbeddedResource::new(TextResourceContents::new("note://7", "buy milk"));
    /// assert_eq!(note.resource.uri(), "note://7");
    /// ```
    pub struct EmbeddedResource {
        tag("type") = "resource";
        required {
            /// What it holds.
            resource("resource"): ResourceContents,
        }
        optional {
            /// Who it is for.
            annotations("annotations"): Option<Annotations>,
            /// Metadata.
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// A resource that a message points to. The server need not list it.
    pub struct ResourceLink {
        tag("type") = "resource_link";
        required {
            /// Where it is.
            uri("uri"): String,
            /// The name that programs use.
            name("name"): String,
        }
        optional {
            /// The name that people read.
            title("title"): Option<String>,
            /// What it is.
            description("description"): Option<String>,
            /// The type, if known.
            mime_type("mimeType"): Option<String>,
            /// Who it is for.
            annotations("annotations"): Option<Annotations>,
            /// Bytes before any encoding, if known.
            size("size"): Option<u64>,
            /// Pictures of it.
            #[since(V2025_11_25)]
            icons("icons"): Option<Vec<Icon>>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}
