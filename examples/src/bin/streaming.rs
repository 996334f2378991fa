//! Output that comes in parts: each is progress as soon as it is there, all together the result.

use tokio_stream::Stream;
use turnbuckle::{Client, Server, server::Streaming, tool};

async fn tell() -> Streaming<impl Stream<Item = &'static str>> {
    Streaming(tokio_stream::iter(["Once ", "upon ", "a time."]))
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let tell = tool("tell", tell).description("Tells a story, word by word.");
    let client = Client::in_process(&Server::new("stories", "1.0").tool(tell)).await?;
    let told = client
        .call_tool("tell", ())
        .on_progress(|part| {
            println!("part {}: {}", part.progress, part.message.unwrap_or_default())
        })
        .await?;
    println!("whole: {}", told.to_text());
    Ok(())
}
