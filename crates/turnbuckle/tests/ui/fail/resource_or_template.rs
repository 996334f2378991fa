use turnbuckle::{Server, resource};

#[resource("demo://items/{id}")]
async fn numbered(id: u32) -> String {
    id.to_string()
}

#[resource("demo://readme")]
async fn readme() -> &'static str {
    "# Read me"
}

fn main() {
    let _ = Server::new("ui", "1.0").resource(numbered).template(readme);
}
