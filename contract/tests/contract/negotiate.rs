//! How a client finds out what its server speaks: a table of servers that are scripts, and
//! exactly what each of them is sent.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle::{Client, ClientBuilder, Error, ErrorKind, Result, Revision, types::Era};

use crate::{
    raw::{Peer, connecting, initialized},
    rig::virtually,
};

/// How the script treats one request.
enum Treat {
    Result(Value),
    Error(Value),
    /// Nothing is said.
    Silence,
    /// The stream ends.
    End,
    /// These bytes come first.
    After(&'static [u8], Box<Treat>),
    /// The request before this one is answered first, then this one is treated.
    Earlier(Value, Box<Treat>),
    /// This one is answered, then the request before it: at once, or when the first answer
    /// has been acted on.
    Late(Value, Value, Gap),
}
use Treat::{After, Earlier, End, Late, Silence};

enum Gap {
    None,
    Pause,
}

/// Connects to a server that treats the requests so. Returns what became of it, and what the
/// client sent in all: method and version.
async fn negotiated(builder: ClientBuilder, treats: Vec<Treat>) -> (Result<Client>, Vec<String>) {
    let (mut peer, connecting) = connecting(builder, 1 << 20);
    let (mut sent, mut requests) = (Vec::new(), Vec::new());
    let mut treats = treats.into_iter();
    while let Ok(Some(line)) = tokio::time::timeout(Duration::from_secs(600), peer.line()).await {
        let message: Value = serde_json::from_str(&line).unwrap();
        sent.push(summary(&message));
        if message.get("id").is_none() {
            continue;
        }
        requests.push(message);
        if let Some(treat) = treats.next()
            && treated(&mut peer, &requests, treat).await == Goes::Away
        {
            peer.finish().await;
        }
    }
    assert_eq!(treats.count(), 0, "not everything was asked for: {sent:?}");
    (connecting.await.unwrap(), sent)
}

#[derive(PartialEq)]
enum Goes {
    On,
    Away,
}

async fn treated(peer: &mut Peer, requests: &[Value], treat: Treat) -> Goes {
    let [.., request] = requests else { return Goes::On };
    match treat {
        Treat::Result(result) => peer.answer(request, result).await,
        Treat::Error(error) => peer.refuse(request, error).await,
        Silence => {}
        End => return Goes::Away,
        After(bytes, treat) => {
            peer.bytes(bytes).await;
            return Box::pin(treated(peer, requests, *treat)).await;
        }
        Earlier(result, treat) => {
            peer.answer(&requests[requests.len() - 2], result).await;
            return Box::pin(treated(peer, requests, *treat)).await;
        }
        Late(result, late, gap) => {
            peer.answer(request, result).await;
            if let Gap::Pause = gap {
                // Time passes when everyone else has done what there was to do.
                let pause = Duration::from_millis(1);
                let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
            }
            peer.answer(&requests[requests.len() - 2], late).await;
        }
    }
    Goes::On
}

fn summary(message: &Value) -> String {
    let method = message["method"].as_str().unwrap_or("an answer");
    let params = &message["params"];
    let stamped = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
    let version = params["protocolVersion"].as_str().or(stamped.as_str());
    version.map_or(method.to_owned(), |version| format!("{method} {version}"))
}

fn discovered(versions: &[&str]) -> Treat {
    Treat::Result(discover_result(versions))
}

fn discover_result(versions: &[&str]) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

fn welcome(version: &str) -> Treat {
    Treat::Result(initialized(version))
}

fn refused(code: i64, data: Value) -> Treat {
    if data.is_null() {
        return Treat::Error(json!({"code": code, "message": "no"}));
    }
    Treat::Error(json!({"code": code, "message": "no", "data": data}))
}

fn unsupported(versions: &[&str]) -> Treat {
    refused(-32022, json!({"supported": versions, "requested": "2026-07-28"}))
}

const PROBE: &str = "server/discover 2026-07-28";
const HELLO: &str = "initialize 2025-11-25";
const READY: &str = "notifications/initialized";

/// Runs one row of the table to its end in a connected client.
async fn row(name: &str, treats: Vec<Treat>, sent: &[&str], revision: Revision) -> Client {
    let (client, seen) = negotiated(Client::builder(), treats).await;
    assert_eq!(seen, sent, "{name}");
    let client = client.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(client.revision(), revision, "{name}");
    client
}

/// Runs one row of the table to its end in an error.
async fn failing_row(name: &str, treats: Vec<Treat>, sent: &[&str]) -> Error {
    let (client, seen) = negotiated(Client::builder(), treats).await;
    assert_eq!(seen, sent, "{name}");
    match client {
        Ok(client) => panic!("{name}: connected, speaking {}", client.revision()),
        Err(error) => error,
    }
}

// req: lifecycle:discover:basic, lifecycle:discover:retry-on-32022
// req: lifecycle:stateless:no-initialize
#[tokio::test(start_paused = true)]
async fn a_modern_server_is_recognised() {
    virtually(async {
        let modern = Revision::V2026_07_28;
        let capabilities = json!({"requiredCapabilities": {"sampling": {}}});
        for (name, treats, sent) in [
            ("its own version", vec![discovered(&["2026-07-28"])], &[PROBE][..]),
            ("several", vec![discovered(&["2025-11-25", "2026-07-28", "2099-01-01"])], &[PROBE]),
            ("the headers disagree", vec![refused(-32020, json!(null))], &[PROBE]),
            ("a capability is missing", vec![refused(-32021, capabilities)], &[PROBE]),
            (
                "the same version after all",
                vec![unsupported(&["2026-07-28"]), discovered(&["2026-07-28"])],
                &[PROBE, PROBE],
            ),
        ] {
            row(name, treats, sent, modern).await;
        }
    })
    .await;
}

// req: lifecycle:discover:fallback-method-not-found, lifecycle:initialized-notification
#[tokio::test(start_paused = true)]
async fn any_answer_that_is_not_modern_means_legacy() {
    virtually(async {
        let legacy = Revision::V2025_11_25;
        let codes =
            [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32042, 0, 1, 404];
        for code in codes {
            let treats = vec![refused(code, json!(null)), welcome("2025-11-25")];
            row(&format!("error {code}"), treats, &[PROBE, HELLO, READY], legacy).await;
        }
        // The right code without the shape that goes with it.
        for (code, data) in [
            (-32022, json!(null)),
            (-32022, json!({"supported": "2026-07-28", "requested": "x"})),
            (-32022, json!({"supported": ["2026-07-28"]})),
            (-32021, json!(null)),
            (-32021, json!([])),
        ] {
            let name = format!("error {code} with {data}");
            let treats = vec![refused(code, data), welcome("2025-11-25")];
            row(&name, treats, &[PROBE, HELLO, READY], legacy).await;
        }
        for result in [json!({}), json!([]), json!(null), json!({"supportedVersions": "x"}), said()]
        {
            let name = format!("result {result}");
            let treats = vec![Treat::Result(result), welcome("2025-11-25")];
            row(&name, treats, &[PROBE, HELLO, READY], legacy).await;
        }
    })
    .await;
}

fn said() -> Value {
    crate::raw::said("what?")
}

#[tokio::test(start_paused = true)]
async fn only_legacy_versions_lead_to_the_newest_of_them() {
    virtually(async {
        let hello = "initialize 2025-06-18";
        for (name, first) in [
            ("refused", unsupported(&["2025-03-26", "2025-06-18", "2024-11-05"])),
            ("discovered", discovered(&["2025-03-26", "2025-06-18", "2024-11-05"])),
        ] {
            let treats = vec![first, welcome("2025-06-18")];
            row(name, treats, &[PROBE, hello, READY], Revision::V2025_06_18).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn silence_means_legacy_after_ten_seconds() {
    virtually(async {
        let before = tokio::time::Instant::now();
        let treats = vec![Silence, welcome("2025-11-25")];
        let connected =
            async { row("silence", treats, &[PROBE, HELLO, READY], Revision::V2025_11_25).await };
        connected.await;
        // The script listens ten minutes longer.
        assert_eq!(before.elapsed(), Duration::from_secs(610));
        let before = tokio::time::Instant::now();
        let builder = Client::builder().probe_timeout(Duration::from_secs(3));
        let treats = vec![Silence, welcome("2025-11-25")];
        let (client, sent) = negotiated(builder, treats).await;
        assert_eq!((client.unwrap().revision(), sent.len()), (Revision::V2025_11_25, 3));
        assert_eq!(before.elapsed(), Duration::from_secs(603));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_late_discovery_wins_until_initialize_is_answered() {
    virtually(async {
        let modern = || discover_result(&["2026-07-28"]);
        let late = Earlier(modern(), Box::new(Silence));
        row("late, then silence", vec![Silence, late], &[PROBE, HELLO], Revision::V2026_07_28)
            .await;
        // The handshake's own answer comes to nobody.
        let late = Earlier(modern(), Box::new(welcome("2025-11-25")));
        row("late, then an answer", vec![Silence, late], &[PROBE, HELLO], Revision::V2026_07_28)
            .await;
        let too_late = Late(initialized("2025-11-25"), modern(), Gap::Pause);
        let sent = &[PROBE, HELLO, READY];
        let client = row("too late", vec![Silence, too_late], sent, Revision::V2025_11_25).await;
        assert_eq!(client.counters().late_answers, 1);
        // An error that comes late decides nothing.
        let stumble = Earlier(json!({"nothing": "modern"}), Box::new(welcome("2025-11-25")));
        row("late, not modern", vec![Silence, stumble], sent, Revision::V2025_11_25).await;
    })
    .await;
}

/// The order on the wire decides, not who looked first.
#[tokio::test(start_paused = true)]
async fn a_discovery_behind_the_handshakes_answer_is_too_late_in_the_same_breath_too() {
    virtually(async {
        let modern = discover_result(&["2026-07-28"]);
        let too_late = Late(initialized("2025-11-25"), modern, Gap::None);
        let sent = &[PROBE, HELLO, READY];
        row("too late", vec![Silence, too_late], sent, Revision::V2025_11_25).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn junk_before_the_answer_is_skipped() {
    virtually(async {
        let junk = b"Listening on stdio\n\n\xff\xfe\n[1,2\n{\"level\":\"info\"}\n";
        let treats = vec![After(junk, Box::new(discovered(&["2026-07-28"])))];
        let client = row("modern", treats, &[PROBE], Revision::V2026_07_28).await;
        assert!(client.counters().unreadable >= 3, "{:?}", client.counters());
        let treats = vec![
            After(junk, Box::new(refused(-32601, json!(null)))),
            After(junk, Box::new(welcome("2025-11-25"))),
        ];
        row("legacy", treats, &[PROBE, HELLO, READY], Revision::V2025_11_25).await;
    })
    .await;
}

/// A server that prints its banner and nothing else: the banner is the best hint there is.
#[tokio::test(start_paused = true)]
async fn junk_is_quoted_when_the_handshake_fails() {
    virtually(async {
        let junk = b"Error: config file not found\n";
        let error = failing_row("banner", vec![After(junk, Box::new(End))], &[PROBE]).await;
        assert!(error.to_string().contains("config file not found"), "{error}");
        let banner = After(b"one\ntwo\n", Box::new(Silence));
        let error = failing_row("silent", vec![banner, Silence], &[PROBE, HELLO]).await;
        assert!(error.is_timeout(), "{error}");
        assert!(error.to_string().ends_with("; it printed `one`, which is no message"), "{error}");
    })
    .await;
}

// req: lifecycle:version:reject-unsupported, lifecycle:version:no-overlap-rejects
// req: lifecycle:discover:retry-on-32022
#[tokio::test(start_paused = true)]
async fn nothing_in_common_is_refused() {
    virtually(async {
        for (name, treats, sent, named) in [
            ("discovered", vec![discovered(&["2099-01-01"])], &[PROBE][..], "2099-01-01"),
            ("unsupported", vec![unsupported(&["2099-01-01"])], &[PROBE], "2099-01-01"),
            (
                "refused twice",
                vec![unsupported(&["2026-07-28"]), unsupported(&["2026-07-28"])],
                &[PROBE, PROBE],
                "2026-07-28",
            ),
            (
                "a counter-offer from the future",
                vec![refused(-32601, json!(null)), welcome("2099-01-01")],
                &[PROBE, HELLO],
                "2099-01-01",
            ),
            (
                "a modern counter-offer",
                vec![refused(-32601, json!(null)), welcome("2026-07-28")],
                &[PROBE, HELLO],
                "2026-07-28",
            ),
        ] {
            let error = failing_row(name, treats, sent).await;
            assert_eq!(error.kind(), ErrorKind::Connect, "{name}: {error}");
            assert!(error.to_string().contains(named), "{name}: {error}");
        }
    })
    .await;
}

// req: lifecycle:version:downgrade
#[tokio::test(start_paused = true)]
async fn an_older_counter_offer_is_accepted() {
    virtually(async {
        for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
            let treats = vec![refused(-32601, json!(null)), welcome(revision.as_str())];
            row(revision.as_str(), treats, &[PROBE, HELLO, READY], revision).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn both_failures_are_kept() {
    virtually(async {
        let treats = vec![refused(-32601, json!(null)), refused(-32000, json!(null))];
        let error = failing_row("both refused", treats, &[PROBE, HELLO]).await;
        let text = error.to_string();
        assert!(text.contains("-32601") && text.contains("-32000"), "{text}");
        let error = failing_row(
            "silence, then refused",
            vec![Silence, refused(-32000, json!(null))],
            &[PROBE, HELLO],
        )
        .await;
        assert!(error.to_string().contains("-32000"), "{error}");
    })
    .await;
}

// req: lifecycle:discover:network-error-raises
#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_not_a_legacy_server() {
    virtually(async {
        let error = failing_row("at once", vec![End], &[PROBE]).await;
        assert!(error.is_closed(), "{error}");
        let treats = vec![refused(-32601, json!(null)), End];
        let error = failing_row("at the handshake", treats, &[PROBE, HELLO]).await;
        assert!(error.is_closed(), "{error}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    virtually(async {
        let error = failing_row("silence", vec![Silence, Silence], &[PROBE, HELLO]).await;
        assert!(error.is_timeout(), "{error}");
    })
    .await;
}

// req: lifecycle:mode:legacy-never-probes, lifecycle:mode:pin-never-handshakes
// req: lifecycle:version:custom-supported-versions, lifecycle:version:no-overlap-rejects
// req: lifecycle:initialized-notification
#[tokio::test(start_paused = true)]
async fn a_pinned_revision_sends_exactly_what_it_needs() {
    virtually(async {
        for revision in Revision::ALL {
            let builder = || Client::builder().revision(revision);
            if revision.era() == Era::Modern {
                let (client, sent) = negotiated(builder(), vec![]).await;
                assert_eq!((client.unwrap().revision(), sent), (revision, vec![]));
                continue;
            }
            let hello = format!("initialize {revision}");
            let (client, sent) = negotiated(builder(), vec![welcome(revision.as_str())]).await;
            assert_eq!(client.unwrap().revision(), revision);
            assert_eq!(sent, [&*hello, READY]);
            // Another revision is not what was asked for.
            let other = if revision == Revision::V2024_11_05 { "2025-11-25" } else { "2024-11-05" };
            let (client, sent) = negotiated(builder(), vec![welcome(other)]).await;
            assert_eq!(client.unwrap_err().kind(), ErrorKind::Connect);
            assert_eq!(sent, [&*hello]);
        }
    })
    .await;
}

// req: lifecycle:stateless:request-envelope
#[tokio::test(start_paused = true)]
async fn the_probe_is_fully_stamped() {
    virtually(async {
        let (mut peer, _connecting) = connecting(Client::builder().info("host", "2.1"), 1 << 20);
        let probe = peer.read().await;
        assert!(probe["id"].is_u64() || probe["id"].is_string(), "{probe}");
        let expected = json!({
            "jsonrpc": "2.0",
            "id": probe["id"],
            "method": "server/discover",
            "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "2.1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }},
        });
        assert_eq!(probe, expected);
    })
    .await;
}

// req: lifecycle:initialize:basic, lifecycle:initialized-notification
#[tokio::test(start_paused = true)]
async fn a_handshake_carries_no_modern_word() {
    virtually(async {
        let builder = Client::builder().info("host", "2.1").revision(Revision::V2025_11_25);
        let (mut peer, _connecting) = connecting(builder, 1 << 20);
        let hello = peer.read().await;
        let expected = json!({
            "jsonrpc": "2.0",
            "id": hello["id"],
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "host", "version": "2.1"},
            },
        });
        assert_eq!(hello, expected);
        peer.answer(&hello, initialized("2025-11-25")).await;
        let ready = peer.read().await;
        assert_eq!(ready, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    })
    .await;
}

/// A server may ping before the handshake is over, and may talk.
// req: ping:server-to-client, lifecycle:pre-initialization-ordering
#[tokio::test(start_paused = true)]
async fn a_ping_in_the_middle_of_the_handshake_is_answered() {
    virtually(async {
        let builder = Client::builder().revision(Revision::V2025_11_25);
        let (mut peer, connecting) = connecting(builder, 1 << 20);
        let hello = peer.read().await;
        let level = json!({"level": "info", "data": "starting"});
        peer.say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": level}))
            .await;
        let pong = peer.ask(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
        assert_eq!(pong["result"], json!({}));
        peer.answer(&hello, initialized("2025-11-25")).await;
        assert_eq!(peer.read().await["method"], "notifications/initialized");
        connecting.await.unwrap().unwrap();
    })
    .await;
}
