use turnbuckle::tool;

#[tool]
struct Add {
    a: i64,
}

#[tool]
impl Add {
    async fn add(&self) -> i64 {
        self.a
    }
}

fn main() {
    let _ = Add { a: 1 }.add();
}
