use turnbuckle::{Server, prompt};

struct Point;

#[prompt("review")]
async fn named() -> String {
    String::new()
}

#[prompt(read_only)]
async fn hinted() -> String {
    String::new()
}

#[prompt]
async fn borrowed(code: &str) -> String {
    code.to_owned()
}

/// Not what a prompt returns.
#[prompt]
async fn counted() -> i64 {
    1
}

/// Not what a prompt can be filled with.
#[prompt]
fn drawn(point: Point) -> String {
    let Point = point;
    String::new()
}

#[prompt]
struct Review;

/// Without the attribute.
async fn forgotten(code: String) -> String {
    code
}

fn main() {
    let server = Server::new("ui", "1.0").prompt(named).prompt(hinted).prompt(borrowed);
    let _ = server.prompt(counted).prompt(drawn).prompt(forgotten);
}
