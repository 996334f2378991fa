//! The resources.

use serde_json::json;
use turnbuckle::{Json, resource, server::Group};

use super::content::PNG;

/// All of them.
pub(super) fn group() -> Group {
    Group::new().resource(static_text).resource(static_binary).resource(watched).template(data)
}

/// Text that stays the same.
#[resource("test://static-text", mime_type = "text/plain")]
async fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// A red pixel.
#[resource("test://static-binary", mime_type = "image/png")]
async fn static_binary() -> &'static [u8] {
    PNG
}

/// Something to subscribe to.
#[resource("test://watched-resource", mime_type = "text/plain")]
async fn watched() -> &'static str {
    "This resource can be watched."
}

/// Data by its id.
#[resource("test://template/{id}/data")]
async fn data(
    /// Which data.
    id: String,
) -> Json<serde_json::Value> {
    let about = format!("Data for ID: {id}");
    Json(json!({"id": id, "templateTest": true, "data": about}))
}
