//! The arguments that a call of a tool repeats in HTTP headers, as listings have declared them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::protocol::param_headers::Annotations;
use turnbuckle_types::{Raw, Tool, jsonrpc::Params};

/// How many tools are kept. Others are called without headers, and listed again when refused.
const MOST: usize = 10_000;

/// The annotations of all listed tools that have any.
#[derive(Default)]
pub(crate) struct ParamHeaderTable(Mutex<HashMap<String, Annotations>>);

impl ParamHeaderTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Annotations>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from a listing, and removes the tools whose annotations are invalid from it.
    pub(crate) fn learn(&self, tools: &mut Vec<Tool>) {
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

    /// Returns the headers for a call with these params.
    pub(crate) fn headers(&self, tool: &str, params: &str) -> Vec<(String, String)> {
        let Some(annotations) = self.lock().get(tool).cloned() else { return Vec::new() };
        let arguments = Raw::from_json(params.to_owned())
            .ok()
            .and_then(|raw| Params::of(raw).ok())
            .and_then(|params| params.arguments);
        annotations.headers(arguments.as_ref().map_or("{}", Raw::as_str))
    }
}
