//! How a client finds out over HTTP what its server speaks, what counts as evidence, and what
//! it remembers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use turnbuckle::{Client, ClientBuilder, Error, ErrorKind, Result, Revision, client::Discovery};

use crate::{
    raw::said,
    rig::within,
    session::{Listens, shake},
    web::{Post, Web, launch},
};

fn asking() -> ClientBuilder {
    Client::builder().no_proxy()
}

fn discovered(versions: &[&str]) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": {"tools": {}},
        "instructions": "read me",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "script", "version": "9"}},
    })
}

fn unsupported(versions: &[&str]) -> Value {
    json!({"supported": versions, "requested": "2026-07-28"})
}

/// Connects to a server that answers each probe so; checks that there are no more probes.
async fn negotiated(scripts: &[Script]) -> Result<Client> {
    let mut web = Web::new().await;
    let connecting = tokio::spawn(asking().connect(web.url()));
    for script in scripts {
        let post = web.post().await;
        assert_eq!(post.method(), "server/discover");
        assert_eq!(post.header("mcp-method"), Some("server/discover"));
        assert_eq!(post.header("mcp-protocol-version"), Some("2026-07-28"));
        let version = &post.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28");
        script.answer(&post).await;
    }
    let client = connecting.await.unwrap();
    assert_eq!(web.requests(), scripts.len());
    client
}

/// One answer to a probe.
enum Script {
    Result(Value),
    /// A status with a JSON-RPC error.
    Error(u16, i64, Value),
    /// A status with a body of a kind.
    Status(u16, &'static str, &'static str),
    HangsUp,
}
use Script::{HangsUp, Status};

impl Script {
    async fn answer(&self, post: &Post) {
        match self {
            Script::Result(result) => post.result(result.clone()).await,
            Script::Error(status, code, data) => post.error(*status, *code, data.clone()).await,
            Status(status, kind, body) => post.answer(*status, kind, body).await,
            HangsUp => post.hang_up().await,
        }
    }
}

// req: lifecycle:discover:basic
#[tokio::test]
async fn a_discover_result_means_modern() {
    within(async {
        let client =
            negotiated(&[Script::Result(discovered(&["2025-11-25", "2026-07-28"]))]).await.unwrap();
        assert_eq!(client.revision(), Revision::V2026_07_28);
        assert_eq!(client.server_info().unwrap().name, "script");
        assert_eq!(client.instructions().as_deref(), Some("read me"));
        assert!(client.server_capabilities().unwrap().tools.is_some());
    })
    .await;
}

