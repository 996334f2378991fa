//! `turnbuckle call`: the arguments, the call, its result or failure.

use turnbuckle::{
    Client,
    types::{CallToolResult, Tool},
};

use crate::{
    args::{Call, Format},
    commands::tools,
    exit::{Failure, Status},
    misspelt,
    output::{one_line, print, print_json, result_text},
    progress::Line,
    schema::Schema,
    session::{self, Deadline},
    values,
};

/// How many tools are named when the one that was asked for is not there.
const NAMED: usize = 30;

pub(crate) async fn run(arguments: Call) -> Result<(), Failure> {
    let line = Line::on_stderr();
    session::with_client(&arguments.connection, &line, session::CALL, async |client, deadline| {
        let tools = tools::list(client, deadline, &line).await?;
        let tool = find(&tools, &arguments.tool)?;
        let result = call(client, deadline, tool, &arguments, &line).await?;
        show(&arguments, &result)
    })
    .await
}

fn find<'a>(tools: &'a [Tool], name: &str) -> Result<&'a Tool, Failure> {
    tools.iter().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<&str> = tools.iter().take(NAMED).map(|tool| tool.name.as_str()).collect();
        let more = if tools.len() > NAMED { " and more" } else { "" };
        Failure::usage(if names.is_empty() {
            format!("there is no tool `{name}`: the server offers none")
        } else {
            format!("there is no tool `{name}`: the server offers `{}`{more}", names.join("`, `"))
        })
    })
}

async fn call(
    client: &Client,
    deadline: Deadline,
    tool: &Tool,
    arguments: &Call,
    line: &Line,
) -> Result<CallToolResult, Failure> {
    let base = arguments.json.clone().unwrap_or_default();
    let schema = Schema::of(tool);
    let values = values::arguments(&schema, base, &arguments.arguments)
        .map_err(|error| Failure::usage(error.to_string()))?;
    for warning in misspelt::warnings(&tool.name, &schema, &values) {
        line.say(&one_line(&warning));
    }
    session::finish(client.call_tool(&tool.name, &values), &tool.name, deadline, line).await
}

fn show(arguments: &Call, result: &CallToolResult) -> Result<(), Failure> {
    let is_error = result.is_error == Some(true);
    let text = result_text(result);
    match arguments.connection.output {
        Format::Json => print_json(result)?,
        Format::Text if !is_error && !text.is_empty() => print(&text)?,
        // What a tool says of its failure is no result: it goes to stderr.
        Format::Text => {}
    }
    if is_error { Err(tool_failure(&arguments.tool, text.trim_end())) } else { Ok(()) }
}

fn tool_failure(tool: &str, text: &str) -> Failure {
    let failure = |sentence| Failure::new(Status::ToolFailed, sentence);
    match text.lines().count() {
        0 => failure(format!("the tool `{tool}` failed, and does not say why")),
        1 => failure(format!("the tool `{tool}` failed: {text}")),
        _ => failure(format!("the tool `{tool}` failed, and says:")).with_details(text.lines()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_that_is_not_there_is_answered_with_those_that_are() {
        let tools = [Tool::new("echo", json!({})), Tool::new("add", json!({}))];
        assert_eq!(find(&tools, "add").unwrap().name, "add");
        let failure = find(&tools, "ad").unwrap_err();
        assert_eq!(failure.sentence(), "there is no tool `ad`: the server offers `echo`, `add`");
        let failure = find(&[], "ad").unwrap_err();
        assert_eq!(failure.sentence(), "there is no tool `ad`: the server offers none");
    }

    #[test]
    fn a_failed_tool_is_one_sentence_unless_it_has_more_to_say() {
        assert_eq!(tool_failure("x", "no").sentence(), "the tool `x` failed: no");
        assert_eq!(tool_failure("x", "").sentence(), "the tool `x` failed, and does not say why");
        assert_eq!(tool_failure("x", "a\nb").sentence(), "the tool `x` failed, and says:");
    }
}
