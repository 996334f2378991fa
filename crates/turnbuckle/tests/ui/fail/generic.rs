use turnbuckle::{server::IntoReply, Server, tool};

#[tool]
async fn parameter<T: ToString>(value: T) -> String {
    value.to_string()
}

#[tool]
async fn lifetime<'a>(value: std::borrow::Cow<'a, str>) -> String {
    value.into_owned()
}

#[tool]
async fn argument(value: impl ToString) -> String {
    value.to_string()
}

#[tool]
async fn reply() -> impl IntoReply {
    "opaque"
}

fn main() {
    let _ = Server::new("ui", "1.0").tool(parameter).tool(lifetime).tool(argument).tool(reply);
}
