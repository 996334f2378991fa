//! Resource templates.

use std::sync::Arc;

use turnbuckle_types::{Annotations, Icon, Raw, ReadResourceResult};

use super::{
    Completers, OnCancel, Registration,
    completer::completed,
    members, registration_methods,
    resource::{described, last_segment},
};
use crate::server::{
    handler::{
        context::Ctx,
        extract::Description,
        function::{BlockingFn, HandlerFn},
        reply::{Failure, IntoReply},
    },
    methods::cache_hints::Cache,
    schema::Checks,
    uri::UriTemplate,
};

/// A resource template and its handler, for [`Server::template`](crate::Server::template).
#[derive(Clone)]
pub struct TemplateDef {
    pub(crate) spec: turnbuckle_types::ResourceTemplate,
    pub(crate) registration: Registration<ReadResourceResult>,
    pub(crate) cache: Option<Cache>,
    pub(crate) completers: Completers,
    /// `None` if the text is not a valid template, which is a problem.
    pub(crate) uri: Option<UriTemplate>,
    pub(crate) list: Option<Arc<Registration<Resources>>>,
    /// Constraints on the variables that decoding does not check.
    pub(crate) checks: Option<Arc<Checks>>,
}

/// The result of a lister.
pub(crate) type Resources = Vec<turnbuckle_types::Resource>;

impl IntoReply<Resources> for Resources {
    async fn into_reply(self, _: &Ctx) -> Result<Resources, Failure> {
        Ok(self)
    }
}

/// Creates a resource template from an RFC 6570 template and an `async fn`, which takes the variables
/// of the URI as [`Args`](crate::Args), decoded into the types of its fields. See
/// [`UriTemplate`](crate::server::UriTemplate) for the rules of matching, and for which of several templates
/// answers.
///
/// ```
/// use turnbuckle::{Args, Server, template};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Item { id: u32 }
/// async fn item(Args(item): Args<Item>) -> String { format!("item number {}", item.id) }
/// let server =
///     Server::new("demo", "1.0").template(template("demo://items/{id}", item).name("item"));
/// # let _ = server;
/// ```
pub fn template<M: 'static, F>(uri: impl Into<String>, handler: F) -> TemplateDef
where
    F: HandlerFn<ReadResourceResult, M>,
{
    TemplateDef::new(uri.into(), Registration::asynchronous(handler))
}

/// Creates a resource template from a sync function, which runs on a thread where it may block.
pub fn blocking_template<M: 'static, F>(uri: impl Into<String>, handler: F) -> TemplateDef
where
    F: BlockingFn<ReadResourceResult, M>,
{
    TemplateDef::new(uri.into(), Registration::blocking(handler))
}

/// A value that [`Server::template`](crate::Server::template) takes: a [`TemplateDef`], or a function
/// with `#[resource]` and a template.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource template",
    label = "not a resource template",
    note = "put `#[resource(\"scheme://{{name}}\")]` on the function, or wrap it: \
            `template(\"scheme://{{name}}\", function)`"
)]
pub trait IntoTemplate {
    /// Returns the template.
    fn into_template(self) -> TemplateDef;
}

impl IntoTemplate for TemplateDef {
    fn into_template(self) -> TemplateDef {
        self
    }
}

impl TemplateDef {
    fn new(
        text: String,
        (mut registration, description): (Registration<ReadResourceResult>, Description),
    ) -> TemplateDef {
        let uri = match UriTemplate::parse(&text) {
            Ok(template) => Some(template),
            Err(error) => {
                registration.problems.push(error.to_string());
                None
            }
        };
        let (schema, checks) = match registration.sound(description.input) {
            Some(input) => (input.schema, Some(Arc::new(input.checks.of_texts()))),
            None => (Raw::empty_object(), None),
        };
        let members = members(&schema);
        let mut completers = Completers::of(&members);
        if let Some(uri) = &uri {
            let variables: Vec<&str> = uri.variables().collect();
            for (name, _, _) in members.iter().filter(|(_, _, required)| *required) {
                if !variables.contains(&name.as_str()) {
                    registration.problems.push(format!(
                        "its Args need `{name}`, which `{text}` has no variable for"
                    ));
                }
            }
            variables.iter().for_each(|variable| completers.add_argument(variable));
        }
        let name = last_segment(&text).to_owned();
        let spec = turnbuckle_types::ResourceTemplate::new(text, name);
        TemplateDef { spec, registration, cache: None, completers, uri, list: None, checks }
    }

    /// Sets the name for programs; by default the last part of the template.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> TemplateDef {
        self.spec.name = name.into();
        self
    }

    /// Sets a handler that returns the resources of this template for `resources/list`.
    #[must_use]
    pub fn list<M: 'static, F>(mut self, lister: F) -> TemplateDef
    where
        F: HandlerFn<Vec<turnbuckle_types::Resource>, M>,
    {
        self.list = Some(Arc::new(Registration::asynchronous(lister).0));
        self
    }

    /// [`list`](TemplateDef::list) with a lister that runs to its end when its request is cancelled,
    /// and counts as in flight until then.
    pub(crate) fn list_to_the_end<M: 'static, F>(mut self, lister: F) -> TemplateDef
    where
        F: HandlerFn<Vec<turnbuckle_types::Resource>, M>,
    {
        let (lister, _) = Registration::asynchronous(lister);
        self.list = Some(Arc::new(Registration { on_cancel: OnCancel::apart(None), ..lister }));
        self
    }

    /// Returns the text of the template.
    pub fn uri_template(&self) -> &str {
        &self.spec.uri_template
    }
}

registration_methods!(TemplateDef);
completed!(TemplateDef);
described!(TemplateDef);
