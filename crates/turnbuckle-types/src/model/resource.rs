//! Resources: their description, listing, reading, and the older subscriptions.

use serde::de::{Error, MapAccess};

use crate::{
    Annotations, At, CacheScope, Encode, Extra, Icon, Meta, Named, Raw, ResultType,
    wire::{modern, read},
};

model! {
    /// A resource, as a server describes it.
    ///
    /// ```
    /// use turnbuckle_types::Resource;
    /// let mut readme = Resource::new("file:///README.md", "README.md");
    /// readme.mime_type = Some("text/markdown".into());
    /// ```
    pub struct Resource {
        required {
            /// Where it is.
            uri("uri"): String,
            /// The name that programs use.
            name("name"): String,
        }
        optional {
            /// The name that people read.
            #[since(V2025_06_18)]
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
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// A family of resources.
    ///
    /// ```
    /// use turnbuckle_types::ResourceTemplate;
    /// let notes = ResourceTemplate::new("note://{id}", "note");
    /// assert_eq!(notes.uri_template, "note://{id}");
    /// ```
    pub struct ResourceTemplate {
        required {
            /// An RFC 6570 template.
            uri_template("uriTemplate"): String,
            /// The name that programs use.
            name("name"): String,
        }
        optional {
            /// The name that people read.
            #[since(V2025_06_18)]
            title("title"): Option<String>,
            /// What they are.
            description("description"): Option<String>,
            /// The type, if all have the same.
            mime_type("mimeType"): Option<String>,
            /// Who they are for.
            annotations("annotations"): Option<Annotations>,
            /// Pictures.
            #[since(V2025_11_25)]
            icons("icons"): Option<Vec<Icon>>,
            /// Metadata.
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

/// What a resource holds: text or bytes.
///
/// ```
/// use turnbuckle_types::ResourceContents;
/// let text = r#"{"uri":"note://7","blob":"AAE="}"#;
/// let contents: ResourceContents = serde_json::from_str(text).unwrap();
/// assert!(matches!(contents, ResourceContents::Blob(_)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
}

impl ResourceContents {
    /// Where it is.
    pub fn uri(&self) -> &str {
        match self {
            ResourceContents::Text(contents) => &contents.uri,
            ResourceContents::Blob(contents) => &contents.uri,
        }
    }
}

impl From<TextResourceContents> for ResourceContents {
    fn from(contents: TextResourceContents) -> ResourceContents {
        ResourceContents::Text(contents)
    }
}

impl From<BlobResourceContents> for ResourceContents {
    fn from(contents: BlobResourceContents) -> ResourceContents {
        ResourceContents::Blob(contents)
    }
}

impl Encode for ResourceContents {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        match self {
            ResourceContents::Text(contents) => contents.write(at, out),
            ResourceContents::Blob(contents) => contents.write(at, out),
        }
    }
}

serialize!(ResourceContents);

deserialize!(ResourceContents, read::ObjectVisitor);

/// The two kinds have no tag: they differ in one member, wherever it stands.
impl read::Members for ResourceContents {
    const NAME: &'static str = "ResourceContents";

    fn read<'de, A: MapAccess<'de>>(access: &mut A) -> Result<Self, A::Error> {
        let (mut uri, mut text, mut blob) = (None, None::<Option<String>>, None::<Option<String>>);
        let (mut mime_type, mut meta, mut extra) = (None, None, Extra::new());
        while let Some(name) = access.next_key::<read::Word<'de>>()? {
            match name.as_str() {
                "uri" => read::member(&mut uri, access, "uri")?,
                "text" => read::member(&mut text, access, "text")?,
                "blob" => read::member(&mut blob, access, "blob")?,
                "mimeType" => read::member(&mut mime_type, access, "mimeType")?,
                "_meta" => read::member(&mut meta, access, "_meta")?,
                _ => extra.read(name, access)?,
            }
        }
        let uri = uri.ok_or_else(|| A::Error::missing_field("uri"))?;
        let (mime_type, meta) = (mime_type.flatten(), meta.unwrap_or_default());
        match (text.flatten(), blob.flatten()) {
            (Some(text), None) => {
                Ok(TextResourceContents { uri, text, mime_type, meta, extra }.into())
            }
            (None, Some(blob)) => {
                Ok(BlobResourceContents { uri, blob, mime_type, meta, extra }.into())
            }
            (None, None) => Err(A::Error::custom("missing field `text` or `blob`")),
            (Some(_), Some(_)) => Err(A::Error::custom("`text` and `blob` exclude each other")),
        }
    }
}

model! {
    /// A resource's text.
    pub struct TextResourceContents {
        required {
            /// Where it is.
            uri("uri"): String,
            /// The text.
            text("text"): String,
        }
        optional {
            /// The type, if known.
            mime_type("mimeType"): Option<String>,
            /// Metadata.
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// A resource's bytes.
    pub struct BlobResourceContents {
        required {
            /// Where it is.
            uri("uri"): String,
            /// The bytes, in base64.
            blob("blob"): String,
        }
        optional {
            /// The type, if known.
            mime_type("mimeType"): Option<String>,
            /// Metadata.
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `resources/list`.
    pub struct ListResources {
        optional {
            /// Where the page before ended.
            cursor("cursor"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `resources/list`.
    pub struct ListResourcesResult {
        required {
            /// One page of resources.
            resources("resources"): Vec<Resource>,
        }
        optional {
            /// Where this page ended, if there is more.
            next_cursor("nextCursor"): Option<String>,
            /// For how many milliseconds it may be cached.
            #[since(V2026_07_28)]
            #[require(modern::stale)]
            ttl_ms("ttlMs"): Option<u64>,
            /// Who may share it.
            #[since(V2026_07_28)]
            #[require(modern::private)]
            cache_scope("cacheScope"): Option<CacheScope>,
            /// What kind of result this is.
            #[since(V2026_07_28)]
            #[require(modern::complete)]
            result_type("resultType"): Option<ResultType>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `resources/templates/list`.
    pub struct ListResourceTemplates {
        optional {
            /// Where the page before ended.
            cursor("cursor"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `resources/templates/list`.
    pub struct ListResourceTemplatesResult {
        required {
            /// One page of templates.
            resource_templates("resourceTemplates"): Vec<ResourceTemplate>,
        }
        optional {
            /// Where this page ended, if there is more.
            next_cursor("nextCursor"): Option<String>,
            /// For how many milliseconds it may be cached.
            #[since(V2026_07_28)]
            #[require(modern::stale)]
            ttl_ms("ttlMs"): Option<u64>,
            /// Who may share it.
            #[since(V2026_07_28)]
            #[require(modern::private)]
            cache_scope("cacheScope"): Option<CacheScope>,
            /// What kind of result this is.
            #[since(V2026_07_28)]
            #[require(modern::complete)]
            result_type("resultType"): Option<ResultType>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `resources/read`.
    pub struct ReadResource {
        required {
            /// Which one.
            uri("uri"): String,
        }
        optional {
            /// What an earlier attempt asked for, by its names.
            #[since(V2026_07_28)]
            input_responses("inputResponses"): Option<Named<Raw>>,
            /// What an earlier attempt wants back.
            #[since(V2026_07_28)]
            request_state("requestState"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `resources/read`.
    ///
    /// ```
    /// use turnbuckle_types::{ReadResourceResult, TextResourceContents};
    /// let milk = TextResourceContents::new("note://7", "buy milk");
    /// let result = ReadResourceResult::new([milk.into()]);
    /// assert_eq!(result.contents[0].uri(), "note://7");
    /// ```
    pub struct ReadResourceResult {
        required {
            /// The resource, or the resources that it consists of.
            contents("contents"): Vec<ResourceContents>,
        }
        optional {
            /// For how many milliseconds it may be cached.
            #[since(V2026_07_28)]
            #[require(modern::stale)]
            ttl_ms("ttlMs"): Option<u64>,
            /// Who may share it.
            #[since(V2026_07_28)]
            #[require(modern::private)]
            cache_scope("cacheScope"): Option<CacheScope>,
            /// What kind of result this is.
            #[since(V2026_07_28)]
            #[require(modern::complete)]
            result_type("resultType"): Option<ResultType>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

impl ReadResourceResult {
    /// The text of everything that is text, one after another.
    pub fn to_text(&self) -> String {
        let texts = self.contents.iter().filter_map(|contents| match contents {
            ResourceContents::Text(contents) => Some(contents.text.as_str()),
            ResourceContents::Blob(_) => None,
        });
        texts.collect()
    }
}

model! {
    /// The params of `resources/subscribe`, until 2025-11-25.
    pub struct Subscribe {
        required {
            /// Which resource.
            uri("uri"): String,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `resources/unsubscribe`, until 2025-11-25.
    pub struct Unsubscribe {
        required {
            /// Which resource.
            uri("uri"): String,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `notifications/resources/updated`.
    pub struct ResourceUpdated {
        required {
            /// Which resource, or the one that holds it.
            uri("uri"): String,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}
