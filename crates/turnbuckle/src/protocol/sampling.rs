//! Owns what must hold of a conversation with a model, and of what the model says. Does not own the
//! question, nor who answers it.
//!
//! Both sides use it: a server before it asks, a client before it has its model asked.

#[cfg(feature = "client")]
use turnbuckle_types::{CreateMessageResult, RpcError, SamplingContent, Tool, ToolChoiceMode};
use turnbuckle_types::{Role, SamplingBlock, SamplingMessage};

/// 2026-07-28 client/sampling §Message Content Constraints: tool results stand alone in a user's
/// message, and each call of a tool is answered by the next one, before anything else is said.
pub(crate) fn balanced(messages: &[SamplingMessage]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let what =
            |why: String| format!("the messages can't be sampled: number {} {why}", index + 1);
        let (uses, mut results, others) = sorted(message);
        match message.role {
            Role::Assistant if !results.is_empty() => {
                return Err(what("has a tool's result, which only a user's message has".into()));
            }
            Role::User if !uses.is_empty() => {
                return Err(what("calls a tool, which only an assistant's message does".into()));
            }
            _ => {}
        }
        if !results.is_empty() && others > 0 {
            return Err(what("has tools' results beside other content: they stand alone".into()));
        }
        for id in open.drain(..) {
            match results.iter().position(|result| *result == id) {
                Some(found) => drop(results.swap_remove(found)),
                None => return Err(what(format!("has no result for the call `{id}` before it"))),
            }
        }
        if let Some(id) = results.first() {
            return Err(what(format!("has a result for `{id}`, which is no call right before it")));
        }
        open = uses;
    }
    match open.first() {
        Some(id) => Err(format!("the messages can't be sampled: nothing answers the call `{id}`")),
        None => Ok(()),
    }
}

/// The ids of a message's calls and of its results, and how many other blocks it has.
fn sorted(message: &SamplingMessage) -> (Vec<&str>, Vec<&str>, usize) {
    let (mut uses, mut results, mut others) = (Vec::new(), Vec::new(), 0);
    for block in message.content.blocks() {
        match block {
            SamplingBlock::ToolUse(call) => uses.push(&*call.id),
            SamplingBlock::ToolResult(result) => results.push(&*result.tool_use_id),
            _ => others += 1,
        }
    }
    (uses, results, others)
}

/// What a model may do about the tools that it is shown.
#[cfg(feature = "client")]
#[derive(Debug)]
pub(crate) struct OfferedTools {
    /// Their names; `None` if the question has no tools.
    tools: Option<Vec<String>>,
    choice: Option<ToolChoiceMode>,
}

#[cfg(feature = "client")]
impl OfferedTools {
    pub(crate) fn new(tools: Option<&[Tool]>, choice: Option<ToolChoiceMode>) -> OfferedTools {
        let names = |tools: &[Tool]| tools.iter().map(|tool| tool.name.clone()).collect();
        OfferedTools { tools: tools.map(names), choice }
    }

    /// The answer as it is sent, if it is one to this. 2026-07-28 client/sampling §Message Content
    /// Constraints.
    pub(crate) fn answered(
        &self,
        mut answer: CreateMessageResult,
    ) -> Result<CreateMessageResult, RpcError> {
        let unfit =
            |why: String| RpcError::internal(format!("the model's answer can't be sent: {why}"));
        self.check(&answer).map_err(unfit)?;
        // A list of one says the same as the one.
        if let (None, SamplingContent::Many(blocks)) = (&self.tools, &mut answer.content) {
            match blocks.pop() {
                Some(only) if blocks.is_empty() => answer.content = SamplingContent::from(only),
                _ => return Err(unfit("without tools it is one block".into())),
            }
        }
        Ok(answer)
    }

    fn check(&self, answer: &CreateMessageResult) -> Result<(), String> {
        for block in answer.content.blocks() {
            match block {
                SamplingBlock::ToolResult(_) => {
                    return Err("it has a tool's result, which the server gives the model".into());
                }
                SamplingBlock::ToolUse(call) => {
                    let name = &call.name;
                    if answer.role != Role::Assistant {
                        return Err(
                            "it calls a tool, which only an assistant's message does".into()
                        );
                    }
                    if !self.tools.iter().flatten().any(|tool| tool == name) {
                        return Err(format!("it calls the tool `{name}`, which was not offered"));
                    }
                    if self.choice == Some(ToolChoiceMode::None) {
                        return Err(format!("it calls the tool `{name}`, and must not call any"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
