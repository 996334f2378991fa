use std::sync::Arc;

use turnbuckle::{Server, tools};

struct Notes;

#[tools]
impl Notes {
    #[tool]
    async fn alone(text: String) -> String {
        text
    }

    #[tool]
    async fn change(&mut self) {}

    #[tool]
    async fn spend(self) {}

    #[prompt]
    async fn shared(self: Arc<Self>) -> String {
        String::new()
    }

    #[tool]
    async fn generic<T: ToString>(&self, value: T) -> String {
        value.to_string()
    }

    #[tool]
    #[prompt]
    async fn both(&self) -> String {
        String::new()
    }

    #[resource]
    async fn nowhere(&self) -> String {
        String::new()
    }

    #[prompt]
    async fn review(&self, #[arg(complete = Self::languages)] language: String) -> String {
        language
    }

    fn languages(&self) -> Vec<String> {
        Vec::new()
    }
}

fn main() {
    let _ = Server::new("ui", "1.0").group(Notes);
}
