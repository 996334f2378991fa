//! `turnbuckle complete`: the question how an argument may go on, and the suggestions.

use turnbuckle::{
    server::UriTemplate,
    types::{CompleteResult, CompletionReference},
};

use crate::{
    args::{Complete, Format},
    commands::{
        offered::{Offer, require},
        prompts,
    },
    exit::Failure,
    misspelt,
    output::{one_line, print, print_json},
    progress::Line,
    reference::Reference,
    session,
};

pub(crate) async fn run(arguments: Complete) -> Result<(), Failure> {
    let line = Line::on_stderr();
    let Complete { connection, reference, argument, typed } = &arguments;
    session::with_client(connection, &line, session::CALL, async |client, deadline| {
        require(client, Offer::Completions)?;
        let given = std::iter::once(argument.as_str());
        match reference {
            Reference::Prompt(name) => {
                prompts::check_arguments(client, deadline, &line, name, given).await?;
            }
            Reference::Template(uri) => {
                // Text that is no template is for the server to judge.
                if let Ok(template) = UriTemplate::parse(uri) {
                    misspelt::refuse(uri, &template.variables().collect::<Vec<_>>(), given)?;
                }
            }
        }
        let call = client.complete(CompletionReference::from(reference), argument, typed);
        let result = session::finish(call, argument, deadline, &line).await?;
        match connection.output {
            Format::Json => print_json(&result),
            Format::Text => show(&result, &line),
        }
    })
    .await
}

/// A suggestion a line; that there are more is no suggestion, and goes to stderr.
fn show(result: &CompleteResult, line: &Line) -> Result<(), Failure> {
    let values = &result.completion.values;
    if !values.is_empty() {
        print(&values.iter().map(|value| one_line(value) + "\n").collect::<String>())?;
    }
    if let Some(more) = more(result) {
        line.say(&more);
    }
    Ok(())
}

fn more(result: &CompleteResult) -> Option<String> {
    let completion = &result.completion;
    let shown = completion.values.len() as u64;
    match completion.total {
        Some(total) if total > shown => Some(format!("note: {shown} of {total}; type more of it")),
        _ if completion.has_more == Some(true) => {
            Some("note: there are more; type more of it".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle::types::Completion;

    use super::*;

    #[test]
    fn it_is_said_if_there_are_more() {
        let mut result = CompleteResult::new(Completion::new(["a".into()]));
        assert_eq!(more(&result), None);
        result.completion.has_more = Some(true);
        assert_eq!(more(&result).unwrap(), "note: there are more; type more of it");
        result.completion.total = Some(7);
        assert_eq!(more(&result).unwrap(), "note: 1 of 7; type more of it");
        result.completion.total = Some(1);
        result.completion.has_more = Some(false);
        assert_eq!(more(&result), None);
    }
}
