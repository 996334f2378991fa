use turnbuckle::{Server, tools};

struct Empty;

#[tools]
impl Empty {
    async fn add(&self, a: i64) -> i64 {
        a
    }
}

struct Stored<S>(S);

#[tools]
impl<S: ToString> Stored<S> {
    #[tool]
    async fn show(&self) -> String {
        self.0.to_string()
    }
}

trait Show {
    fn show(&self) -> String;
}

#[tools]
impl Show for Empty {
    #[tool]
    fn show(&self) -> String {
        String::new()
    }
}

#[tools(prefix = "notes")]
impl Stored<u8> {
    #[tool]
    fn double(&self) -> u8 {
        self.0 * 2
    }
}

#[tools]
async fn add(a: i64) -> i64 {
    a
}

fn main() {
    let _ = Server::new("ui", "1.0").group(Empty).group(Stored(1_u8));
}
