//! Owns what all connections of a server share: what it offers, the answers that never
//! change. Does not own anything of one connection.

use std::sync::{Arc, OnceLock};

use super::{
    Server,
    items::Rules,
    registry::{FoundResource, LiveRegistry, MethodSets, RegistrySnapshot},
};
use crate::{
    elicit::Asking,
    error::Error,
    middleware::server::ServerMiddleware,
    protocol::classify::EnvelopeCache,
    rpc::memory::MemoryBudget,
    server::KeyRing,
    server::{
        handler::{context::Ctx, extract::States},
        methods::cache_hints::{CachePolicy, Nature},
        notify::{changes::Changes, roots::RootsHook},
    },
};
use turnbuckle_types::{
    DiscoverResult, Encode, Implementation, InitializeResult, Meta, Method, PromptsCapability, Raw,
    ResourcesCapability, Revision, ServerCapabilities, ToolsCapability, write_at,
};

/// A server that was found sound.
pub(crate) struct App {
    info: Implementation,
    instructions: Option<String>,
    pub(super) live: LiveRegistry,
    pub(super) states: Arc<States>,
    pub(super) changes: Changes,
    pub(crate) middleware: ServerMiddleware,
    pub(super) asking: Asking,
    /// Who hears that a client's roots are others.
    pub(super) roots: Option<RootsHook>,
    /// What serves what was registered before it ran.
    method_sets: MethodSets,
    /// Fixed when the first client is told.
    advertised: OnceLock<Advertised>,
    /// How many streams may listen at once.
    pub(super) listeners: usize,
    pub(super) memory: Arc<MemoryBudget>,
    /// The `_meta` of modern requests that was checked before.
    pub(super) envelopes: EnvelopeCache,
    /// Seal what clients keep.
    pub(super) keys: KeyRing,
    /// Who may know of what.
    pub(super) rules: Rules,
    pub(super) caching: CachePolicy,
    /// Who answers everything instead.
    pub(super) forward: Option<Arc<dyn super::connection::forward::Forward>>,
    /// What ends a modern result: `"_meta":{…}}` with the server's name.
    tail: Vec<u8>,
}

struct Advertised {
    capabilities: ServerCapabilities,
    /// What was known then of what may come.
    nature: Nature,
    /// What serves all that there can be.
    method_sets: MethodSets,
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
        let snapshot = RegistrySnapshot::new(&server.offers, &server.states, server.page_size)
            .map_err(|problems| problems.join("; "))?;
        let states = Arc::new(server.states.clone());
        Ok(App {
            info: server.info.clone(),
            instructions: server.instructions.clone(),
            method_sets: server.offers.method_sets,
            advertised: OnceLock::new(),
            live: LiveRegistry::new(snapshot, states.clone(), server.changes.clone()),
            states,
            changes: server.changes.clone(),
            middleware: server.middleware.clone(),
            asking: server.asking.clone(),
            roots: server.roots.clone(),
            listeners: server.limits.listeners,
            memory: MemoryBudget::new(server.limits.memory_bytes),
            envelopes: EnvelopeCache::default(),
            keys: server.keys.clone(),
            rules: server.rules.clone(),
            caching: server.own_caching(),
            forward: server.forward.clone(),
            tail: tail(&server.info),
        })
    }

    /// Returns whether the tool or prompt that a request names exists; `true` for other requests.
    pub(crate) fn has_named(&self, method: Option<Method>, name: &str) -> bool {
        match method {
            Some(Method::CallTool) => self.snapshot().tool(name).is_some(),
            Some(Method::GetPrompt) => self.snapshot().prompt(name).is_some(),
            _ => true,
        }
    }

    /// What is offered now.
    pub(super) fn snapshot(&self) -> Arc<RegistrySnapshot> {
        self.live.snapshot()
    }

    /// What is advertised, and so what a client may listen to.
    pub(super) fn capabilities(&self) -> &ServerCapabilities {
        &self.advertise(Nature::Fixed, self.method_sets).capabilities
    }

    /// What serves what is offered.
    pub(super) fn method_sets(&self) -> MethodSets {
        self.advertise(Nature::Fixed, self.method_sets).method_sets
    }

    /// What is advertised; if nothing is yet, then what follows from this.
    fn advertise(&self, nature: Nature, method_sets: MethodSets) -> &Advertised {
        self.advertised.get_or_init(|| Advertised {
            capabilities: capabilities(&self.snapshot(), nature),
            nature,
            method_sets,
        })
    }

    /// From now on what is offered may change.
    pub(super) fn open_registry(&self) -> Result<(), Error> {
        if self.advertise(Nature::Changing, MethodSets::all()).nature == Nature::Fixed {
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
    pub(super) fn has_rules_for(&self, found: &FoundResource) -> bool {
        match found {
            FoundResource::Resource(resource) => self.rules.concern(&***resource),
            FoundResource::Template(template, _) => self.rules.concern(&***template),
        }
    }

    /// Whether whoever sends this request may know of what a URI leads to.
    pub(super) fn shows(&self, found: &FoundResource, ctx: &Ctx) -> bool {
        match found {
            FoundResource::Resource(resource) => self.rules.show(&***resource, ctx),
            FoundResource::Template(template, _) => self.rules.show(&***template, ctx),
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
    pub(crate) fn finish<T: Encode>(&self, result: &T, revision: Revision) -> Raw {
        self.finish_sized(result, revision, 0)
    }

    /// [`finish`](App::finish) for a result whose text is known to be about `size` bytes.
    pub(crate) fn finish_sized<T: Encode>(
        &self,
        result: &T,
        revision: Revision,
        size: usize,
    ) -> Raw {
        let mut text = Vec::with_capacity(size + self.tail.len() + 192);
        write_at(result, revision, &mut text);
        self.with_tail(text, revision)
    }

    /// The part of [`finish_sized`](App::finish_sized) that is the same for every type.
    fn with_tail(&self, mut text: Vec<u8>, revision: Revision) -> Raw {
        if revision.has_server_info() && text.pop_if(|last| *last == b'}').is_some() {
            if text.last() != Some(&b'{') {
                text.push(b',');
            }
            text.extend_from_slice(&self.tail);
        }
        Raw::from_encoded(text).unwrap_or_else(Raw::empty_object)
    }

    /// The server's name, where the revision has a place for it.
    pub(super) fn name_in(&self, meta: &mut Meta, revision: Revision) {
        if revision.has_server_info() {
            meta.set_server_info(&self.info);
        }
    }
}

/// What follows from what is offered, or from what may come.
fn capabilities(snapshot: &RegistrySnapshot, nature: Nature) -> ServerCapabilities {
    let open = nature == Nature::Changing;
    let mut capabilities = ServerCapabilities::new();
    capabilities.logging = Some(Raw::empty_object());
    if open || snapshot.has_tools() {
        let mut tools = ToolsCapability::new();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
    }
    if open || snapshot.has_prompts() {
        let mut prompts = PromptsCapability::new();
        prompts.list_changed = Some(true);
        capabilities.prompts = Some(prompts);
    }
    if open || snapshot.has_resources() {
        let mut resources = ResourcesCapability::new();
        resources.list_changed = Some(true);
        resources.subscribe = Some(true);
        capabilities.resources = Some(resources);
    }
    if open || snapshot.has_completers() {
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
