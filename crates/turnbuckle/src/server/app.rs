//! Owns what all connections of a server share: the checked tools, the answers that never
//! change. Does not own anything of one connection.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use turnbuckle_types::{
    DiscoverResult, Encode, Era, Implementation, InitializeResult, ListToolsResult, Meta, Raw,
    Revision, ServerCapabilities, ToolsCapability, write_at,
};

#[cfg(feature = "http")]
use crate::envelope::annotations::Annotations;

use super::{
    Server, changes::Changes, extract::States, listing::listed, structured::Structured, tool::Tool,
};

/// A server that was found sound.
pub(super) struct App {
    info: Implementation,
    instructions: Option<String>,
    pub(super) tools: HashMap<String, Arc<Tool>>,
    /// The same tools, as they were registered.
    listing: Vec<Arc<Tool>>,
    pub(super) states: Arc<States>,
    pub(super) changes: Changes,
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
        let mut problems = Vec::new();
        let (mut tools, mut listing) = (HashMap::new(), Vec::new());
        for tool in &server.tools {
            let name = tool.name();
            problems
                .extend(tool.problems.iter().map(|problem| format!("tool `{name}`: {problem}")));
            for (id, state) in &tool.needs {
                if !server.states.has(*id) {
                    problems.push(format!("tool `{name}` takes State<{state}>, which the server was not given: call .state(…)"));
                }
            }
            let structured = Structured::of(tool.spec.output_schema.as_ref());
            let checked = Tool { structured, ..tool.clone() };
            #[cfg(feature = "http")]
            let checked = Tool {
                repeated: Annotations::of(tool.spec.input_schema.as_str()).unwrap_or_else(|why| {
                    problems.push(format!("tool `{name}`: {why}"));
                    Annotations::default()
                }),
                ..checked
            };
            let checked = Arc::new(checked);
            listing.push(checked.clone());
            if tools.insert(name.to_owned(), checked).is_some() {
                problems.push(format!("there are two tools named `{name}`"));
            }
        }
        if !problems.is_empty() {
            return Err(problems.join("; "));
        }
        Ok(App {
            info: server.info.clone(),
            instructions: server.instructions.clone(),
            tools,
            listing,
            states: Arc::new(server.states.clone()),
            changes: server.changes.clone(),
            capabilities: capabilities(server),
            listeners: server.limits.listeners,
            lists: Default::default(),
            tail: tail(&server.info),
        })
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
            let tools = self.listing.iter().map(|tool| listed(tool, revision));
            self.finish(&ListToolsResult::new(tools.collect::<Vec<_>>()), revision)
        };
        self.lists[index].get_or_init(list).clone()
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

/// What follows from what was registered.
fn capabilities(server: &Server) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::new();
    capabilities.logging = Some(Raw::empty_object());
    if !server.tools.is_empty() {
        let mut tools = ToolsCapability::new();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
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
