//! The small things that many types are made of.

use serde::{Deserialize, Deserializer};

use crate::{
    At, Encode, Meta,
    wire::{modern, read::Word},
};

keywords! {
    /// Who says something, or who something is for.
    ///
    /// ```
    /// use turnbuckle_types::Role;
    /// assert_eq!(serde_json::from_str::<Role>("\"user\"").unwrap(), Role::User);
    /// ```
    pub enum Role {
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}

keywords! {
    /// Who may share a cached result.
    pub enum CacheScope {
        /// Anyone: it depends on no user.
        Public = "public",
        /// Only those with the same authorization.
        Private = "private",
    }
}

keywords! {
    /// The background that an icon is drawn for.
    pub enum IconTheme {
        /// A light one.
        Light = "light",
        /// A dark one.
        Dark = "dark",
    }
}

model! {
    /// A client or a server, as it introduces itself.
    ///
    /// ```
    /// use turnbuckle_types::{Implementation, Raw, Revision};
    /// let mut calc = Implementation::new("calc", "1.0");
    /// calc.title = Some("Calculator".into());
    /// let old = Raw::at(&calc, Revision::V2024_11_05);
    /// assert_eq!(old.as_str(), r#"{"name":"calc","version":"1.0"}"#);
    /// ```
    pub struct Implementation {
        required {
            /// The name that programs use.
            name("name"): String,
            /// The version.
            version("version"): String,
        }
        optional {
            /// The name that people read.
            #[since(V2025_06_18)]
            title("title"): Option<String>,
            /// What it does.
            #[since(V2025_11_25)]
            description("description"): Option<String>,
            /// Where people read more about it.
            #[since(V2025_11_25)]
            website_url("websiteUrl"): Option<String>,
            /// Pictures of it.
            #[since(V2025_11_25)]
            icons("icons"): Option<Vec<Icon>>,
        }
    }
}

model! {
    /// A picture that stands for something.
    pub struct Icon {
        required {
            /// An `https:` or `data:` URI.
            src("src"): String,
        }
        optional {
            /// The type, where the source does not tell it.
            mime_type("mimeType"): Option<String>,
            /// Sizes such as `48x48`, or `any`.
            sizes("sizes"): Option<Vec<String>>,
            /// The background it is drawn for.
            theme("theme"): Option<IconTheme>,
        }
    }
}

model! {
    /// Hints about who a piece of content is for.
    ///
    /// ```
    /// use turnbuckle_types::{Annotations, Role, TextContent};
    /// let mut text = TextContent::new("for the model only");
    /// let mut annotations = Annotations::new();
    /// annotations.audience = Some(vec![Role::Assistant]);
    /// text.annotations = Some(annotations);
    /// ```
    pub struct Annotations {
        optional {
            /// Who it is for.
            audience("audience"): Option<Vec<Role>>,
            /// From 0 (may be left out) to 1 (needed).
            priority("priority"): Option<f64>,
            /// When it last changed, in ISO 8601.
            #[since(V2025_06_18)]
            last_modified("lastModified"): Option<String>,
        }
    }
}

model! {
    /// The params of a notification that says only that something happened:
    /// `notifications/initialized` and the `list_changed` ones.
    pub struct Signal {
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// A result that says only that it was done.
    pub struct EmptyResult {
        optional {
            /// What kind of result this is.
            #[since(V2026_07_28)]
            #[require(modern::complete)]
            result_type("resultType"): Option<ResultType>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

/// What kind of result a result is. Absent, as it is before 2026-07-28, it is complete.
///
/// ```
/// use turnbuckle_types::ResultType;
/// let known: ResultType = serde_json::from_str("\"input_required\"").unwrap();
/// assert_eq!(known, ResultType::InputRequired);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultType {
    /// The request is done.
    Complete,
    /// The request goes on when the client has given what is asked for.
    InputRequired,
    /// A kind that an extension defines. One that was not agreed on is an error.
    Other(Box<str>),
}

impl ResultType {
    /// The word on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            ResultType::Complete => "complete",
            ResultType::InputRequired => "input_required",
            ResultType::Other(word) => word,
        }
    }
}

impl Encode for ResultType {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        self.as_str().write(at, out);
    }
}

serialize!(ResultType);

impl<'de> Deserialize<'de> for ResultType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ResultType, D::Error> {
        let word = Word::deserialize(deserializer)?;
        Ok(match word.as_str() {
            "complete" => ResultType::Complete,
            "input_required" => ResultType::InputRequired,
            _ => ResultType::Other(word.0.into()),
        })
    }
}
