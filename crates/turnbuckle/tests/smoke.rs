//! Smoke.
use turnbuckle::{Args, Client, Ctx, Json, Revision, Server, tool};
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add { a: i64, b: i64 }
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum { sum: i64 }
async fn add(Args(add): Args<Add>, ctx: Ctx) -> Json<Sum> {
    for i in 0..10 { ctx.progress(i).total(10).await; }
    Json(Sum { sum: add.a + add.b })
}
fn server() -> Server { Server::new("s", "1").tool(tool("add", add).description("Add.")) }

#[tokio::test]
async fn works() {
    for rev in Revision::ALL {
        let (a, b) = tokio::io::duplex(4096);
        let s = server();
        let task = tokio::spawn(async move { s.serve(b).await });
        for client in [
            Client::builder().revision(rev).over(a).await.unwrap(),
            Client::builder().revision(rev).in_process(&server()).await.unwrap(),
        ] {
            let (tx, mut rx) = tokio::sync::mpsc::channel(100);
            let r = client.call_tool("add", serde_json::json!({"a": 1, "b": 2})).on_progress(move |p| tx.try_send(p.progress).unwrap()).await.unwrap();
            println!("{rev} {r:?}");
            let mut n = 0; while rx.try_recv().is_ok() { n += 1; }
            assert_eq!(n, 10);
            println!("{:?}", client.tools().all().await.unwrap());
            let e = client.call_tool("add", serde_json::json!({"a": "x"})).await.unwrap();
            println!("{e:?}");
            println!("{:?} {:?}", client.call_tool("nope", ()).await, client.ping().await);
            client.close().await;
        }
        task.await.unwrap().unwrap();
    }
    let (a, b) = tokio::io::duplex(4096);
    let s = server();
    let task = tokio::spawn(async move { s.serve(b).await });
    let client = Client::over(a).await.unwrap();
    assert_eq!(client.revision(), Revision::LATEST);
    drop(client);
    task.await.unwrap().unwrap();
}
