//! `turnbuckle tools`: the listing, for people and for programs.

use turnbuckle::{Client, types::Tool};

use crate::{
    args::{Format, Tools},
    commands::{
        listing::{self, counted, heading, table},
        offered::{Offer, require},
    },
    exit::Failure,
    output::{one_line, print, print_json},
    progress::Line,
    schema::{Need, Schema},
    session::{self, Deadline},
};

pub(crate) async fn run(arguments: Tools) -> Result<(), Failure> {
    let line = Line::on_stderr();
    let format = arguments.connection.output;
    session::with_client(&arguments.connection, &line, session::CALL, async |client, deadline| {
        let tools = list(client, deadline, &line).await?;
        match format {
            Format::Json => print_json(&tools),
            Format::Text => {
                let heading = heading(client, &counted(tools.len(), "tool"));
                print(&format!("{heading}{}", shown(&tools)))
            }
        }
    })
    .await
}

/// All tools of a server.
pub(crate) async fn list(
    client: &Client,
    deadline: Deadline,
    line: &Line,
) -> Result<Vec<Tool>, Failure> {
    require(client, Offer::Tools)?;
    let listing = line.watch("listing tools", client.tools().all());
    deadline.limit("the server did not list its tools", listing).await
}

fn shown(tools: &[Tool]) -> String {
    let mut text = String::new();
    for tool in tools {
        text.push('\n');
        text.push_str(&entry(tool));
    }
    text
}

fn entry(tool: &Tool) -> String {
    let annotated = || tool.annotations.as_ref().and_then(|annotations| annotations.title.as_ref());
    let title = tool.title.as_ref().or_else(annotated);
    let entry = listing::entry(&tool.name, title.map(String::as_str), tool.description.as_deref());
    let schema = Schema::of(tool);
    let rows: Vec<[String; 3]> = schema
        .arguments()
        .iter()
        .map(|argument| {
            let need = match argument.need {
                Need::Required => Some("required"),
                Need::Optional => None,
            };
            let limits = argument.limits.iter().map(String::as_str);
            let kind: Vec<&str> =
                [&*argument.type_name].into_iter().chain(need).chain(limits).collect();
            let description = argument.description.map(one_line).unwrap_or_default();
            [one_line(argument.name), kind.join(", "), description]
        })
        .collect();
    entry + &table(&rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_shows_arguments_with_types_and_which_are_required() {
        let schema = json!({
            "type": "object",
            "properties": {
                "from": {"$ref": "#/$defs/Steps", "description": "How many\nsteps."},
                "delay_ms": {"anyOf": [{"type": "integer", "maximum": 100}, {"type": "null"}]},
            },
            "required": ["from"],
            "$defs": {"Steps": {"type": "integer", "minimum": 1, "maximum": 10}},
        });
        let mut tool = Tool::new("countdown", schema);
        tool.title = Some("Count down".into());
        tool.description = Some("Counts.\nThen stops.".into());
        let shown = entry(&tool);
        let mut lines: Vec<&str> = shown.lines().collect();
        lines[3..].sort_unstable();
        assert_eq!(
            lines,
            [
                "countdown - Count down",
                "  Counts.",
                "  Then stops.",
                "    delay_ms  integer, at most 100",
                "    from      integer, required, 1 to 10  How many steps.",
            ]
        );
    }

    #[test]
    fn a_tool_that_says_little_takes_one_line() {
        assert_eq!(shown(&[Tool::new("x", json!({"type": "object"}))]), "\nx\n");
    }
}
