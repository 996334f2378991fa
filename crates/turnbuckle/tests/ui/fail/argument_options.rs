#![allow(unused_variables)]

use turnbuckle::{Server, prompt, tool};

struct Percent(u8);

#[tool]
async fn constrained(
    #[arg(min = 1)] name: String,
    #[arg(max_length = 3)] count: u32,
    #[arg(pattern = "^a")] flag: bool,
    #[arg(min = 5, max = 2)] amount: f64,
    #[arg(max = 100)] share: Percent,
    #[arg(header = "Tags")] tags: Vec<String>,
    #[arg(minimum = 1)] other: i64,
    #[arg(complete = ["a"])] completed: String,
) {
}

#[prompt]
async fn review(
    #[arg(min = 1)] code: String,
    #[arg(header = "Language")] language: String,
    #[arg(complete = "rust")] style: String,
) -> String {
    code
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(constrained).prompt(review);
}
