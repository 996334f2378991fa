//! Owns what a resource with one URI is. Does not own families of them, nor how they are found.

use turnbuckle_types::{Annotations, Icon, ReadResourceResult};

use super::{Offer, offered};
use crate::server::{
    cache::Cache,
    extract::Description,
    handler::{BlockingFn, HandlerFn},
};

/// A resource, to be given to [`Server::resource`](crate::Server::resource).
#[derive(Clone)]
pub struct Resource {
    pub(crate) spec: turnbuckle_types::Resource,
    pub(crate) offer: Offer<ReadResourceResult>,
    pub(crate) cache: Option<Cache>,
}

/// Makes a resource from an `async fn` whose arguments are extractors and which returns what the
/// resource holds.
///
/// ```
/// use turnbuckle::{Server, resource};
/// async fn readme() -> &'static str { "# Read me" }
/// let server = Server::new("demo", "1.0")
///     .resource(resource("demo://readme", readme).name("readme").mime_type("text/markdown"));
/// # let _ = server;
/// ```
pub fn resource<M: 'static, F>(uri: impl Into<String>, handler: F) -> Resource
where
    F: HandlerFn<ReadResourceResult, M>,
{
    Resource::new(uri.into(), Offer::asynchronous(handler))
}

/// Makes a resource from a sync function, which runs on a thread where it may block.
pub fn blocking_resource<M: 'static, F>(uri: impl Into<String>, handler: F) -> Resource
where
    F: BlockingFn<ReadResourceResult, M>,
{
    Resource::new(uri.into(), Offer::blocking(handler))
}

/// What [`Server::resource`](crate::Server::resource) takes: a [`Resource`], or a function that
/// carries `#[resource]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource",
    label = "not a resource",
    note = "put `#[resource(\"scheme://…\")]` on the function, or wrap it: \
            `resource(\"scheme://…\", function)`",
    note = "one whose URI has variables, such as `scheme://{{name}}`, goes to `template`"
)]
pub trait IntoResource {
    /// Makes the resource.
    fn into_resource(self) -> Resource;
}

impl IntoResource for Resource {
    fn into_resource(self) -> Resource {
        self
    }
}

impl Resource {
    fn new(
        uri: String,
        (mut offer, description): (Offer<ReadResourceResult>, Description),
    ) -> Resource {
        offer.problems.extend(uri_problem(&uri));
        if description.input.is_some() {
            offer.problems.push(
                "it takes Args, but a resource with one URI has none: make it a `template`".into(),
            );
        }
        let name = last_segment(&uri).to_owned();
        Resource { spec: turnbuckle_types::Resource::new(uri, name), offer, cache: None }
    }

    /// The name that programs use; the last part of the URI unless told otherwise.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Resource {
        self.spec.name = name.into();
        self
    }

    /// How many bytes it has, if that is known.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Resource {
        self.spec.size = Some(bytes);
        self
    }

    /// Its URI.
    pub fn uri(&self) -> &str {
        &self.spec.uri
    }
}

offered!(Resource);

/// What can be told to whatever is a resource.
macro_rules! described {
    ($kind:ident) => {
        impl $kind {
            /// What it is.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> $kind {
                self.spec.description = Some(description.into());
                self
            }

            /// The name that people read.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> $kind {
                self.spec.title = Some(title.into());
                self
            }

            /// The type of what it holds, where the handler does not say.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> $kind {
                self.spec.mime_type = Some(mime_type.into());
                self
            }

            /// For how long what is read may be kept, where the handler does not say.
            #[must_use]
            pub fn cache(mut self, cache: crate::Cache) -> $kind {
                self.cache = Some(cache);
                self
            }

            /// Who it is for, how much it matters, when it was changed.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> $kind {
                self.spec.annotations = Some(annotations);
                self
            }

            /// Adds a picture of it.
            #[must_use]
            pub fn icon(mut self, icon: Icon) -> $kind {
                self.spec.icons.get_or_insert_default().push(icon);
                self
            }
        }
    };
}

pub(super) use described;

described!(Resource);

/// RFC 3986 §3.1: a URI begins with a scheme.
fn uri_problem(uri: &str) -> Option<String> {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let plain = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let begins = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    (!plain || !begins || uri.chars().any(|c| c.is_whitespace() || c.is_control())).then(|| {
        format!(
            "`{uri}` is not a URI: it begins with a scheme, such as `note://`, and has no spaces"
        )
    })
}

pub(super) fn last_segment(uri: &str) -> &str {
    let rest = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    rest.rsplit('/').find(|segment| !segment.is_empty()).unwrap_or(uri)
}
