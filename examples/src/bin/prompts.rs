//! A prompt with arguments that complete themselves.

use serde_json::json;
use turnbuckle::{
    Client, Server, prompt,
    server::Typed,
    types::{PromptMessage, PromptReference},
};

/// A field of this type completes to its variants.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Language {
    Python,
    Ruby,
    Rust,
}

/// Ask for a code review.
#[prompt]
async fn review(
    /// What it is written in.
    language: Language,
    /// Who reads it.
    #[arg(complete = readers)]
    reader: Option<String>,
    /// What is to be reviewed.
    code: String,
) -> Vec<PromptMessage> {
    let reader = reader.unwrap_or_else(|| "everyone".to_owned());
    vec![
        PromptMessage::user(format!("Review this {language:?} code for {reader}: {code}")),
        PromptMessage::assistant("I'll begin with what matters most."),
    ]
}

/// Completers take extractors, as any handler does.
async fn readers(Typed(typed): Typed) -> Vec<&'static str> {
    ["beginners", "experts"].into_iter().filter(|reader| reader.starts_with(&typed)).collect()
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let server = Server::new("reviews", "1.0").prompt(review);
    let client = Client::in_process(&server).await?;
    for (argument, typed) in [("language", "r"), ("reader", "ex")] {
        let found = client.complete(PromptReference::new("review"), argument, typed).await?;
        println!("{typed}… {:?}", found.completion.values);
    }
    let arguments = json!({"language": "rust", "code": "fn main() {}"});
    for message in client.get_prompt("review", arguments).await?.messages {
        println!("{}: {}", message.role, message.content.as_text().unwrap_or_default());
    }
    Ok(())
}
