//! `turnbuckle resources` and `turnbuckle read`: what there is to read, and reading it.

use serde_json::json;
use turnbuckle::{
    Client,
    types::{Resource, ResourceTemplate, code},
};

use crate::{
    args::{Format, Read, Resources},
    commands::{
        listing::{counted, entry, heading},
        offered::{Offer, require},
    },
    exit::Failure,
    output::{contents_text, one_line, print, print_json},
    progress::Line,
    session::{self, Deadline},
};

pub(crate) async fn list(arguments: Resources) -> Result<(), Failure> {
    let line = Line::on_stderr();
    let format = arguments.connection.output;
    session::with_client(&arguments.connection, &line, session::CALL, async |client, deadline| {
        let (resources, templates) = all(client, deadline, &line).await?;
        match format {
            Format::Json => {
                print_json(&json!({"resources": resources, "resourceTemplates": templates}))
            }
            Format::Text => {
                let count = counted(resources.len(), "resource");
                let offered = format!("{count} and {}", counted(templates.len(), "template"));
                print(&format!("{}{}", heading(client, &offered), shown(&resources, &templates)))
            }
        }
    })
    .await
}

pub(crate) async fn read(arguments: Read) -> Result<(), Failure> {
    let line = Line::on_stderr();
    let Read { connection, uri } = &arguments;
    session::with_client(connection, &line, session::CALL, async |client, deadline| {
        require(client, Offer::Resources)?;
        let result = session::finish(client.read_resource(uri), uri, deadline, &line).await?;
        match connection.output {
            Format::Json => print_json(&result),
            Format::Text => print(&contents_text(&result.contents)),
        }
    })
    .await
}

async fn all(
    client: &Client,
    deadline: Deadline,
    line: &Line,
) -> Result<(Vec<Resource>, Vec<ResourceTemplate>), Failure> {
    require(client, Offer::Resources)?;
    let listing = async {
        let resources = client.resources().all().await?;
        let templates = match client.resource_templates().all().await {
            // Not every server that has resources knows of templates.
            Err(error) if error.as_rpc().is_some_and(|rpc| rpc.code == code::METHOD_NOT_FOUND) => {
                Vec::new()
            }
            templates => templates?,
        };
        Ok::<_, turnbuckle::Error>((resources, templates))
    };
    let listing = line.watch("listing resources", listing);
    deadline.limit("the server did not list its resources", listing).await
}

fn shown(resources: &[Resource], templates: &[ResourceTemplate]) -> String {
    let mut text = String::new();
    for one in resources {
        text.push('\n');
        let title = one.title.as_deref().unwrap_or(&one.name);
        text.push_str(&entry(&one.uri, Some(title), one.description.as_deref()));
        text.push_str(&kind(one.mime_type.as_deref(), one.size));
    }
    for one in templates {
        text.push('\n');
        let title = one.title.as_deref().unwrap_or(&one.name);
        text.push_str(&entry(&one.uri_template, Some(title), one.description.as_deref()));
        text.push_str(&kind(one.mime_type.as_deref(), None));
    }
    text
}

/// A line with the type and the size, if they are known.
fn kind(mime_type: Option<&str>, size: Option<u64>) -> String {
    let size = size.map(|size| format!("{size} bytes"));
    let parts: Vec<String> = mime_type.map(one_line).into_iter().chain(size).collect();
    if parts.is_empty() { String::new() } else { format!("    {}\n", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_come_before_templates_with_what_is_known_of_them() {
        let mut readme = Resource::new("demo://readme", "readme");
        readme.title = Some("Read me".into());
        readme.description = Some("First.".into());
        readme.mime_type = Some("text/markdown".into());
        readme.size = Some(12);
        let item = ResourceTemplate::new("demo://items/{id}", "item");
        assert_eq!(
            shown(&[readme], &[item]),
            "\ndemo://readme - Read me\n  First.\n    text/markdown, 12 bytes\n\
             \ndemo://items/{id} - item\n"
        );
    }
}
