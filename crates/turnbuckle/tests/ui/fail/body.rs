use turnbuckle::{Server, tool};

#[tool]
async fn mismatch(a: i64) -> String {
    a
}

#[tool]
fn unknown(a: i64) -> i64 {
    a.cubed()
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(mismatch).tool(unknown);
}
