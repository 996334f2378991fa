//! Progress: reported by the handler, shown by the caller, in order and before the result.

use turnbuckle::{Client, Ctx, Server, tool};

/// Copy some files.
#[tool]
async fn copy(files: u32, ctx: Ctx) -> String {
    for file in 1..=files {
        ctx.progress(file).total(files).message(format!("file {file}")).await;
    }
    format!("copied {files} files")
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let server = Server::new("files", "1.0").tool(copy);
    let client = Client::in_process(&server).await?;
    let done = client
        .call_tool("copy", serde_json::json!({"files": 3}))
        .on_progress(|progress| {
            let total = progress.total.unwrap_or_default();
            println!("{} of {total}: {}", progress.progress, progress.message.unwrap_or_default());
        })
        .await?;
    println!("{}", done.to_text());
    Ok(())
}
