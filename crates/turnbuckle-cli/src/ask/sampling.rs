//! A question for a model that a person answers: what is shown of it, and what is made of the line
//! that is typed.

use turnbuckle::{
    RpcError,
    types::{
        CreateMessage, CreateMessageResult, Role, SamplingBlock, SamplingMessage, TextContent,
        ToolChoiceMode,
    },
};

use super::{Step, indented};
use crate::output::{block_text, decoded_size, one_line};

/// Who says that it answered. Servers are told that no model did.
const MODEL: &str = "a person at a terminal";
/// What is shown of a text, of a conversation, and of a list of tools: its end may be the question.
const LETTERS: usize = 2_000;
const LINES: usize = 40;
const MESSAGES: usize = 20;
const TOOLS: usize = 50;
/// As clients tell servers that their user said no.
const REJECTED: i64 = -1;

/// A person answers with text, and calls no tools.
pub(super) fn is_possible(question: &CreateMessage) -> Result<(), RpcError> {
    let choice = question.tool_choice.as_ref().and_then(|choice| choice.mode.as_ref());
    match choice {
        Some(ToolChoiceMode::Required) => Err(RpcError::invalid_params(
            "`params.toolChoice`: a person answers, who calls no tools",
        )),
        _ => Ok(()),
    }
}

/// What is shown first.
pub(super) fn opening(server: &str, question: &CreateMessage) -> String {
    let mut text = format!("`{}` wants a model to answer this:\n", one_line(server));
    if let Some(prompt) = &question.system_prompt {
        text.push_str(&format!("system prompt:\n{}", bounded(prompt)));
    }
    let left_out = question.messages.len().saturating_sub(MESSAGES);
    if left_out > 0 {
        text.push_str(&format!("({left_out} earlier messages are not shown)\n"));
    }
    text.extend(question.messages.iter().skip(left_out).map(message));
    if let Some(tools) = question.tools.as_ref().filter(|tools| !tools.is_empty()) {
        let names = tools.iter().take(TOOLS).map(|tool| one_line(&cut(&tool.name).0));
        let names = names.collect::<Vec<_>>().join(", ");
        let more = if tools.len() > TOOLS { " …" } else { "" };
        text.push_str(&format!("It offers tools, which can't be used from here: {names}{more}\n"));
    }
    text.push_str(
        "Type the answer, which the server is given as a model's; Enter alone or Ctrl-D declines, \
         Ctrl-C cancels the call.\n> ",
    );
    text
}

/// What a line is answered with; `None` is the end of all lines.
pub(super) fn hear(typed: Option<&str>) -> Step<Result<CreateMessageResult, RpcError>> {
    Step::Done(match typed.map(str::trim).filter(|typed| !typed.is_empty()) {
        None => Err(RpcError::new(REJECTED, "the user declined to answer for a model")),
        Some(typed) => {
            let text = TextContent::new(typed);
            let mut answer = CreateMessageResult::new(Role::Assistant, text, MODEL);
            answer.stop_reason = Some("endTurn".to_owned());
            Ok(answer)
        }
    })
}

fn message(message: &SamplingMessage) -> String {
    let who = match message.role {
        Role::Assistant => "assistant",
        _ => "user",
    };
    let said: Vec<_> = message.content.blocks().iter().map(block).collect();
    format!("{who}:\n{}", bounded(&said.join("\n")))
}

fn block(block: &SamplingBlock) -> String {
    match block {
        SamplingBlock::Text(text) => text.text.clone(),
        SamplingBlock::Image(image) => {
            format!("[image: {}, {}]", image.mime_type, decoded_size(&image.data))
        }
        SamplingBlock::Audio(audio) => {
            format!("[audio: {}, {}]", audio.mime_type, decoded_size(&audio.data))
        }
        SamplingBlock::ToolUse(wanted) => {
            format!("[calls the tool {} with {}]", wanted.name, wanted.input.as_str())
        }
        SamplingBlock::ToolResult(result) => {
            let said: Vec<_> = result.content.iter().map(block_text).collect();
            format!("[a tool's result]\n{}", said.join("\n"))
        }
        _ => "[content of a kind that this program does not know]".to_owned(),
    }
}

