//! The methods that serve prompts and resources. They are reached by pointers that are set when a
//! prompt or a resource is registered, so that a program without any does not link them.

use turnbuckle_types::{Method, RpcError};

use super::RegistrySnapshot;
use crate::{
    rpc::Reply,
    server::{
        connection::dispatch::{Arrived, ServerConnection},
        handler::extract::States,
        items::{Group, PromptDef, ResourceDef, TemplateDef},
        methods,
        notify::listen::{
            Admit, {self},
        },
    },
};

/// The methods that a server has besides those of tools.
#[derive(Clone, Copy, Default)]
pub(crate) struct MethodSets {
    pub(crate) prompts: Option<&'static MethodSet>,
    /// Those of templates, too.
    pub(crate) resources: Option<&'static MethodSet>,
}

/// The methods of one kind of items.
pub(crate) struct MethodSet {
    /// Adds the items of a group to a snapshot that has none of this kind. Each problem is one
    /// sentence.
    pub(crate) register: fn(&mut RegistrySnapshot, &Group, &States, &mut Vec<String>),
    /// Answers a request.
    answer: fn(&ServerConnection, Method, Arrived) -> Result<Reply, RpcError>,
    /// Asks the middleware of a resource whether a subscription may report it.
    pub(crate) admit: Option<Admit>,
}

impl MethodSets {
    /// Returns all methods, for a server whose registry may change while it runs.
    pub(crate) fn all() -> MethodSets {
        MethodSets { prompts: Some(&PROMPTS), resources: Some(&RESOURCES) }
    }

    /// Returns the methods of both.
    pub(crate) fn and(self, other: MethodSets) -> MethodSets {
        MethodSets {
            prompts: self.prompts.or(other.prompts),
            resources: self.resources.or(other.resources),
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'static MethodSet> {
        [self.prompts, self.resources].into_iter().flatten()
    }

    /// Answers a request that is not about tools.
    pub(crate) fn answer(
        self,
        connection: &ServerConnection,
        method: Method,
        arrived: Arrived,
    ) -> Result<Reply, RpcError> {
        let method_set = match method {
            Method::ListPrompts | Method::GetPrompt => self.prompts,
            Method::ListResources
            | Method::ListResourceTemplates
            | Method::ReadResource
            | Method::Subscribe
            | Method::Unsubscribe => self.resources,
            // Either can complete.
            Method::Complete => self.prompts.or(self.resources),
            _ => None,
        };
        match method_set {
            Some(method_set) => (method_set.answer)(connection, method, arrived),
            None => Err(RpcError::method_not_found(arrived.method())),
        }
    }
}

pub(crate) static PROMPTS: MethodSet = MethodSet {
    register: |snapshot, group, states, problems| {
        snapshot.register::<PromptDef>(&group.prompts, states, problems);
    },
    answer: |connection, method, arrived| match method {
        Method::ListPrompts => connection.list::<PromptDef>(arrived),
        Method::GetPrompt => methods::get_prompt(connection.handler_request(arrived)?),
        Method::Complete => methods::complete_argument(connection.handler_request(arrived)?),
        _ => Err(RpcError::method_not_found(arrived.method())),
    },
    admit: None,
};

pub(crate) static RESOURCES: MethodSet = MethodSet {
    register: |snapshot, group, states, problems| {
        snapshot.register::<ResourceDef>(&group.resources, states, problems);
        snapshot.register::<TemplateDef>(&group.templates, states, problems);
        snapshot.route();
    },
    answer: |connection, method, arrived| match method {
        Method::ListResources => connection.list::<ResourceDef>(arrived),
        Method::ListResourceTemplates => connection.list::<TemplateDef>(arrived),
        Method::ReadResource => methods::read_resource(connection.handler_request(arrived)?),
        Method::Subscribe => connection.subscribe(arrived),
        Method::Unsubscribe => connection.unsubscribe(&arrived),
        Method::Complete => methods::complete_argument(connection.handler_request(arrived)?),
        _ => Err(RpcError::method_not_found(arrived.method())),
    },
    admit: Some(listen::ADMIT),
};

#[cfg(test)]
mod tests {
    use crate::{Server, prompt, resource, server::Group, template, tool};

    /// Whether prompts and whether resources can be served.
    fn served(server: &Server) -> (bool, bool) {
        let method_sets = server.app().unwrap().method_sets();
        (method_sets.prompts.is_some(), method_sets.resources.is_some())
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
