use turnbuckle::tool;

struct Calculator {
    base: i64,
}

impl Calculator {
    #[tool]
    async fn add(
        &self,
        /// What to add.
        a: i64,
    ) -> i64 {
        self.base + a
    }

    fn double(&self) -> impl Future<Output = i64> {
        self.add(self.base)
    }
}

fn main() {
    let _ = Calculator { base: 1 }.double();
}
