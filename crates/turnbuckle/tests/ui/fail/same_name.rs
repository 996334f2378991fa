//! A tool's name is that of a unit struct, which a variable can't have.
use turnbuckle::{Server, tool};

#[tool]
async fn sum(a: i64, b: i64) -> i64 {
    a + b
}

#[tool]
async fn mean(sum: i64, count: i64) -> i64 {
    count
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(sum).tool(mean);
}
