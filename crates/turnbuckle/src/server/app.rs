//! Owns what all connections of a server share: what it offers, the answers that never
//! change. Does not own anything of one connection.

use std::sync::{Arc, OnceLock};

use turnbuckle_types::{
    DiscoverResult, Encode, Era, Implementation, InitializeResult, Meta, Method, PromptsCapability,
    Raw, ResourcesCapability, Revision, ServerCapabilities, ToolsCapability, write_at,
};

use super::{
    Server,
    around::Around,
    cache::{Caching, Nature},
    catalogue::{Catalogue, Found, Live},
    changes::Changes,
    context::Ctx,
    extract::States,
    roots_hook::RootsHook,
    visibility::Rules,
    ways::Ways,
};
use crate::error::Error;
use crate::{Asking, KeyRing};

/// A server that was found sound.
pub(crate) struct App {
    info: Implementation,
    instructions: Option<String>,
    pub(super) live: Live,
    pub(super) states: Arc<States>,
    pub(super) changes: Changes,
    /// What stands around every request.
    pub(super) around: Around,
    pub(super) asking: Asking,
    /// Who hears that a client's roots are others.
    pub(super) roots: Option<RootsHook>,
    /// What serves what was registered before it ran.
    ways: Ways,
    /// Fixed when the first client is told.
    advertised: OnceLock<Advertised>,
    /// How many streams may listen at once.
    pub(super) listeners: usize,
    /// Seal what clients keep.
    pub(super) keys: KeyRing,
    /// Who may know of what.
    pub(super) rules: Rules,
    pub(super) caching: Caching,
    /// Who answers everything instead.
    pub(super) forward: Option<Arc<dyn super::seam::Forward>>,
    /// What ends a modern result: `"_meta":{…}}` with the server's name.
    tail: Vec<u8>,
}

struct Advertised {
    capabilities: ServerCapabilities,
    /// What was known then of what may come.
    nature: Nature,
    /// What serves all that there can be.
    ways: Ways,
}

impl App {
    /// Checks everything; the error is one sentence a problem.
    pub(super) fn new(server: &Server) -> Result<App, String> {
        if let Some(place) = server.late {
            return Err(format!(
                "the server was changed at {}:{} after its registry was taken, so that the \
                 registry would not reach it: take the registry last, and add to that from then on",
                place.file(),
                place.line(),
            ));
        }
        let catalogue = Catalogue::new(&server.offers, &server.states, server.page_size)
            .map_err(|problems| problems.join("; "))?;
        let states = Arc::new(server.states.clone());
        Ok(App {
            info: server.info.clone(),
            instructions: server.instructions.clone(),
            ways: server.offers.ways,
            advertised: OnceLock::new(),
            live: Live::new(catalogue, states.clone(), server.changes.clone()),
            states,
            changes: server.changes.clone(),
            around: server.around.clone(),
            asking: server.asking.clone(),
            roots: server.roots.clone(),
            listeners: server.limits.listeners,
            keys: server.keys.clone(),
            rules: server.rules.clone(),
            caching: server.own_caching(),
            forward: server.forward.clone(),
            tail: tail(&server.info),
        })
    }

    /// What is offered now.
    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        self.live.catalogue()
    }

    /// What is advertised, and so what a client may listen to.
    pub(super) fn capabilities(&self) -> &ServerCapabilities {
        &self.advertise(Nature::Fixed, self.ways).capabilities
    }

    /// What serves what is offered.
    pub(super) fn ways(&self) -> Ways {
        self.advertise(Nature::Fixed, self.ways).ways
    }

    /// What is advertised; if nothing is yet, then what follows from this.
    fn advertise(&self, nature: Nature, ways: Ways) -> &Advertised {
        self.advertised.get_or_init(|| Advertised {
            capabilities: capabilities(&self.catalogue(), nature),
            nature,
            ways,
        })
    }

    /// From now on what is offered may change.
    pub(super) fn open_registry(&self) -> Result<(), Error> {
        if self.advertise(Nature::Changing, Ways::all()).nature == Nature::Fixed {
            return Err(Error::refused(
                "the server serves already, and has told clients what it offers: take its \
                 registry before",
            ));
        }
        Ok(())
    }

    /// Whether lists and discovery stay what they are.
    pub(super) fn nature(&self) -> Nature {
        self.advertised.get().map_or(Nature::Fixed, |told| told.nature)
    }

    /// Whether it takes a rule to tell who may know of what a URI leads to.
    pub(super) fn has_rules_for(&self, found: &Found) -> bool {
        match found {
            Found::Resource(resource) => self.rules.concern(&***resource),
            Found::Template(template, _) => self.rules.concern(&***template),
        }
    }

    /// Whether whoever sends this request may know of what a URI leads to.
    pub(super) fn shows(&self, found: &Found, ctx: &Ctx) -> bool {
        match found {
            Found::Resource(resource) => self.rules.show(&***resource, ctx),
            Found::Template(template, _) => self.rules.show(&***template, ctx),
        }
    }

    /// Whether there is anything that a method could be about.
    pub(super) fn offers(&self, method: Method) -> bool {
        let has = self.capabilities();
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
            DiscoverResult::new(supported.collect::<Vec<_>>(), self.capabilities().clone());
        result.instructions.clone_from(&self.instructions);
        let hint = self.caching.of_discovery(self.nature());
        result.ttl_ms = Some(hint.ttl_ms);
        result.cache_scope = Some(hint.scope);
        self.finish(&result, revision)
    }

    pub(super) fn initialize(&self, revision: Revision) -> Raw {
        let mut result = InitializeResult::new(
            revision.as_str(),
            self.capabilities().clone(),
            self.info.clone(),
        );
        result.instructions.clone_from(&self.instructions);
        Raw::at(&result, revision)
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

/// What follows from what is offered, or from what may come.
fn capabilities(catalogue: &Catalogue, nature: Nature) -> ServerCapabilities {
    let open = nature == Nature::Changing;
    let mut capabilities = ServerCapabilities::new();
    capabilities.logging = Some(Raw::empty_object());
    if open || catalogue.has_tools() {
        let mut tools = ToolsCapability::new();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
    }
    if open || catalogue.has_prompts() {
        let mut prompts = PromptsCapability::new();
        prompts.list_changed = Some(true);
        capabilities.prompts = Some(prompts);
    }
    if open || catalogue.has_resources() {
        let mut resources = ResourcesCapability::new();
        resources.list_changed = Some(true);
        resources.subscribe = Some(true);
        capabilities.resources = Some(resources);
    }
    if open || catalogue.has_completers() {
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
