//! Owns which arguments of the server's tools are repeated in headers, as far as this client
//! has been told. Does not own the annotations' rules, nor the headers.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use turnbuckle_types::{Raw, Tool, jsonrpc::Params};

use crate::envelope::annotations::Annotations;

/// The most tools that are kept. Others are called without, and asked about when refused.
const MOST: usize = 10_000;

/// What the listings said so far. Only tools with annotations are in it.
#[derive(Default)]
pub(super) struct Repeated(Mutex<HashMap<String, Annotations>>);

impl Repeated {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Annotations>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from a listing, and takes out of it the tools that must not be used.
    pub(super) fn learn(&self, tools: &mut Vec<Tool>) {
        let mut known = self.lock();
        tools.retain(|tool| match Annotations::of(tool.input_schema.as_str()) {
            Ok(annotations) => {
                if annotations.is_empty() {
                    known.remove(&tool.name);
                } else if known.len() < MOST || known.contains_key(&tool.name) {
                    known.insert(tool.name.clone(), annotations);
                }
                true
            }
            Err(reason) => {
                known.remove(&tool.name);
                tracing::warn!(
                    tool = tool.name,
                    reason,
                    "a tool is left out: its x-mcp-header annotations are invalid"
                );
                false
            }
        });
    }

    /// The headers for a call with these params.
    pub(super) fn headers(&self, tool: &str, params: &str) -> Vec<(String, String)> {
        let Some(annotations) = self.lock().get(tool).cloned() else { return Vec::new() };
        let arguments = Raw::from_json(params.to_owned())
            .ok()
            .and_then(|raw| Params::of(raw).ok())
            .and_then(|params| params.arguments);
        annotations.headers(arguments.as_ref().map_or("{}", Raw::as_str))
    }
}
