//! Resources with one URI.

use turnbuckle_types::{Annotations, Icon, ReadResourceResult};

use super::{Registration, registration_methods};
use crate::server::{
    handler::{
        extract::Description,
        function::{BlockingFn, HandlerFn},
    },
    methods::cache_hints::Cache,
};

/// A resource and its handler, for [`Server::resource`](crate::Server::resource).
#[derive(Clone)]
pub struct ResourceDef {
    pub(crate) spec: turnbuckle_types::Resource,
    pub(crate) registration: Registration<ReadResourceResult>,
    pub(crate) cache: Option<Cache>,
}

/// Creates a resource from an `async fn` whose arguments are extractors and which returns the
/// contents.
///
/// ```
/// use turnbuckle::{Server, resource};
/// async fn readme() -> &'static str { "# Read me" }
/// let server = Server::new("demo", "1.0")
///     .resource(resource("demo://readme", readme).name("readme").mime_type("text/markdown"));
/// # let _ = server;
/// ```
pub fn resource<M: 'static, F>(uri: impl Into<String>, handler: F) -> ResourceDef
where
    F: HandlerFn<ReadResourceResult, M>,
{
    ResourceDef::new(uri.into(), Registration::asynchronous(handler))
}

/// Creates a resource from a sync function, which runs on a thread where it may block.
pub fn blocking_resource<M: 'static, F>(uri: impl Into<String>, handler: F) -> ResourceDef
where
    F: BlockingFn<ReadResourceResult, M>,
{
    ResourceDef::new(uri.into(), Registration::blocking(handler))
}

/// A value that [`Server::resource`](crate::Server::resource) takes: a [`ResourceDef`], or a function
/// with `#[resource]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource",
    label = "not a resource",
    note = "put `#[resource(\"scheme://…\")]` on the function, or wrap it: \
            `resource(\"scheme://…\", function)`",
    note = "one whose URI has variables, such as `scheme://{{name}}`, goes to `template`"
)]
pub trait IntoResource {
    /// Returns the resource.
    fn into_resource(self) -> ResourceDef;
}

impl IntoResource for ResourceDef {
    fn into_resource(self) -> ResourceDef {
        self
    }
}

impl ResourceDef {
    fn new(
        uri: String,
        (mut registration, description): (Registration<ReadResourceResult>, Description),
    ) -> ResourceDef {
        registration.problems.extend(uri_problem(&uri));
        if description.input.is_some() {
            registration.problems.push(
                "it takes Args, but a resource with one URI has none: make it a `template`".into(),
            );
        }
        let name = last_segment(&uri).to_owned();
        ResourceDef { spec: turnbuckle_types::Resource::new(uri, name), registration, cache: None }
    }

    /// Sets the name for programs; by default the last part of the URI.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> ResourceDef {
        self.spec.name = name.into();
        self
    }

    /// Sets the size in bytes.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> ResourceDef {
        self.spec.size = Some(bytes);
        self
    }

    /// Returns the URI.
    pub fn uri(&self) -> &str {
        &self.spec.uri
    }
}

registration_methods!(ResourceDef);

/// Implements the setters that resources and templates share.
macro_rules! described {
    ($kind:ident) => {
        impl $kind {
            /// Sets the description.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> $kind {
                self.spec.description = Some(description.into());
                self
            }

            /// Sets the name for people.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> $kind {
                self.spec.title = Some(title.into());
                self
            }

            /// Sets the media type of contents for which the handler sets none.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> $kind {
                self.spec.mime_type = Some(mime_type.into());
                self
            }

            /// Sets how long clients may keep contents for which the handler does not say it.
            #[must_use]
            pub fn cache(mut self, cache: crate::server::Cache) -> $kind {
                self.cache = Some(cache);
                self
            }

            /// Sets the audience, the priority and the time of the last change.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> $kind {
                self.spec.annotations = Some(annotations);
                self
            }

            /// Adds an icon.
            #[must_use]
            pub fn icon(mut self, icon: Icon) -> $kind {
                self.spec.icons.get_or_insert_default().push(icon);
                self
            }
        }
    };
}

pub(super) use described;

described!(ResourceDef);

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
