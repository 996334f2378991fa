//! Owns what the older revisions get where leaving a member out is not enough.
//! Does not own the members that are left out: their `since` and `until` marks do.
//!
//! | what | before | is written as |
//! |---|---|---|
//! | audio block | 2025-03-26 | text that names it |
//! | resource link | 2025-06-18 | text that names it |
//! | tool use, tool result block | 2025-11-25 | text that names it |
//! | a message of several blocks | 2025-11-25 | several messages of one block |
//! | a result of several blocks | 2025-11-25 | one text |
//! | a page to visit | 2025-11-25 | a form without fields that names the page |
//! | a choice with titles, or of several | 2025-11-25 | a choice of one, with `enumNames` |
//! | `elicitation` without forms | 2025-11-25 | nothing |
//! | `elicitationId`, if absent | (2025-11-25 only) | the URL |
//! | structured content, output schema that is no object | 2026-07-28 | nothing: a server that has some wraps it first |

use serde::Deserialize;

use super::{At, Encode, json, read::Word};
use crate::{
    AudioContent, Choice, ElicitForm, ElicitSchema, ElicitUrl, ElicitationCapability, Meta, Named,
    PrimitiveSchema, Raw, ResourceLink, Revision, SamplingBlock, SamplingMessage, SelectSchema,
    TextContent, ToolResultContent, ToolUseContent,
};

pub(crate) fn audio_as_text(audio: &AudioContent) -> TextContent {
    let text = TextContent::new(["[audio: ", &audio.mime_type, "]"].concat());
    TextContent { annotations: audio.annotations.clone(), ..text }
}

pub(crate) fn link_as_text(link: &ResourceLink) -> TextContent {
    let text = TextContent::new(["[resource: ", &link.name, " at ", &link.uri, "]"].concat());
    TextContent { annotations: link.annotations.clone(), ..text }
}

pub(crate) fn tool_use_as_text(call: &ToolUseContent) -> TextContent {
    TextContent::new(["[tool use: ", &call.name, "]"].concat())
}

pub(crate) fn tool_result_as_text(result: &ToolResultContent) -> TextContent {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    let text = texts.collect::<Vec<_>>().join("\n");
    TextContent::new(["[tool result] ", &text].concat())
}

/// Messages, each with as many blocks as the revision allows.
pub(crate) fn write_messages(messages: &Vec<SamplingMessage>, at: At, out: &mut Vec<u8>) {
    if at.since(Revision::V2025_11_25) {
        return messages.write(at, out);
    }
    let singles = messages.iter().flat_map(|message| {
        message.content.blocks().iter().map(|block| SamplingMessage {
            role: message.role,
            content: block.clone().into(),
            meta: Meta::new(),
            extra: message.extra.clone(),
        })
    });
    json::write_array(singles, at, out);
}

/// A list of blocks, where there can be one.
pub(crate) fn write_blocks(blocks: &[SamplingBlock], at: At, out: &mut Vec<u8>) {
    match blocks {
        _ if at.since(Revision::V2025_11_25) => blocks.write(at, out),
        [block] => block.write(at, out),
        _ => {
            let texts: Vec<String> = blocks.iter().map(block_as_text).collect();
            TextContent::new(texts.join("\n")).write(at, out);
        }
    }
}

fn block_as_text(block: &SamplingBlock) -> String {
    match block {
        SamplingBlock::Text(text) => text.text.clone(),
        SamplingBlock::Image(image) => ["[image: ", &image.mime_type, "]"].concat(),
        SamplingBlock::Audio(audio) => audio_as_text(audio).text,
        SamplingBlock::ToolUse(call) => tool_use_as_text(call).text,
        SamplingBlock::ToolResult(result) => tool_result_as_text(result).text,
        SamplingBlock::Other(raw) => raw.as_str().to_owned(),
    }
}

/// A page to visit, where there are only forms.
pub(crate) fn write_page(page: &ElicitUrl, at: At, out: &mut Vec<u8>) {
    if at.since(Revision::V2025_11_25) {
        return page.write(at, out);
    }
    let message = [&page.message, " (", &page.url, ")"].concat();
    let form = ElicitForm::new(message, ElicitSchema::new(Named::new()));
    ElicitForm { meta: page.meta.clone(), extra: page.extra.clone(), ..form }.write(at, out);
}

/// 2025-11-25 can't do without an id, and a URL names its page as well as anything.
pub(crate) fn elicitation_id(page: &ElicitUrl, at: At) -> Option<String> {
    (at == At::Revision(Revision::V2025_11_25)).then(|| page.url.clone())
}

/// The one kind of choice that there is before 2025-11-25; `None` where the schema is
/// written as it stands.
pub(crate) fn plain_select(schema: &PrimitiveSchema, at: At) -> Option<SelectSchema> {
    if at.since(Revision::V2025_11_25) {
        return None;
    }
    let (values, names, title, description) = match schema {
        PrimitiveSchema::TitledSelect(select) => {
            let (values, names) = split(&select.one_of);
            (values, Some(names), &select.title, &select.description)
        }
        PrimitiveSchema::MultiSelect(select) => {
            (select.items.values.clone(), None, &select.title, &select.description)
        }
        PrimitiveSchema::TitledMultiSelect(select) => {
            let (values, names) = split(&select.items.any_of);
            (values, Some(names), &select.title, &select.description)
        }
        _ => return None,
    };
    Some(SelectSchema {
        enum_names: names,
        title: title.clone(),
        description: description.clone(),
        ..SelectSchema::new(values)
    })
}

fn split(choices: &[Choice]) -> (Vec<String>, Vec<String>) {
    choices.iter().map(|choice| (choice.value.clone(), choice.title.clone())).unzip()
}

/// Before 2025-11-25 the capability means forms, and only them.
pub(crate) fn has_forms(capability: &Option<ElicitationCapability>, at: At) -> bool {
    at.since(Revision::V2025_11_25)
        || capability.as_ref().is_none_or(|known| known.form.is_some() || known.url.is_none())
}

/// Before 2026-07-28 structured content is an object.
pub(crate) fn is_object(value: &Option<Raw>, at: At) -> bool {
    at.since(Revision::V2026_07_28) || value.as_ref().is_none_or(Raw::is_object)
}

/// Before 2026-07-28 an output schema describes an object.
pub(crate) fn is_object_schema(schema: &Option<Raw>, at: At) -> bool {
    #[derive(Deserialize)]
    struct LegacyRoot<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<Word<'a>>,
    }
    at.since(Revision::V2026_07_28)
        || schema.as_ref().is_none_or(|schema| {
            let root = schema.decode_borrowed::<LegacyRoot<'_>>().ok();
            root.and_then(|root| root.kind).is_some_and(|kind| kind.as_str() == "object")
        })
}
