//! Sampling: what a server asks the client's model, and what comes back.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use crate::{
    At, AudioContent, ContentBlock, Encode, ImageContent, Meta, Raw, Role, TaskMetadata,
    TextContent, Tool, wire::legacy,
};

model! {
    /// The params of `sampling/createMessage`.
    ///
    /// ```
    /// use turnbuckle_types::{CreateMessage, Role, SamplingMessage, TextContent};
    /// let ask = SamplingMessage::new(Role::User, TextContent::new("Capital of France?"));
    /// let request = CreateMessage::new([ask], 100);
    /// assert_eq!(request.max_tokens, 100);
    /// ```
    pub struct CreateMessage {
        required {
            /// The conversation so far. Before 2025-11-25 a message has one block; for
            /// those, one with several is written as several messages.
            #[write(legacy::write_messages)]
            messages("messages"): Vec<SamplingMessage>,
            /// How much may be generated.
            max_tokens("maxTokens"): i64,
        }
        optional {
            /// Which model is wanted.
            model_preferences("modelPreferences"): Option<ModelPreferences>,
            /// A system prompt, which the client may change or leave out.
            system_prompt("systemPrompt"): Option<String>,
            /// What else the model should see.
            include_context("includeContext"): Option<IncludeContext>,
            /// How free the model is.
            temperature("temperature"): Option<f64>,
            /// What ends the generation.
            stop_sequences("stopSequences"): Option<Vec<String>>,
            /// For the model's provider: an object.
            metadata("metadata"): Option<Raw>,
            /// Tools that the model may use.
            #[since(V2025_11_25)]
            tools("tools"): Option<Vec<Tool>>,
            /// Whether it may, must or must not.
            #[since(V2025_11_25)]
            tool_choice("toolChoice"): Option<ToolChoice>,
            /// Asks that this becomes a task.
            #[since(V2025_11_25)]
            #[until(V2025_11_25)]
            task("task"): Option<TaskMetadata>,
            /// Metadata.
            #[until(V2025_11_25)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `sampling/createMessage`.
    ///
    /// ```
    /// use turnbuckle_types::{CreateMessageResult, Role, TextContent};
    /// let said = CreateMessageResult::new(Role::Assistant, TextContent::new("Paris."), "a-model");
    /// assert_eq!(said.content.blocks().len(), 1);
    /// ```
    pub struct CreateMessageResult {
        required {
            /// Who says it.
            role("role"): Role,
            /// What is said.
            content("content"): SamplingContent,
            /// The model that said it.
            model("model"): String,
        }
        optional {
            /// Why it ended: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or what
            /// the provider calls it.
            stop_reason("stopReason"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

impl CreateMessageResult {
    /// The text of all text blocks, joined.
    ///
    /// ```
    /// use turnbuckle_types::{CreateMessageResult, Role, TextContent};
    /// let said = CreateMessageResult::new(Role::Assistant, TextContent::new("Paris."), "a-model");
    /// assert_eq!(said.to_text(), "Paris.");
    /// ```
    pub fn to_text(&self) -> String {
        let texts = self.content.blocks().iter().filter_map(|block| match block {
            SamplingBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

model! {
    /// A message to or from a model.
    pub struct SamplingMessage {
        required {
            /// Who says it.
            role("role"): Role,
            /// What is said.
            content("content"): SamplingContent,
        }
        optional {
            /// Metadata.
            #[since(V2025_11_25)]
            meta("_meta"): Meta,
        }
    }
}

/// One block, or since 2025-11-25 several.
///
/// ```
/// use turnbuckle_types::{SamplingContent, TextContent};
/// let one = SamplingContent::from(TextContent::new("hi"));
/// assert_eq!(one.blocks().len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SamplingContent {
    /// A block that stands alone.
    One(Box<SamplingBlock>),
    /// A list of blocks.
    Many(Vec<SamplingBlock>),
}

impl SamplingContent {
    /// The blocks, however they were written.
    pub fn blocks(&self) -> &[SamplingBlock] {
        match self {
            SamplingContent::One(block) => std::slice::from_ref(block),
            SamplingContent::Many(blocks) => blocks,
        }
    }
}

impl<T: Into<SamplingBlock>> From<T> for SamplingContent {
    fn from(block: T) -> SamplingContent {
        SamplingContent::One(Box::new(block.into()))
    }
}

impl From<Vec<SamplingBlock>> for SamplingContent {
    fn from(blocks: Vec<SamplingBlock>) -> SamplingContent {
        SamplingContent::Many(blocks)
    }
}

impl Encode for SamplingContent {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        match self {
            SamplingContent::One(block) => block.write(at, out),
            SamplingContent::Many(blocks) => legacy::write_blocks(blocks, at, out),
        }
    }
}

serialize!(SamplingContent);

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SamplingContentVisitor)
    }
}

struct SamplingContentVisitor;

impl<'de> Visitor<'de> for SamplingContentVisitor {
    type Value = SamplingContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content block or an array of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<SamplingContent, A::Error> {
        let block = SamplingBlock::deserialize(MapAccessDeserializer::new(access))?;
        Ok(SamplingContent::from(block))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<SamplingContent, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = access.next_element()? {
            blocks.push(block);
        }
        Ok(SamplingContent::Many(blocks))
    }
}

tagged! {
    /// A piece of what a model reads or writes.
    ///
    /// ```
    /// use serde_json::json;
    /// use turnbuckle_types::{Raw, Revision, SamplingBlock, ToolUseContent};
    /// let block = SamplingBlock::from(ToolUseContent::new("1", "weather", json!({"city": "Paris"})));
    /// let old = Raw::at(&block, Revision::V2025_06_18);
    /// assert_eq!(old.as_str(), r#"{"type":"text","text":"[tool use: weather]"}"#);
    /// ```
    pub enum SamplingBlock by "type" {
        /// Text.
        Text(TextContent) = "text",
        /// An image.
        Image(ImageContent) = "image",
        /// Sound.
        #[since(V2025_03_26, legacy::audio_as_text)]
        Audio(AudioContent) = "audio",
        /// The model wants a tool to be called.
        #[since(V2025_11_25, legacy::tool_use_as_text)]
        ToolUse(ToolUseContent) = "tool_use",
        /// What a tool returned.
        #[since(V2025_11_25, legacy::tool_result_as_text)]
        ToolResult(ToolResultContent) = "tool_result",
    }
}

impl From<TextContent> for SamplingBlock {
    fn from(content: TextContent) -> SamplingBlock {
        SamplingBlock::Text(content)
    }
}

impl From<ImageContent> for SamplingBlock {
    fn from(content: ImageContent) -> SamplingBlock {
        SamplingBlock::Image(content)
    }
}

impl From<AudioContent> for SamplingBlock {
    fn from(content: AudioContent) -> SamplingBlock {
        SamplingBlock::Audio(content)
    }
}

impl From<ToolUseContent> for SamplingBlock {
    fn from(content: ToolUseContent) -> SamplingBlock {
        SamplingBlock::ToolUse(content)
    }
}

impl From<ToolResultContent> for SamplingBlock {
    fn from(content: ToolResultContent) -> SamplingBlock {
        SamplingBlock::ToolResult(content)
    }
}

model! {
    /// A call that the model wants.
    pub struct ToolUseContent {
        tag("type") = "tool_use";
        required {
            /// What the result refers to.
            id("id"): String,
            /// The tool.
            name("name"): String,
            /// Its arguments, an object.
            input("input"): Raw,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// What a call that the model wanted has returned.
    pub struct ToolResultContent {
        tag("type") = "tool_result";
        required {
            /// The id of the call.
            tool_use_id("toolUseId"): String,
            /// What the model reads.
            content("content"): Vec<ContentBlock>,
        }
        optional {
            /// What programs read. Until 2025-11-25 it must be an object; for those, any
            /// other value is left out.
            #[when(legacy::is_object)]
            structured_content("structuredContent"): Option<Raw>,
            /// The tool failed, and `content` says why.
            is_error("isError"): Option<bool>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// Which model a server would like.
    pub struct ModelPreferences {
        optional {
            /// Models by name, the most wanted first.
            hints("hints"): Option<Vec<ModelHint>>,
            /// How much a low price matters, from 0 to 1.
            cost_priority("costPriority"): Option<f64>,
            /// How much speed matters, from 0 to 1.
            speed_priority("speedPriority"): Option<f64>,
            /// How much intelligence matters, from 0 to 1.
            intelligence_priority("intelligencePriority"): Option<f64>,
        }
    }
}

model! {
    /// A model, by its name or a part of it.
    pub struct ModelHint {
        optional {
            /// The name or a part of it.
            name("name"): Option<String>,
        }
    }
}

model! {
    /// Whether the model uses tools.
    pub struct ToolChoice {
        optional {
            /// Absent means [`ToolChoiceMode::Auto`].
            mode("mode"): Option<ToolChoiceMode>,
        }
    }
}

keywords! {
    /// Whether the model uses tools.
    pub enum ToolChoiceMode {
        /// If it likes.
        Auto = "auto",
        /// It must.
        Required = "required",
        /// It must not.
        None = "none",
    }
}

keywords! {
    /// What a model sees besides the messages. Deprecated but for `None`.
    pub enum IncludeContext {
        /// Nothing.
        None = "none",
        /// What the asking server has said before.
        ThisServer = "thisServer",
        /// What all servers have said before.
        AllServers = "allServers",
    }
}