// req: lifecycle:discover:retry-on-32022
#[tokio::test]
async fn an_unsupported_version_is_asked_again_with_what_is_in_common() {
    within(async {
        for status in [400, 200] {
            let refused = Script::Error(status, -32022, unsupported(&["2026-07-28"]));
            let found = Script::Result(discovered(&["2026-07-28"]));
            let client = negotiated(&[refused, found]).await.unwrap();
            assert_eq!(client.revision(), Revision::V2026_07_28);
        }
        // Not for ever.
        let refused = || Script::Error(400, -32022, unsupported(&["2026-07-28"]));
        let error = negotiated(&[refused(), refused()]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        let nothing = Script::Error(400, -32022, unsupported(&["2099-01-01"]));
        let error = negotiated(&[nothing]).await.unwrap_err();
        assert!(error.to_string().contains("2099-01-01"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn any_other_modern_error_means_modern() {
    within(async {
        let capabilities = json!({"requiredCapabilities": {"elicitation": {}}});
        for refused in [
            Script::Error(400, -32020, Value::Null),
            Script::Error(200, -32020, Value::Null),
            Script::Error(400, -32021, capabilities),
        ] {
            let client = negotiated(&[refused]).await.unwrap();
            assert_eq!(client.revision(), Revision::V2026_07_28);
        }
    })
    .await;
}

// req: lifecycle:discover:fallback-method-not-found
#[tokio::test]
async fn any_other_refusal_means_legacy() {
    within(async {
        let scripts: [Script; 11] = [
            Status(404, "text/plain", ""),
            Status(400, "text/plain", ""),
            Status(405, "text/plain", ""),
            Status(415, "text/html", "<html></html>"),
            Status(400, "application/json", r#"{"error":"no session"}"#),
            Script::Error(400, -32000, Value::Null),
            Script::Error(200, -32601, Value::Null),
            Script::Error(400, -32022, Value::Null),
            Script::Error(400, -32022, unsupported(&["2025-11-25"])),
            Script::Result(json!({})),
            Script::Result(discovered(&["2025-06-18"])),
        ];
        for (which, script) in scripts.into_iter().enumerate() {
            let mut web = Web::new().await;
            let connecting = tokio::spawn(asking().connect(web.url()));
            script.answer(&web.post().await).await;
            let (initialize, ..) = shake(&mut web, "s", Listens::No).await;
            let offered = &initialize.body["params"]["protocolVersion"];
            // The newest that both speak, where the server said what it speaks.
            let expected = if which == 10 { "2025-06-18" } else { "2025-11-25" };
            assert_eq!(offered, expected, "{which}");
            let client = connecting.await.unwrap().unwrap();
            assert_eq!(client.revision().as_str(), expected, "{which}");
            assert_eq!(web.requests(), 4, "{which}");
        }
        // If that fails, both failures are told.
        let mut web = Web::new().await;
        let connecting = tokio::spawn(asking().connect(web.url()));
        web.post().await.error(200, -32601, Value::Null).await;
        web.post().await.error(200, -32602, Value::Null).await;
        let error = connecting.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        let text = error.to_string();
        for part in ["server/discover", "-32601", "`initialize` failed", "-32602"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(web.requests(), 2);
    })
    .await;
}

// req: lifecycle:discover:network-error-raises
#[tokio::test]
async fn what_is_about_something_else_is_no_verdict() {
    fn silent_about_eras(error: &Error) {
        assert_ne!(error.kind(), ErrorKind::Connect, "{error}");
        assert!(!error.to_string().contains("2026-07-28"), "{error}");
    }
    within(async {
        for status in [401, 403, 500, 502, 503] {
            let error = negotiated(&[Status(status, "text/plain", "no")]).await.unwrap_err();
            let kind = match status {
                401 => ErrorKind::AuthorizationRequired,
                _ => ErrorKind::Http,
            };
            assert_eq!((error.kind(), error.status()), (kind, Some(status)));
            silent_about_eras(&error);
            let error =
                negotiated(&[Script::Error(status, -32000, Value::Null)]).await.unwrap_err();
            assert_eq!(error.as_rpc().unwrap().code, -32000);
            assert_eq!(error.status(), Some(status));
            silent_about_eras(&error);
        }
        let error = negotiated(&[HangsUp]).await.unwrap_err();
        assert!(error.is_closed(), "{error}");
        silent_about_eras(&error);
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", gone.local_addr().unwrap());
        drop(gone);
        let error = asking().connect(url).await.unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
        silent_about_eras(&error);
    })
    .await;
}

#[tokio::test]
async fn silence_is_no_verdict_and_closes_the_probe() {
    within(async {
        let mut web = Web::new().await;
        let time = Duration::from_secs(8);
        let connecting = tokio::spawn(asking().probe_timeout(time).connect(web.url()));
        let post = web.post().await;
        tokio::time::pause();
        tokio::time::advance(time).await;
        let error = connecting.await.unwrap().unwrap_err();
        tokio::time::resume();
        assert!(error.is_timeout(), "{error}");
        post.closed().await;
        assert_eq!(web.requests(), 1);
    })
    .await;
}

/// Connects to a server that answers one probe.
async fn probed(web: &mut Web, builder: ClientBuilder, url: &str) -> Client {
    let connecting = tokio::spawn(builder.connect(url.to_owned()));
    web.post().await.result(discovered(&["2026-07-28"])).await;
    connecting.await.unwrap().unwrap()
}

// req: lifecycle:mode:prior-discover-zero-rtt, typescript:client:connect:prior-zero-roundtrip
#[tokio::test]
async fn what_is_known_before_costs_no_round_trip() {
    within(async {
        let mut web = Web::new().await;
        let url = web.url();
        let first = probed(&mut web, asking(), &url).await;
        let kept = serde_json::to_string(&first.discovery()).unwrap();
        let prior: Discovery = serde_json::from_str(&kept).unwrap();
        assert_eq!(prior, first.discovery());
        let second = asking().discovery(prior).connect(&url).await.unwrap();
        assert_eq!(web.requests(), 1);
        assert_eq!(second.revision(), Revision::V2026_07_28);
        assert_eq!(second.server_info(), first.server_info());
        assert_eq!(second.instructions().as_deref(), Some("read me"));
        assert_eq!(second.discovery(), first.discovery());
        let call = launch(second.call_tool("t", ()));
        web.post().await.result(said("ok")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
    })
    .await;
}

#[tokio::test]
async fn an_address_is_asked_once() {
    within(async {
        let mut web = Web::new().await;
        let proxy = format!("http://{}", web.address());
        let through = || Client::builder().proxy(proxy.clone());
        let first = probed(&mut web, through(), "http://asked-once.test/mcp").await;
        let second = through().connect("http://asked-once.test:80/mcp").await.unwrap();
        assert_eq!(web.requests(), 1);
        assert_eq!(second.server_info(), first.server_info());
        // Another origin, another server there, someone else, and who wants to know it anew.
        probed(&mut web, through(), "http://asked-once.test:8080/mcp").await;
        probed(&mut web, through(), "http://asked-once.test/other").await;
        let someone = || through().header("authorization", "Bearer 1");
        probed(&mut web, someone(), "http://asked-once.test/mcp").await;
        someone().connect("http://asked-once.test/mcp").await.unwrap();
        probed(&mut web, through().forget_discovery(), "http://asked-once.test/mcp").await;
        assert_eq!(web.requests(), 5);
    })
    .await;
}

#[tokio::test]
async fn what_turns_out_to_be_wrong_is_forgotten() {
    within(async {
        let mut web = Web::new().await;
        let proxy = format!("http://{}", web.address());
        let through = || Client::builder().proxy(proxy.clone());
        probed(&mut web, through(), "http://rolled-back.test/mcp").await;
        let client = through().connect("http://rolled-back.test/mcp").await.unwrap();
        let call = launch(client.call_tool("t", ()));
        web.post().await.answer(404, "text/plain", "").await;
        call.await.unwrap().unwrap_err();
        probed(&mut web, through(), "http://rolled-back.test/mcp").await;
        assert_eq!(web.requests(), 3);
    })
    .await;
}

#[tokio::test]
async fn a_failure_is_not_remembered() {
    within(async {
        let mut web = Web::new().await;
        let proxy = format!("http://{}", web.address());
        let through = || Client::builder().proxy(proxy.clone());
        for status in [404, 503] {
            let connecting = tokio::spawn(through().connect("http://failing.test/mcp"));
            web.post().await.answer(status, "text/plain", "").await;
            if status == 404 {
                // The handshake, and the older wire.
                web.post().await.answer(404, "text/plain", "").await;
                web.post().await.answer(404, "text/plain", "").await;
            }
            connecting.await.unwrap().unwrap_err();
        }
        probed(&mut web, through(), "http://failing.test/mcp").await;
        assert_eq!(web.requests(), 5);
    })
    .await;
}

/// The server is there, and has nothing at all in that place.
#[tokio::test]
async fn a_path_that_is_not_there_in_any_way_is_asked_about() {
    within(async {
        let mut web = Web::new().await;
        for statuses in [[404, 404, 404], [404, 404, 405], [405, 404, 404], [404, 405, 404]] {
            let connecting = tokio::spawn(asking().forget_discovery().connect(web.url()));
            for status in statuses {
                web.post().await.answer(status, "text/plain", "").await;
            }
            let error = connecting.await.unwrap().unwrap_err();
            let asks = error.to_string().ends_with("; is the path right?");
            assert_eq!(asks, statuses == [404; 3], "{statuses:?}: {error}");
            assert_eq!(error.status(), Some(statuses[1]), "{error}");
        }
    })
    .await;
}

/// What a server of plain http answers to the first bytes of a secure connection is no such record.
#[tokio::test]
async fn whoever_asks_a_plain_server_for_tls_is_told_that_it_may_be_one() {
    within(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mcp", listener.local_addr().unwrap());
        let connecting = tokio::spawn(asking().connect(url));
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        let error = connecting.await.unwrap().unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("can't reach https://127.0.0.1"), "{text}");
        assert!(text.ends_with("InvalidContentType; the server may speak plain http"), "{text}");
        assert!(std::error::Error::source(&error).is_some());
        drop(stream);
    })
    .await;
}

// req: lifecycle:mode:legacy-never-probes, lifecycle:mode:pin-never-handshakes
// req: typescript:hosting:entry:pin-negotiation
#[tokio::test]
async fn a_pinned_revision_asks_nothing() {
    within(async {
        let mut web = Web::new().await;
        let client = asking().revision(Revision::V2026_07_28).connect(web.url()).await.unwrap();
        assert_eq!(client.revision(), Revision::V2026_07_28);
        assert_eq!((web.requests(), web.connections()), (0, 0));
        let legacy = asking().revision(Revision::V2025_06_18);
        let connecting = tokio::spawn(legacy.connect(web.url()));
        shake(&mut web, "s", Listens::No).await;
        assert_eq!(connecting.await.unwrap().unwrap().revision(), Revision::V2025_06_18);
        assert_eq!(web.requests(), 3);
    })
    .await;
}
