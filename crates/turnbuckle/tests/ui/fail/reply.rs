use turnbuckle::{Server, tool};

struct Point {
    x: i64,
}

#[tool]
async fn point() -> Point {
    Point { x: 1 }
}

#[tool]
fn maybe(a: i64) -> Option<i64> {
    Some(a)
}

/// The error is none.
#[tool]
fn failing(a: i64) -> Result<i64, Point> {
    Err(Point { x: a })
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(point).tool(maybe).tool(failing);
}
