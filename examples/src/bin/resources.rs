//! Resources: one with a URI of its own, a family by a template, a directory, and a change of one.

use turnbuckle::{Client, Json, NotFound, Server, resource};

/// What this server is for.
#[resource("notes://readme", mime_type = "text/markdown")]
async fn readme() -> &'static str {
    "# Notes"
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Note {
    id: u32,
    text: String,
}

/// A note by its number. The variable is decoded and read before this runs.
#[resource("notes://{id}")]
async fn note(id: u32) -> Result<Json<Note>, NotFound> {
    match id {
        7 => Ok(Json(Note { id, text: "buy milk".to_owned() })),
        _ => Err(NotFound),
    }
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let directory = std::env::temp_dir().join("turnbuckle-example-resources");
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    std::fs::write(directory.join("hello.txt"), "hello from a file").expect("a temporary file");
    let server = Server::new("notes", "1.0")
        .resource(readme)
        .template(note)
        // Whatever is in it, and nothing outside of it.
        .directory("file:///docs", &directory);

    let client = Client::in_process(&server).await?;
    for resource in client.resources().all().await? {
        println!("- {}", resource.uri);
    }
    for uri in ["notes://7", "file:///docs/hello.txt"] {
        let read = client.read_resource(uri).await?;
        println!("{uri}: {}", read.to_text());
    }
    for uri in ["notes://8", "file:///docs/../secret"] {
        println!("{uri}: {}", client.read_resource(uri).await.unwrap_err());
    }
    // Those who listen to it are told.
    server.changes().resource("notes://7");
    Ok(())
}
