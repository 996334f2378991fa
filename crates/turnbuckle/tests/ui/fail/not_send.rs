use std::rc::Rc;

use turnbuckle::{Server, tool};

#[tool]
async fn count(a: i64) -> i64 {
    let shared = Rc::new(a);
    std::future::ready(()).await;
    *shared
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(count);
}
