//! The parts of a listing that matter when a tool is called: whether it may be retried, and the schema
//! of its output. The client never lists tools for this.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use turnbuckle_types::{Revision, Tool};

use super::supervise::Twice;

/// How many tools are kept.
const MOST: usize = 10_000;
/// How many bytes of schemas are kept.
#[cfg(feature = "validate")]
const MOST_TEXT: usize = 16 * 1024 * 1024;

/// Whether structured output is checked against the schema of its tool.
///
/// ```
/// use turnbuckle::{Client, Validate};
/// let builder = Client::builder().validate_output(Validate::Never);
/// # let _ = builder;
/// ```
#[cfg(feature = "validate")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Validate {
    /// Checks it if the tool was listed on this connection with a usable schema. Output that does
    /// not match, or is missing, fails the call.
    #[default]
    IfKnown,
    /// Never checks it.
    Never,
}

/// The listed tools, as far as they have such parts.
#[derive(Default)]
pub(super) struct KnownTools {
    /// Whether there are any.
    any: AtomicBool,
    tools: Mutex<ToolTable>,
}

#[derive(Default)]
struct ToolTable {
    tools: HashMap<String, Arc<KnownTool>>,
    /// Invariant: the bytes of all schemas in `tools`.
    #[cfg(feature = "validate")]
    text: usize,
}

/// The listing of one tool.
pub(super) struct KnownTool {
    pub(super) twice: Twice,
    #[cfg(feature = "validate")]
    output: Option<output::Promised>,
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
        #[cfg(feature = "validate")]
        {
            let promised = output::schema(tool, revision);
            let known = self.tools.get(&tool.name);
            if known.is_some_and(|known| known.twice == twice && known.promises(promised)) {
                // Its compiled schema stays.
                return;
            }
            self.forget(&tool.name);
            let room = self.tools.len() < MOST;
            let promised = promised.filter(|text| self.text + text.len() <= MOST_TEXT);
            if room && (promised.is_some() || twice == Twice::Harmless) {
                self.text += promised.map_or(0, str::len);
                let output = promised.map(|text| output::Promised::new(&tool.name, text));
                self.tools.insert(tool.name.clone(), Arc::new(KnownTool { twice, output }));
            }
        }
        #[cfg(not(feature = "validate"))]
        {
            let _ = revision;
            self.tools.remove(&tool.name);
            if self.tools.len() < MOST && twice == Twice::Harmless {
                self.tools.insert(tool.name.clone(), Arc::new(KnownTool { twice }));
            }
        }
    }

    #[cfg(feature = "validate")]
    fn forget(&mut self, name: &str) {
        if let Some(known) = self.tools.remove(name) {
            self.text -= known.output.as_ref().map_or(0, |promised| promised.text().len());
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

#[cfg(feature = "validate")]
mod output {
    //! The schema of a tool's output, compiled when it is first used.

    use std::sync::OnceLock;

    use turnbuckle_types::{CallToolResult, Raw, Revision, StructuredOutput, Tool};

    use super::KnownTool;
    use crate::{
        error::{Error, Result},
        json_schema::OutputCheck,
    };

    pub(super) struct Promised {
        tool: Box<str>,
        text: Box<str>,
        /// `None` inside if it can't be used.
        check: OnceLock<Option<OutputCheck>>,
    }

    /// The text of the schema, where the revision has such a thing.
    pub(super) fn schema(tool: &Tool, revision: Revision) -> Option<&str> {
        let exists = revision.structured_output() != StructuredOutput::None;
        tool.output_schema.as_ref().filter(|_| exists).map(Raw::as_str)
    }

    impl Promised {
        /// The text is copied, so that it does not keep a whole page in memory.
        pub(super) fn new(tool: &str, text: &str) -> Promised {
            Promised { tool: tool.into(), text: text.into(), check: OnceLock::new() }
        }

        pub(super) fn text(&self) -> &str {
            &self.text
        }

        /// A schema that is not usable disables the check of its tool.
        fn check(&self) -> Option<&OutputCheck> {
            let compiled = self.check.get_or_init(|| {
                let schema = Raw::from_json(&*self.text).ok()?;
                let unusable = |error| {
                    tracing::warn!(tool = &*self.tool, %error, "structured output is not checked");
                };
                OutputCheck::compile(&schema).map_err(unusable).ok()
            });
            compiled.as_ref()
        }
    }

    impl KnownTool {
        pub(super) fn promises(&self, schema: Option<&str>) -> bool {
            self.output.as_ref().map(Promised::text) == schema
        }

        /// Returns the result if it matches the listed schema.
        pub(crate) fn checked(&self, result: CallToolResult) -> Result<CallToolResult> {
            let check = self.output.as_ref().and_then(|promised| promised.check());
            match check.map(|check| check.check(&result)) {
                None | Some(Ok(())) => Ok(result),
                Some(Err(why)) => {
                    let tool = self.output.as_ref().map_or("", |promised| &*promised.tool);
                    let message = format!(
                        "the result of the tool `{tool}` does not match its listed schema: {why}"
                    );
                    Err(Error::protocol(message).with_tool_result(result))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
