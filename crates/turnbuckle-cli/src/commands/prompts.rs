//! `turnbuckle prompts` and `turnbuckle prompt`: which there are, and one filled in.

use turnbuckle::{
    Client,
    types::{GetPromptResult, Prompt, Role},
};

use crate::{
    args::{self, Format},
    commands::{
        listing::{counted, entry, heading, table},
        offered::{Offer, require},
    },
    exit::Failure,
    misspelt,
    output::{block_text, one_line, print, print_json},
    progress::Line,
    session::{self, Deadline},
    values,
};

pub(crate) async fn list(arguments: args::Prompts) -> Result<(), Failure> {
    let line = Line::on_stderr();
    let format = arguments.connection.output;
    session::with_client(&arguments.connection, &line, session::CALL, async |client, deadline| {
        let prompts = all(client, deadline, &line).await?;
        match format {
            Format::Json => print_json(&prompts),
            Format::Text => {
                let heading = heading(client, &counted(prompts.len(), "prompt"));
                let entries = prompts.iter().map(|prompt| format!("\n{}", shown(prompt)));
                print(&format!("{heading}{}", entries.collect::<String>()))
            }
        }
    })
    .await
}

pub(crate) async fn fill_in(arguments: args::Prompt) -> Result<(), Failure> {
    let line = Line::on_stderr();
    let args::Prompt { connection, name, arguments } = &arguments;
    session::with_client(connection, &line, session::CALL, async |client, deadline| {
        let texts = values::texts(arguments).map_err(|error| Failure::usage(error.to_string()))?;
        let given = texts.iter().map(|(name, _)| name);
        check_arguments(client, deadline, &line, name, given).await?;
        let call = client.get_prompt(name, &texts);
        let result = session::finish(call, name, deadline, &line).await?;
        match connection.output {
            Format::Json => print_json(&result),
            Format::Text => print(&messages(&result)),
        }
    })
    .await
}

/// All prompts of a server.
async fn all(client: &Client, deadline: Deadline, line: &Line) -> Result<Vec<Prompt>, Failure> {
    require(client, Offer::Prompts)?;
    let listing = line.watch("listing prompts", client.prompts().all());
    deadline.limit("the server did not list its prompts", listing).await
}

/// Fails if the server lists the prompt without one of these arguments. A prompt that is not listed
/// is for the server to judge.
pub(crate) async fn check_arguments<'a>(
    client: &Client,
    deadline: Deadline,
    line: &Line,
    name: &str,
    given: impl Iterator<Item = &'a str>,
) -> Result<(), Failure> {
    let prompts = all(client, deadline, line).await?;
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else { return Ok(()) };
    let arguments = prompt.arguments.iter().flatten();
    let known: Vec<&str> = arguments.map(|argument| argument.name.as_str()).collect();
    misspelt::refuse(name, &known, given)
}

fn shown(prompt: &Prompt) -> String {
    let rows: Vec<[String; 3]> = prompt
        .arguments
        .iter()
        .flatten()
        .map(|argument| {
            let need = if argument.required == Some(true) { "required" } else { "optional" };
            let said = argument.description.as_deref().or(argument.title.as_deref());
            [one_line(&argument.name), need.to_owned(), said.map(one_line).unwrap_or_default()]
        })
        .collect();
    entry(&prompt.name, prompt.title.as_deref(), prompt.description.as_deref()) + &table(&rows)
}

/// Each message below who says it.
fn messages(result: &GetPromptResult) -> String {
    let message = |message: &turnbuckle::types::PromptMessage| {
        let who = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            _ => "somebody",
        };
        format!("[{who}]\n{}\n", block_text(&message.content).trim_end())
    };
    result.messages.iter().map(message).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use turnbuckle::types::{PromptArgument, PromptMessage};

    use super::*;

    #[test]
    fn a_prompt_is_shown_with_its_arguments() {
        let mut code = PromptArgument::new("code");
        code.required = Some(true);
        code.description = Some("What is\nreviewed.".into());
        let mut review = Prompt::new("review");
        review.title = Some("Review".into());
        review.arguments = Some(vec![code, PromptArgument::new("style")]);
        assert_eq!(
            shown(&review),
            "review - Review\n    code   required  What is reviewed.\n    style  optional\n"
        );
    }

    #[test]
    fn messages_say_whose_they_are() {
        let result = GetPromptResult::new([
            PromptMessage::user("Look:\n\nx\n"),
            PromptMessage::assistant("I see."),
        ]);
        assert_eq!(messages(&result), "[user]\nLook:\n\nx\n\n[assistant]\nI see.\n");
    }
}
