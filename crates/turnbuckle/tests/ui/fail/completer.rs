use turnbuckle::{Server, server::Typed, prompt};

/// It returns something else than texts.
#[prompt]
async fn review(#[arg(complete = languages)] language: String) -> String {
    language
}

async fn languages(Typed(typed): Typed) -> usize {
    typed.len()
}

/// Its completer is not async.
#[prompt]
async fn explain(#[arg(complete = topics)] topic: String) -> String {
    topic
}

fn topics(Typed(typed): Typed) -> Vec<String> {
    vec![typed]
}

/// Only completers are given what was typed.
#[prompt]
async fn continued(Typed(text): Typed) -> String {
    text
}

fn main() {
    let _ = Server::new("ui", "1.0").prompt(review).prompt(explain).prompt(continued);
}