/// A text of the server, with its length and its lines within bounds.
fn bounded(text: &str) -> String {
    let (shown, left_out) = cut(text);
    let mut shown = indented(&shown);
    if left_out > 0 {
        shown.push_str(&format!("({left_out} more characters are not shown)\n"));
    }
    shown
}

/// The beginning of a text, and how much of it that leaves out.
fn cut(text: &str) -> (String, usize) {
    let end = text.char_indices().nth(LETTERS).map_or(text.len(), |(at, _)| at);
    let last_line = text[..end].match_indices('\n').nth(LINES - 1);
    let end = last_line.map_or(end, |(at, _)| at);
    (text[..end].to_owned(), text[end..].chars().count())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(question: Value) -> String {
        opening("notes", &serde_json::from_value(question).unwrap())
    }

    #[test]
    fn all_that_a_model_would_see_is_shown() {
        let text = shown(json!({
            "systemPrompt": "Be brief.",
            "maxTokens": 10,
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Capital of France?\nIn a word."}},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "1", "name": "atlas", "input": {"of": "France"}}
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "toolUseId": "1", "content": [
                        {"type": "text", "text": "Paris"}
                    ]}
                ]},
                {"role": "user", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}}
            ],
            "tools": [{"name": "atlas", "inputSchema": {"type": "object"}}],
        }));
        let expected = "`notes` wants a model to answer this:\n\
            system prompt:\n  Be brief.\n\
            user:\n  Capital of France?\n  In a word.\n\
            assistant:\n  [calls the tool atlas with {\"of\":\"France\"}]\n\
            user:\n  [a tool's result]\n  Paris\n\
            user:\n  [image: image/png, 3 bytes]\n\
            It offers tools, which can't be used from here: atlas\n\
            Type the answer";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("\n> "), "{text}");
    }

    #[test]
    fn what_a_server_says_can_neither_play_tricks_nor_go_on_for_ever() {
        let say = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
        let mut messages = vec![say("x"); 500];
        messages.push(say(&format!("\u{1b}[2J{}", "y".repeat(1_000_000))));
        let tools: Vec<_> = (0..1_000)
            .map(|_| json!({"name": "\u{7}\n`notes` asks", "inputSchema": {"type": "object"}}))
            .collect();
        let text = shown(json!({"systemPrompt": "z\r".repeat(1_000_000), "maxTokens": 1,
            "messages": messages, "tools": tools}));
        let is_tame = |letter: char| letter == '\n' || !letter.is_control();
        assert!(text.chars().all(is_tame), "a control character is shown");
        assert!(text.contains("  \\u{1b}[2Jyyy"), "{text}");
        assert!(text.contains("(481 earlier messages are not shown)\n"), "{text}");
        assert!(text.contains("(998004 more characters are not shown)\n"), "{text}");
        assert!(text.len() < 50_000, "{}", text.len());
        let lines = shown(json!({"maxTokens": 1, "messages": [say(&"\n".repeat(100_000))]}));
        assert!(lines.lines().count() < 50, "{lines}");
        // What is the program's own stands at the edge, and nothing else does.
        let own = text.lines().filter(|line| line.starts_with('`')).count();
        assert_eq!(own, 1, "{text}");
    }

    #[test]
    fn a_line_is_the_answer_and_none_declines() {
        let Step::Done(Ok(answer)) = hear(Some(" Paris ")) else { panic!("no answer") };
        assert_eq!((answer.to_text(), answer.role), ("Paris".to_owned(), Role::Assistant));
        for nothing in [None, Some(""), Some("  ")] {
            let Step::Done(Err(error)) = hear(nothing) else { panic!("{nothing:?} is an answer") };
            assert_eq!(error.code, -1);
        }
    }

    #[test]
    fn who_insists_on_a_tool_is_refused() {
        let insists = |mode: &str| {
            let question = json!({"messages": [], "maxTokens": 1, "toolChoice": {"mode": mode}});
            is_possible(&serde_json::from_value(question).unwrap()).is_err()
        };
        assert!(insists("required"));
        assert!(!insists("auto") && !insists("none"));
    }
}
