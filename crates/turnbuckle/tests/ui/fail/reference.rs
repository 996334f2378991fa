use std::path::Path;

use turnbuckle::{Server, tool};

#[tool]
async fn greet(name: &str, titles: Option<&[String]>) -> String {
    format!("hello {name} {}", titles.unwrap_or_default().len())
}

#[tool]
fn read(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(greet).tool(read);
}
