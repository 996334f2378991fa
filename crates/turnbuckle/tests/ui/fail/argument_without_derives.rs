use turnbuckle::{Server, tool};

struct Point {
    x: i64,
}

#[derive(serde::Deserialize)]
struct Line {
    from: i64,
}

/// The type can't be decoded.
#[tool]
async fn plot(scale: i64, point: Point) -> i64 {
    scale * point.x
}

/// The type has no schema, and is within another one.
#[tool]
fn draw(lines: Option<Vec<Line>>) -> i64 {
    lines.unwrap()[0].from
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(plot).tool(draw);
}
