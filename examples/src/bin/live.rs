//! Tools that come and go while the server runs, and clients that are told.

use turnbuckle::{
    Client, Server,
    subscribe::{Event, Filter},
    tool,
};

async fn hello() -> &'static str {
    "hello"
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let server = Server::new("live", "1.0").tool(tool("always", hello));
    let registry = server.registry()?;

    let client = Client::in_process(&server).await?;
    let mut listening = client.listen(Filter::new().tools()).await?;

    // A burst of changes is told once.
    let handle = registry.add_tool(tool("sometimes", hello))?;
    registry.add_tool(tool("soon", hello))?.disable();
    let Some(Ok(Event::ToolsChanged)) = listening.next().await else { panic!("it was told") };
    println!("listed: {}", names(&client).await?);

    handle.remove();
    let Some(Ok(Event::ToolsChanged)) = listening.next().await else { panic!("it was told") };
    println!("listed: {}", names(&client).await?);
    println!("{}", client.call_tool("sometimes", ()).await.unwrap_err());
    Ok(())
}

async fn names(client: &Client) -> turnbuckle::Result<String> {
    let tools = client.tools().all().await?;
    Ok(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", "))
}
