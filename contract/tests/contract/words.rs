//! A legacy exchange has no word that only the modern era knows, in either direction.

use std::{
    collections::BTreeSet,
    fs, io,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf},
    sync::Notify,
};
use turnbuckle::{
    Client, Ctx, Json, Revision, Server, ToolError,
    server::RawArgs,
    tool,
    types::{
        ElicitAction, ElicitForm, ElicitResult, ElicitSchema, Era, LogLevel, Meta, Method,
        NumberKind, NumberSchema,
    },
};

use crate::rig::within;

/// A stream that keeps all that goes through it, each way.
struct Recorded {
    stream: DuplexStream,
    said: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Recorded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.said.lock().unwrap().extend_from_slice(&buffer.filled()[before..]);
        polled
    }
}

impl AsyncWrite for Recorded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = &polled {
            self.said.lock().unwrap().extend_from_slice(&bytes[..*count]);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The members that only a modern revision has: the model marks them.
fn marked() -> BTreeSet<String> {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/turnbuckle-types/src/model");
    let mut members = BTreeSet::new();
    for text in texts_below(&model) {
        for marked in text.split("#[since(V2026_07_28)]").skip(1) {
            let field = marked.lines().map(str::trim).find(|line| {
                !line.is_empty() && !line.starts_with('#') && !line.starts_with("///")
            });
            let member = field.and_then(|field| field.split('"').nth(1));
            members.insert(format!("\"{}\"", member.expect("a field behind the mark")));
        }
    }
    members
}

/// The texts of all files below a directory.
fn texts_below(directory: &Path) -> Vec<String> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => texts_below(&path),
            false => vec![fs::read_to_string(path).unwrap()],
        })
        .collect()
}

fn modern_words() -> BTreeSet<String> {
    let mut words = marked();
    for known in ["\"resultType\"", "\"ttlMs\"", "\"cacheScope\"", "\"requestState\""] {
        assert!(words.contains(known), "the marks were not found: {words:?}");
    }
    let modern = |method: &&Method| {
        Revision::ALL.into_iter().all(|it| method.exists_in(it) == (it.era() == Era::Modern))
    };
    words.extend(Method::ALL.iter().filter(modern).map(|method| format!("\"{method}\"")));
    let meta = [
        Meta::PROTOCOL_VERSION,
        Meta::CLIENT_INFO,
        Meta::CLIENT_CAPABILITIES,
        Meta::LOG_LEVEL,
        Meta::SUBSCRIPTION_ID,
        Meta::SERVER_INFO,
    ];
    words.extend(meta.map(str::to_owned));
    words.extend(["io.modelcontextprotocol/", "x-mcp-header", "2026-07-28"].map(str::to_owned));
    words
}

/// A server that has something of everything.
fn server() -> Server {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
    }});
    Server::new("everything", "1.0")
        .instructions("Use it.")
        .tool(tool("noisy", noisy).description("Says much."))
        .tool(tool("list", async || Json(vec![1, 2, 3])))
        .tool(tool("bad", async || Err::<(), _>(ToolError::new("no"))))
        .tool(tool("where", async |_: RawArgs| "here").input_schema(schema))
        .tool(tool("ask", ask))
}

async fn noisy(ctx: Ctx) -> &'static str {
    ctx.set_meta("com.example/mark", json!(1));
    for step in 1..=3 {
        ctx.progress(step).total(3).message("on").await;
        ctx.log(LogLevel::Info, "said").await;
    }
    "done"
}

async fn ask(ctx: Ctx) -> Result<String, ToolError> {
    let mut age = NumberSchema::new(NumberKind::Integer);
    age.default = Some(30.0);
    let form = ElicitForm::new("How old?", ElicitSchema::new([("age", age)]));
    let answer = ctx.request("elicitation/create", form).await;
    answer.map(|raw| raw.to_string()).map_err(|error| ToolError::new(error.to_string()))
}

/// Does all there is to do, and returns what was said on the wire.
async fn exchange(revision: Revision) -> String {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let server = server();
    let changes = server.changes();
    let serving = tokio::spawn(server.serve(theirs).into_future());
    let said = Arc::new(Mutex::new(Vec::new()));
    let changed = Arc::new(Notify::new());
    let heard = changed.clone();
    let client = Client::builder()
        .revision(revision)
        .on_notification(move |method, _| {
            if method == "notifications/tools/list_changed" {
                heard.notify_one();
            }
        })
        .on_elicitation(async |_| Ok(ElicitResult::new(ElicitAction::Accept)))
        .over(Recorded { stream: ours, said: said.clone() })
        .await
        .unwrap();
    if revision.era() == Era::Legacy {
        client.ping().await.unwrap();
        client.request("logging/setLevel", json!({"level": "debug"})).await.unwrap();
    }
    let tools = client.tools().all().await.unwrap();
    assert_eq!(tools.len(), 5);
    client.call_tool("noisy", ()).on_progress(|_| {}).await.unwrap();
    client.call_tool("list", ()).await.unwrap();
    assert_eq!(client.call_tool("bad", ()).await.unwrap().is_error, Some(true));
    client.call_tool("where", json!({"region": "x"})).await.unwrap();
    client.call_tool("ask", ()).await.unwrap();
    client.call_tool("nothing of this name", ()).await.unwrap_err();
    client.request("no/such", ()).await.unwrap_err();
    if revision.era() == Era::Legacy {
        changes.tools();
        changed.notified().await;
    }
    client.close().await;
    serving.await.unwrap().unwrap();
    let said = said.lock().unwrap();
    String::from_utf8(said.clone()).unwrap()
}

// req: 2025:jsonschema:non-object-structured-content-wrapped
// req: lifecycle:stateless:unpinned-legacy-wire, hosting:http:legacy-no-modern-vocabulary
#[tokio::test]
async fn a_legacy_exchange_has_no_modern_word_in_either_direction() {
    within(async {
        let words = modern_words();
        for revision in Revision::ALL.into_iter().filter(|it| it.era() == Era::Legacy) {
            let said = exchange(revision).await;
            let messages: Vec<Value> =
                said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert!(messages.len() > 20, "{said}");
            for word in &words {
                let line = said.lines().find(|line| line.contains(word.as_str()));
                assert_eq!(line, None, "{revision}: {word}");
            }
            let has = |word: &str| said.contains(word);
            assert!(has("notifications/progress") && has("notifications/message"), "{said}");
            // What is no object is wrapped where there is a place for it at all.
            let asked = r#""method":"elicitation/create""#;
            let structured = messages.iter().find_map(|it| it["result"].get("structuredContent"));
            match revision {
                Revision::V2024_11_05 | Revision::V2025_03_26 => {
                    assert!(structured.is_none() && !has("outputSchema") && !has(asked));
                }
                _ => {
                    assert_eq!(structured, Some(&json!({"result": [1, 2, 3]})));
                    assert!(has("outputSchema") && has(asked), "{said}");
                }
            }
        }
    })
    .await;
}

/// The words would be found if they were there.
#[tokio::test]
async fn a_modern_exchange_has_them() {
    within(async {
        let said = exchange(Revision::LATEST).await;
        for word in ["\"resultType\"", "\"ttlMs\"", "\"cacheScope\"", "x-mcp-header", "2026-07-28"]
        {
            assert!(said.contains(word), "{word}");
        }
        assert!(said.contains(r#""structuredContent":[1,2,3]"#), "{said}");
        assert!(said.contains(Meta::CLIENT_CAPABILITIES) && said.contains(Meta::SERVER_INFO));
    })
    .await;
}
