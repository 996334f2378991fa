//! `turnbuckle info`: who a server is, and what it can do.

use serde_json::{Value, json};
use turnbuckle::{
    Client, Revision,
    types::{DiscoverResult, Implementation, ServerCapabilities},
};

use crate::{
    args::{Format, Info},
    exit::Failure,
    output::{one_line, print, print_json},
    progress::Line,
    session,
};

pub(crate) async fn run(arguments: Info) -> Result<(), Failure> {
    let line = Line::on_stderr();
    let format = arguments.connection.output;
    session::with_client(&arguments.connection, &line, session::CALL, async |client, deadline| {
        let info = match client.server_capabilities() {
            Some(_) => info(client),
            // With a revision that was typed nothing had to be found out.
            None => {
                let call = session::finish(client.discover(), "asking", deadline, &line);
                discovered(client, &call.await?)
            }
        };
        match format {
            Format::Json => print_json(&info),
            Format::Text => print(&text(&info)),
        }
    })
    .await
}

/// What the server said when it was connected to, in the same form for both eras.
fn info(client: &Client) -> Value {
    let capabilities = client.server_capabilities().unwrap_or_default();
    form(client.revision(), &capabilities, client.server_info(), client.instructions())
}

fn discovered(client: &Client, result: &DiscoverResult) -> Value {
    let info = result.meta.server_info().ok().flatten();
    form(client.revision(), &result.capabilities, info, result.instructions.clone())
}

fn form(
    revision: Revision,
    capabilities: &ServerCapabilities,
    server: Option<Implementation>,
    instructions: Option<String>,
) -> Value {
    let mut info = json!({"protocolVersion": revision.as_str(), "capabilities": capabilities});
    if let Some(server) = server {
        info["serverInfo"] = json!(server);
    }
    if let Some(instructions) = instructions {
        info["instructions"] = json!(instructions);
    }
    info
}

fn text(info: &Value) -> String {
    let said = |member: &str| info["serverInfo"][member].as_str().map(one_line);
    let mut text = match (said("name"), said("version")) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        (Some(name), None) => name,
        (None, _) => "a server that does not say who it is".to_owned(),
    };
    if let Some(title) = said("title") {
        text.push_str(&format!(" - {title}"));
    }
    text.push('\n');
    let rows = [
        ("about", said("description")),
        ("website", said("websiteUrl")),
        ("revision", info["protocolVersion"].as_str().map(one_line)),
        ("capabilities", Some(capabilities(&info["capabilities"]))),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            text.push_str(&format!("  {name:12}  {value}\n"));
        }
    }
    if let Some(instructions) = info["instructions"].as_str() {
        text.push_str("  instructions\n");
        for line in instructions.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

/// `resources (listChanged, subscribe), tools`.
fn capabilities(declared: &Value) -> String {
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default().into_iter();
    let shown: Vec<String> = members(declared)
        .map(|(name, settings)| {
            // What is switched off is not there.
            let on = members(&settings).filter(|(_, value)| *value != Value::Bool(false));
            let on: Vec<String> = on.map(|(name, _)| one_line(&name)).collect();
            let name = one_line(&name);
            if on.is_empty() { name } else { format!("{name} ({})", on.join(", ")) }
        })
        .collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_shown_with_what_it_declares() {
        let info = json!({
            "serverInfo": {"name": "notes", "version": "1.0", "title": "No\ntes"},
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": false}, "resources": {"subscribe": true}},
            "instructions": "Write.\nRead.",
        });
        assert_eq!(
            text(&info),
            "notes 1.0 - No tes\n  revision      2025-11-25\n  \
             capabilities  resources (subscribe), tools\n  instructions\n    Write.\n    Read.\n"
        );
        assert_eq!(capabilities(&json!({})), "none");
    }
}
