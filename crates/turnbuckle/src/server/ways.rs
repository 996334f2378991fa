//! Owns which kinds of offers a program can have, and what each of them takes to be served.
//! Does not own the offers, nor how a single request goes.
//!
//! What serves prompts and resources is reached by pointers that are set where one is registered, so
//! that a program that has none does not link it.

use turnbuckle_types::{Method, RpcError};

use super::{
    calls,
    catalogue::Catalogue,
    extract::States,
    kernel::{Arrived, Kernel},
    listen::{self, Admit},
    offer::{Group, Prompt, Resource, Template},
};
use crate::dispatch::Reply;

/// What it takes to serve the kinds of offers that there can be, besides tools.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ways {
    pub(super) prompts: Option<&'static Way>,
    /// Those of templates too.
    pub(super) resources: Option<&'static Way>,
}

/// What it takes to serve one kind.
pub(super) struct Way {
    /// Puts what is in a group into a catalogue that has none of it. What is wrong is one sentence
    /// a problem.
    pub(super) stock: fn(&mut Catalogue, &Group, &States, &mut Vec<String>),
    /// Answers a request about it.
    answer: fn(&Kernel, Method, Arrived) -> Result<Reply, RpcError>,
    /// Asks what stands around it whether a stream may tell of it, where streams can name it.
    pub(super) admit: Option<Admit>,
}

impl Ways {
    /// For a server that can be given anything while it runs.
    pub(super) fn all() -> Ways {
        Ways { prompts: Some(&PROMPTS), resources: Some(&RESOURCES) }
    }

    /// Both.
    pub(super) fn and(self, other: Ways) -> Ways {
        Ways {
            prompts: self.prompts.or(other.prompts),
            resources: self.resources.or(other.resources),
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = &'static Way> {
        [self.prompts, self.resources].into_iter().flatten()
    }

    /// Answers a request that is not about tools.
    pub(super) fn answer(
        self,
        kernel: &Kernel,
        method: Method,
        arrived: Arrived,
    ) -> Result<Reply, RpcError> {
        let way = match method {
            Method::ListPrompts | Method::GetPrompt => self.prompts,
            Method::ListResources
            | Method::ListResourceTemplates
            | Method::ReadResource
            | Method::Subscribe
            | Method::Unsubscribe => self.resources,
            // Either knows how.
            Method::Complete => self.prompts.or(self.resources),
            _ => None,
        };
        match way {
            Some(way) => (way.answer)(kernel, method, arrived),
            None => Err(RpcError::method_not_found(arrived.method())),
        }
    }
}

pub(super) static PROMPTS: Way = Way {
    stock: |catalogue, group, states, problems| {
        catalogue.stock::<Prompt>(&group.prompts, states, problems);
    },
    answer: |kernel, method, arrived| match method {
        Method::ListPrompts => kernel.list::<Prompt>(arrived),
        Method::GetPrompt => calls::get_prompt(kernel.visit(arrived)?),
        Method::Complete => calls::complete_argument(kernel.visit(arrived)?),
        _ => Err(RpcError::method_not_found(arrived.method())),
    },
    admit: None,
};

pub(super) static RESOURCES: Way = Way {
    stock: |catalogue, group, states, problems| {
        catalogue.stock::<Resource>(&group.resources, states, problems);
        catalogue.stock::<Template>(&group.templates, states, problems);
        catalogue.route();
    },
    answer: |kernel, method, arrived| match method {
        Method::ListResources => kernel.list::<Resource>(arrived),
        Method::ListResourceTemplates => kernel.list::<Template>(arrived),
        Method::ReadResource => calls::read_resource(kernel.visit(arrived)?),
        Method::Subscribe => kernel.subscribe(arrived),
        Method::Unsubscribe => kernel.unsubscribe(&arrived),
        Method::Complete => calls::complete_argument(kernel.visit(arrived)?),
        _ => Err(RpcError::method_not_found(arrived.method())),
    },
    admit: Some(listen::ADMIT),
};

#[cfg(test)]
mod tests {
    use crate::{Group, Server, prompt, resource, template, tool};

    /// Whether prompts and whether resources can be served.
    fn served(server: &Server) -> (bool, bool) {
        let ways = server.app().unwrap().ways();
        (ways.prompts.is_some(), ways.resources.is_some())
    }

    #[test]
    fn what_is_registered_can_be_served() {
        let server = || Server::new("demo", "1.0").tool(tool("tool", async || ()));
        let prompts = || Group::new().prompt(prompt("prompt", async || "prompt"));
        let resources = || Group::new().resource(resource("demo://one", async || "one"));
        let templates = || Group::new().template(template("demo://{id}", async || "some"));
        assert_eq!(served(&server()), (false, false));
        assert_eq!(served(&server().prompt(prompt("prompt", async || "prompt"))), (true, false));
        assert_eq!(served(&server().group(resources())), (false, true));
        assert_eq!(served(&server().group(templates())), (false, true));
        // In whatever order, and however deep.
        assert_eq!(served(&server().group(prompts()).group(resources())), (true, true));
        assert_eq!(served(&server().group(templates().group(prompts()))), (true, true));
    }

    #[test]
    fn a_server_that_can_be_given_anything_can_serve_it() {
        let server = Server::new("demo", "1.0");
        let _registry = server.registry().unwrap();
        assert_eq!(served(&server), (true, true));
    }
}
