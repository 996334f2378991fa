//! Keeps the facts of tool listings that matter when a tool is called: whether a call may be repeated,
//! and the schema of its output. Never lists tools itself.

#[cfg(feature = "http")]
pub(crate) mod param_headers;
#[cfg(feature = "validate")]
mod validate;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{client::connection::Twice, error::Error};
use turnbuckle_types::{CallToolResult, Raw, Revision, StructuredOutput, Tool};

#[cfg(feature = "validate")]
pub use validate::Validate;

/// How many tools are kept.
const MOST: usize = 10_000;
/// The most text of schemas that is kept, in bytes.
const MOST_TEXT: usize = 16 * 1024 * 1024;

/// Whether the schemas of output are kept: only the feature `validate` has a use for them.
const KEEPS_SCHEMAS: bool = cfg!(feature = "validate");

/// Checks a result by a compiled schema.
pub(super) type OutputRule = Arc<dyn Fn(&CallToolResult) -> Result<(), String> + Send + Sync>;
/// Compiles the schema of a tool's output.
pub(super) type CompileOutput = fn(&Raw) -> Result<OutputRule, String>;

/// The listed tools, as far as they have such parts.
#[derive(Default)]
pub(crate) struct KnownTools {
    /// Whether there are any.
    any: AtomicBool,
    tools: Mutex<ToolTable>,
}

#[derive(Default)]
struct ToolTable {
    tools: HashMap<String, Arc<KnownTool>>,
    /// Invariant: the bytes of all schemas in `tools`.
    text: usize,
}

/// The listing of one tool.
pub(super) struct KnownTool {
    pub(super) twice: Twice,
    output: Option<OutputSchemaText>,
}

impl KnownTools {
    fn lock(&self) -> MutexGuard<'_, ToolTable> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from a page of a listing. Schemas are compiled when they are first used.
    pub(super) fn learn(&self, tools: &[Tool], revision: Revision) {
        let mut kept = self.lock();
        for tool in tools {
            kept.learn(tool, revision);
        }
        self.any.store(!kept.tools.is_empty(), Ordering::Release);
    }

    /// Forgets all tools: the server may be another one.
    #[cfg(feature = "http")]
    pub(super) fn forget(&self) {
        *self.lock() = ToolTable::default();
        self.any.store(false, Ordering::Release);
    }

    /// Returns the listing of a tool.
    pub(super) fn tool(&self, name: &str) -> Option<Arc<KnownTool>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.lock().tools.get(name).cloned()
    }
}

impl ToolTable {
    fn learn(&mut self, tool: &Tool, revision: Revision) {
        let twice = twice(tool);
        let schema = output_schema(tool, revision).filter(|_| KEEPS_SCHEMAS);
        let known = self.tools.get(&tool.name);
        if known.is_some_and(|known| known.twice == twice && known.schema() == schema) {
            // Keeps the compiled schema.
            return;
        }
        if let Some(known) = self.tools.remove(&tool.name) {
            self.text -= known.schema().map_or(0, str::len);
        }
        let schema = schema.filter(|text| self.text + text.len() <= MOST_TEXT);
        if self.tools.len() < MOST && (schema.is_some() || twice == Twice::Harmless) {
            self.text += schema.map_or(0, str::len);
            let output = schema.map(|text| OutputSchemaText {
                tool: tool.name.as_str().into(),
                text: text.into(),
                rule: OnceLock::new(),
            });
            self.tools.insert(tool.name.clone(), Arc::new(KnownTool { twice, output }));
        }
    }
}

/// Returns the hint of the tool's annotations, which a call may choose to trust.
fn twice(tool: &Tool) -> Twice {
    let harmless = tool.annotations.as_ref().is_some_and(|annotations| {
        annotations.read_only_hint == Some(true) || annotations.idempotent_hint == Some(true)
    });
    if harmless { Twice::Harmless } else { Twice::Unknown }
}

/// Returns the text of the output schema, if the revision has such a thing.
fn output_schema(tool: &Tool, revision: Revision) -> Option<&str> {
    let exists = revision.structured_output() != StructuredOutput::None;
    tool.output_schema.as_ref().filter(|_| exists).map(Raw::as_str)
}

/// The schema of a tool's output, compiled when it is first needed.
struct OutputSchemaText {
    tool: Box<str>,
    /// A copy, so that it does not keep a whole page in memory.
    text: Box<str>,
    /// `None` inside if the schema cannot be used.
    rule: OnceLock<Option<OutputRule>>,
}

impl OutputSchemaText {
    /// A schema that cannot be used turns off the check of its own tool, and of no other.
    fn rule(&self, compile: CompileOutput) -> Option<&OutputRule> {
        let compiled = self.rule.get_or_init(|| {
            let schema = Raw::from_json(&*self.text).ok()?;
            let unusable = |error| {
                tracing::warn!(tool = &*self.tool, error, "structured output is not validated");
            };
            compile(&schema).map_err(unusable).ok()
        });
        compiled.as_ref()
    }
}

impl KnownTool {
    fn schema(&self) -> Option<&str> {
        self.output.as_ref().map(|output| &*output.text)
    }

    /// Hands a result on if it fits the schema that the listing gave.
    pub(super) fn checked(
        &self,
        result: CallToolResult,
        compile: CompileOutput,
    ) -> crate::Result<CallToolResult> {
        let Some(output) = &self.output else { return Ok(result) };
        match output.rule(compile).map(|rule| rule(&result)) {
            None | Some(Ok(())) => Ok(result),
            Some(Err(why)) => {
                let tool = &output.tool;
                let message = format!(
                    "the result of the tool `{tool}` does not fit its output schema: {why}"
                );
                Err(Error::protocol(message).with_tool_result(result))
            }
        }
    }
}

#[cfg(test)]
mod tests;
