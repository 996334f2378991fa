//! A server and a client over a TCP socket: any byte stream will do.

use tokio::net::{TcpListener, TcpStream};
use turnbuckle::{Client, Server, tool};

/// Say something back.
#[tool]
async fn echo(text: String) -> String {
    text
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = Server::new("echo", "1.0").tool(echo);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // One server serves any number of connections.
            tokio::spawn(server.serve(stream).into_future());
        }
    });

    let client = Client::over(TcpStream::connect(address).await?).await?;
    let said = client.call_tool("echo", serde_json::json!({"text": "over a socket"})).await?;
    println!("{}", said.to_text());
    Ok(())
}
