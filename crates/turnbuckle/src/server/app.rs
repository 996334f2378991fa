//! Owns what all connections of a server share: what it offers, the answers that never
//! change. Does not own anything of one connection.

use std::sync::{Arc, OnceLock};

use turnbuckle_types::{
    DiscoverResult, Encode, Era, Implementation, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Meta, Method,
    PromptsCapability, Raw, ResourcesCapability, Revision, ServerCapabilities, ToolsCapability,
    write_at,
};

use super::{
    Server, around::Around, ask::Asking, catalogue::Catalogue, changes::Changes, extract::States,
    listing::listed,
};
use crate::seal::KeyRing;

/// A server that was found sound.
pub(super) struct App {
    info: Implementation,
    instructions: Option<String>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) states: Arc<States>,
    pub(super) changes: Changes,
    /// What stands around every request.
    pub(super) around: Around,
    pub(super) asking: Asking,
    /// What seals all that clients keep.
    pub(super) keys: KeyRing,
    /// What is advertised, and so what a client may listen to.
    pub(super) capabilities: ServerCapabilities,
    /// How many streams may listen at once.
    pub(super) listeners: usize,
    /// `tools/list` as text, by revision.
    lists: [OnceLock<Raw>; Revision::ALL.len()],
    /// What ends a modern result: `"_meta":{…}}` with the server's name.
    tail: Vec<u8>,
}

impl App {
    /// Checks everything; the error is one sentence a problem.
    pub(super) fn new(server: &Server) -> Result<App, String> {
        let catalogue = Catalogue::new(&server.offers, &server.states)
            .map_err(|problems| problems.join("; "))?;
        Ok(App {
            info: server.info.clone(),
            instructions: server.instructions.clone(),
            capabilities: capabilities(&catalogue),
            catalogue: Arc::new(catalogue),
            states: Arc::new(server.states.clone()),
            changes: server.changes.clone(),
            around: server.around.clone(),
            asking: server.asking.clone(),
            keys: server.keys.clone(),
            listeners: server.limits.listeners,
            lists: Default::default(),
            tail: tail(&server.info),
        })
    }

    /// Whether there is anything that a method could be about.
    pub(super) fn offers(&self, method: Method) -> bool {
        let has = &self.capabilities;
        match method {
            Method::ListTools | Method::CallTool => has.tools.is_some(),
            Method::ListPrompts | Method::GetPrompt => has.prompts.is_some(),
            Method::ListResources | Method::ListResourceTemplates | Method::ReadResource => {
                has.resources.is_some()
            }
            Method::Subscribe | Method::Unsubscribe => {
                has.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
            }
            Method::Complete => has.completions.is_some(),
            _ => true,
        }
    }

    pub(super) fn discover(&self, revision: Revision, served: &[Revision]) -> Raw {
        let supported = served.iter().rev().map(|revision| revision.as_str().to_owned());
        let mut result =
            DiscoverResult::new(supported.collect::<Vec<_>>(), self.capabilities.clone());
        result.instructions.clone_from(&self.instructions);
        self.finish(&result, revision)
    }

    pub(super) fn initialize(&self, revision: Revision) -> Raw {
        let mut result =
            InitializeResult::new(revision.as_str(), self.capabilities.clone(), self.info.clone());
        result.instructions.clone_from(&self.instructions);
        Raw::at(&result, revision)
    }

    pub(super) fn list_tools(&self, revision: Revision) -> Raw {
        let index = Revision::ALL.iter().position(|known| *known == revision).unwrap_or_default();
        let list = || {
            let tools = self.catalogue.tools().iter().map(|tool| listed(tool, revision));
            self.finish(&ListToolsResult::new(tools.collect::<Vec<_>>()), revision)
        };
        self.lists[index].get_or_init(list).clone()
    }

    pub(super) fn list_prompts(&self, revision: Revision) -> Raw {
        let prompts = self.catalogue.prompts().iter().map(|prompt| prompt.spec.clone());
        self.finish(&ListPromptsResult::new(prompts.collect::<Vec<_>>()), revision)
    }

    pub(super) fn list_resources(&self, revision: Revision) -> Raw {
        let resources = self.catalogue.resources().iter().map(|resource| resource.spec.clone());
        self.finish(&ListResourcesResult::new(resources.collect::<Vec<_>>()), revision)
    }

    pub(super) fn list_templates(&self, revision: Revision) -> Raw {
        let templates = self.catalogue.templates().iter().map(|template| template.spec.clone());
        self.finish(&ListResourceTemplatesResult::new(templates.collect::<Vec<_>>()), revision)
    }

    /// A result without `_meta` of its own, as text, with the server's name where the
    /// revision has a place for it.
    pub(super) fn finish<T: Encode>(&self, result: &T, revision: Revision) -> Raw {
        self.finish_sized(result, revision, 0)
    }

    /// [`finish`](App::finish) for a result whose text is known to be about `size` bytes.
    pub(super) fn finish_sized<T: Encode>(
        &self,
        result: &T,
        revision: Revision,
        size: usize,
    ) -> Raw {
        let mut text = Vec::with_capacity(size + self.tail.len() + 192);
        write_at(result, revision, &mut text);
        if revision.era() == Era::Modern && text.pop_if(|last| *last == b'}').is_some() {
            if text.last() != Some(&b'{') {
                text.push(b',');
            }
            text.extend_from_slice(&self.tail);
        }
        Raw::from_encoded(text).unwrap_or_else(Raw::empty_object)
    }

    /// The server's name, where the revision has a place for it.
    pub(super) fn name_in(&self, meta: &mut Meta, revision: Revision) {
        if revision.era() == Era::Modern {
            meta.set_server_info(&self.info);
        }
    }
}

/// What follows from what is offered.
fn capabilities(catalogue: &Catalogue) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::new();
    capabilities.logging = Some(Raw::empty_object());
    if !catalogue.tools().is_empty() {
        let mut tools = ToolsCapability::new();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
    }
    if !catalogue.prompts().is_empty() {
        let mut prompts = PromptsCapability::new();
        prompts.list_changed = Some(true);
        capabilities.prompts = Some(prompts);
    }
    if catalogue.has_resources() {
        let mut resources = ResourcesCapability::new();
        resources.list_changed = Some(true);
        resources.subscribe = Some(true);
        capabilities.resources = Some(resources);
    }
    if catalogue.has_completers() {
        capabilities.completions = Some(Raw::empty_object());
    }
    capabilities
}

fn tail(info: &Implementation) -> Vec<u8> {
    let mut meta = Meta::new();
    meta.set_server_info(info);
    let mut text = br#""_meta":"#.to_vec();
    write_at(&meta, Revision::LATEST, &mut text);
    text.push(b'}');
    text
}
