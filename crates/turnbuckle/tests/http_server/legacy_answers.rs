//! Questions that a client answers at once, while others of its threads are free.

use std::{future::IntoFuture as _, time::Duration};

use turnbuckle::{Client, Ctx, Revision, Server, ToolError, elicit::roots, tool, types::Root};

async fn places(ctx: Ctx) -> Result<String, ToolError> {
    let places = ctx.ask("roots", roots()).await?;
    Ok(places.into_iter().map(|root| root.uri).collect())
}

/// An answer that is ready before its question has been written down is posted all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_answer_is_lost_however_fast_it_comes() {
    let server = Server::new("test", "1").tool(tool("places", places));
    let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
    let url = bound.url().to_string();
    let serving = tokio::spawn(bound.into_future());
    let builder = Client::builder().revision(Revision::V2025_11_25);
    let client = builder.roots([Root::new("file:///srv")]).connect(&url).await.unwrap();
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    let call = client.call_tool("places", ()).timeout(Duration::from_secs(10));
                    assert_eq!(call.await.unwrap().to_text(), "file:///srv");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    client.close().await;
    serving.abort();
}
