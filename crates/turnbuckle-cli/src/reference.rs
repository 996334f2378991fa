//! Owns what is typed for the thing whose argument is to be completed.
//! Does not own the question to the server.

use std::str::FromStr;

use turnbuckle::types::{CompletionReference, PromptReference, ResourceTemplateReference};

/// A prompt or a resource template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    Prompt(String),
    Template(String),
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Reference, String> {
        match text.strip_prefix("prompt:") {
            Some("") => Err("the prompt's name is missing after `prompt:`".to_owned()),
            Some(name) => Ok(Reference::Prompt(name.to_owned())),
            // Every URI has a scheme: a name alone is a prompt's that was meant otherwise.
            None if !text.contains(':') => Err(format!(
                "a prompt is written as prompt:{text}, and a resource template begins with its scheme"
            )),
            None => Ok(Reference::Template(text.to_owned())),
        }
    }
}

impl From<&Reference> for CompletionReference {
    fn from(reference: &Reference) -> CompletionReference {
        match reference {
            Reference::Prompt(name) => PromptReference::new(name).into(),
            Reference::Template(uri) => ResourceTemplateReference::new(uri).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_have_a_prefix_and_templates_a_scheme() {
        assert_eq!("prompt:review".parse(), Ok(Reference::Prompt("review".into())));
        assert_eq!("prompt:a:b".parse(), Ok(Reference::Prompt("a:b".into())));
        assert_eq!(
            "demo://items/{id}".parse(),
            Ok(Reference::Template("demo://items/{id}".into()))
        );
        assert!("prompt:".parse::<Reference>().is_err());
        let sentence = "review".parse::<Reference>().unwrap_err();
        assert!(sentence.starts_with("a prompt is written as prompt:review"), "{sentence}");
    }
}
