use turnbuckle::Server;

mod tools {
    use turnbuckle::{State, tool};

    #[derive(Clone)]
    struct Database;

    #[tool]
    pub async fn find(State(_database): State<Database>) {}
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(tools::find);
}
