//! Owns what a family of resources is. Does not own how a URI is matched.

use std::sync::Arc;

use turnbuckle_types::{Annotations, Icon, Raw, ReadResourceResult};

use super::{
    Completers, Offer, OnCancel,
    completer::completed,
    members, offered,
    resource::{described, last_segment},
};
use crate::server::{
    cache::Cache,
    context::Ctx,
    extract::Description,
    handler::{BlockingFn, HandlerFn},
    reply::{Failure, IntoReply},
    schema::Checks,
    uri::UriTemplate,
};

/// A family of resources, to be given to [`Server::template`](crate::Server::template).
#[derive(Clone)]
pub struct Template {
    pub(crate) spec: turnbuckle_types::ResourceTemplate,
    pub(crate) offer: Offer<ReadResourceResult>,
    pub(crate) cache: Option<Cache>,
    pub(crate) completers: Completers,
    /// `None` where the text is no template, which is a problem.
    pub(crate) uri: Option<UriTemplate>,
    pub(crate) list: Option<Arc<Offer<Resources>>>,
    /// What its variables are checked for beside decoding them.
    pub(crate) checks: Option<Arc<Checks>>,
}

/// What lists the members of a family.
pub(crate) type Resources = Vec<turnbuckle_types::Resource>;

impl IntoReply<Resources> for Resources {
    async fn into_reply(self, _: &Ctx) -> Result<Resources, Failure> {
        Ok(self)
    }
}

/// Makes a family of resources from an RFC 6570 template and an `async fn`, which takes the
/// variables of the URI as [`Args`](crate::Args), decoded and read as its fields want them.
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
pub fn template<M: 'static, F>(uri: impl Into<String>, handler: F) -> Template
where
    F: HandlerFn<ReadResourceResult, M>,
{
    Template::new(uri.into(), Offer::asynchronous(handler))
}

/// Makes a family of resources from a sync function, which runs on a thread where it may block.
pub fn blocking_template<M: 'static, F>(uri: impl Into<String>, handler: F) -> Template
where
    F: BlockingFn<ReadResourceResult, M>,
{
    Template::new(uri.into(), Offer::blocking(handler))
}

/// What [`Server::template`](crate::Server::template) takes: a [`Template`], or a function that
/// carries `#[resource]` with a template.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource template",
    label = "not a resource template",
    note = "put `#[resource(\"scheme://{{name}}\")]` on the function, or wrap it: \
            `template(\"scheme://{{name}}\", function)`"
)]
pub trait IntoTemplate {
    /// Makes the template.
    fn into_template(self) -> Template;
}

impl IntoTemplate for Template {
    fn into_template(self) -> Template {
        self
    }
}

impl Template {
    fn new(
        text: String,
        (mut offer, description): (Offer<ReadResourceResult>, Description),
    ) -> Template {
        let uri = match UriTemplate::parse(&text) {
            Ok(template) => Some(template),
            Err(error) => {
                offer.problems.push(error.to_string());
                None
            }
        };
        let (schema, checks) = match offer.sound(description.input) {
            Some(input) => (input.schema, Some(Arc::new(input.checks.of_texts()))),
            None => (Raw::empty_object(), None),
        };
        let members = members(&schema);
        let mut completers = Completers::of(&members);
        if let Some(uri) = &uri {
            let variables: Vec<&str> = uri.variables().collect();
            for (name, _, _) in members.iter().filter(|(_, _, required)| *required) {
                if !variables.contains(&name.as_str()) {
                    offer.problems.push(format!(
                        "its Args need `{name}`, which `{text}` has no variable for"
                    ));
                }
            }
            variables.iter().for_each(|variable| completers.know(variable));
        }
        let name = last_segment(&text).to_owned();
        let spec = turnbuckle_types::ResourceTemplate::new(text, name);
        Template { spec, offer, cache: None, completers, uri, list: None, checks }
    }

    /// The name that programs use; the last part of the template unless told otherwise.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Template {
        self.spec.name = name.into();
        self
    }

    /// Lists members of the family in `resources/list`: a handler that returns them.
    #[must_use]
    pub fn list<M: 'static, F>(mut self, lister: F) -> Template
    where
        F: HandlerFn<Vec<turnbuckle_types::Resource>, M>,
    {
        self.list = Some(Arc::new(Offer::asynchronous(lister).0));
        self
    }

    /// [`list`](Template::list) with a lister that goes on when its request is given up, and counts
    /// as in flight until it ends.
    pub(crate) fn list_to_the_end<M: 'static, F>(mut self, lister: F) -> Template
    where
        F: HandlerFn<Vec<turnbuckle_types::Resource>, M>,
    {
        let (lister, _) = Offer::asynchronous(lister);
        self.list = Some(Arc::new(Offer { on_cancel: OnCancel::apart(None), ..lister }));
        self
    }

    /// Its text.
    pub fn uri_template(&self) -> &str {
        &self.spec.uri_template
    }
}

offered!(Template);
completed!(Template);
described!(Template);
