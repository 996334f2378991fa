//! Owns the way to a fixture over every wire, in either era, and the bound on every test.
//! Does not own any expectation.

use std::{
    future::IntoFuture,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use turnbuckle::{
    Call, Client, ClientBuilder, Error, Limits, Result, Revision, Server,
    transport::child_process::Spawn,
    types::{CallToolResult, Era},
};
use turnbuckle_contract::{Fixture, Ledger, Tenant, server};

/// How long a test may take before it counts as hung.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// `tokio::io::duplex`.
    Memory,
    /// A child process.
    Stdio,
    /// A Unix socket.
    Unix,
    /// No wire at all.
    Direct,
    /// Streamable HTTP over a TCP socket.
    Http,
    /// The HTTP+SSE of 2024-11-05 beside it; legacy only.
    Sse,
}

/// A client that is connected to a fixture of its own.
pub(crate) struct Rig {
    pub(crate) client: Client,
    pub(crate) wire: Wire,
    pub(crate) era: Era,
    /// The fixture's memory, where it is ours too: everywhere but in a child.
    pub(crate) fixture: Option<Fixture>,
}

/// The revision that the suite pins for an era.
pub(crate) fn pinned(era: Era) -> Revision {
    match era {
        Era::Legacy => Revision::V2025_11_25,
        _ => Revision::V2026_07_28,
    }
}

impl Rig {
    pub(crate) async fn new(wire: Wire, era: Era) -> Rig {
        Rig::with(wire, era, Client::builder(), &[]).await
    }

    /// Connects with these settings to a fixture with these limits.
    pub(crate) async fn with(
        wire: Wire,
        era: Era,
        builder: ClientBuilder,
        limits: &[(&str, usize)],
    ) -> Rig {
        let builder = builder.revision(pinned(era));
        let fixture = Fixture::default();
        let server = server(&fixture, limited(limits));
        let client = reach(wire, builder, (&server, &fixture), child(limits)).await;
        let fixture = (wire != Wire::Stdio).then_some(fixture);
        Rig { client, wire, era, fixture }
    }

    /// A call of a tool, not yet made, and with no clock that could end it.
    pub(crate) fn tool(&self, name: &str, arguments: Value) -> Call<CallToolResult> {
        self.client.call_tool(name, arguments).no_timeouts()
    }

    /// The text that a tool answers with.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments).await.unwrap();
        assert_ne!(result.is_error, Some(true), "{name}: {}", result.to_text());
        result.to_text()
    }

    pub(crate) async fn release(&self, key: &str) {
        self.tool("release", json!({"key": key})).await.unwrap();
    }

    pub(crate) async fn report(&self) -> Ledger {
        let result = self.tool("report", json!({})).await.unwrap();
        result.structured_content.unwrap().decode().unwrap()
    }

    /// Asks for reports until one is as wished.
    pub(crate) async fn until(&self, wish: impl Fn(&Ledger) -> bool) -> Ledger {
        let deadline = Instant::now() + BOUND;
        loop {
            let ledger = self.report().await;
            if wish(&ledger) {
                return ledger;
            }
            assert!(Instant::now() < deadline, "this is how it stayed: {ledger:?}");
            tokio::task::yield_now().await;
        }
    }

    /// Makes a call in the background.
    pub(crate) fn launch<T: Send + 'static>(&self, call: Call<T>) -> Flight<T> {
        Flight(tokio::spawn(call.into_future()))
    }

    /// Makes a call that is in flight when this returns, and runs on in the background.
    pub(crate) async fn enter<T: Send + 'static>(&self, call: Call<T>) -> Flight<T> {
        let mut call = call.into_future();
        let early = poll_once(&mut call).await;
        Flight(tokio::spawn(async move {
            match early {
                Some(outcome) => outcome,
                None => call.await,
            }
        }))
    }

    /// Makes a call of a tool that holds, and waits until its handler has started.
    pub(crate) async fn hold(&self, tool: &str, key: &str) -> Flight<CallToolResult> {
        self.hold_as(self.tool(tool, json!({"key": key})), key).await
    }

    /// The same for a call with options.
    pub(crate) async fn hold_as<T: Send + 'static>(&self, call: Call<T>, key: &str) -> Flight<T> {
        let before = self.report().await.of(key).started;
        let flight = self.launch(call);
        self.until(|ledger| ledger.of(key).started > before).await;
        flight
    }

    /// Proves that the connection still serves.
    pub(crate) async fn alive(&self) {
        assert_eq!(self.text("echo", json!({"text": "alive"})).await, "alive");
    }
}

/// A call that runs in the background.
pub(crate) struct Flight<T>(JoinHandle<Result<T>>);

impl<T> Flight<T> {
    /// Drops the call's future, and returns when that has been done.
    pub(crate) async fn abandon(self) {
        self.0.abort();
        assert!(self.0.await.is_err_and(|error| error.is_cancelled()), "it had ended before");
    }

    pub(crate) async fn outcome(self) -> Result<T> {
        self.0.await.unwrap()
    }

    pub(crate) async fn error(self) -> Error {
        match self.outcome().await {
            Ok(_) => panic!("the call succeeded"),
            Err(error) => error,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_finished()
    }
}

/// Connects to a server over any wire; `child` is the same server as a program.
pub(crate) async fn reach(
    wire: Wire,
    builder: ClientBuilder,
    (server, fixture): (&Server, &Fixture),
    child: Spawn,
) -> Client {
    let client = match wire {
        Wire::Memory => {
            let (ours, theirs) = tokio::io::duplex(4096);
            serve(server.serve(theirs), fixture);
            builder.over(ours).await
        }
        Wire::Unix => {
            let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
            serve(server.serve(theirs), fixture);
            builder.over(ours).await
        }
        Wire::Direct => builder.in_process(server).await,
        Wire::Http | Wire::Sse => {
            let serving = server.serve_http("127.0.0.1:0").with_sse("/sse");
            let bound = serving.with_shutdown(fixture.leaving()).bind().await.unwrap();
            let url = match wire {
                Wire::Sse => bound.url().replace("/mcp", "/sse"),
                _ => bound.url(),
            };
            tokio::spawn(bound.into_future());
            builder.no_proxy().connect(url).await
        }
        Wire::Stdio => builder.spawn(child).await,
    };
    client.unwrap()
}

fn serve(serving: turnbuckle::server::Serving, fixture: &Fixture) {
    let serving = serving.extension(Tenant("connection".to_owned()));
    tokio::spawn(serving.with_shutdown(fixture.leaving()).into_future());
}

fn limited(limits: &[(&str, usize)]) -> Limits {
    limits.iter().fold(Limits::default(), |limits, (name, value)| match *name {
        "--in-flight" => limits.in_flight(*value).http_in_flight(*value),
        "--line-bytes" => limits.line_bytes(*value),
        "--listeners" => limits.listeners(*value),
        _ => panic!("no such limit: {name}"),
    })
}

/// The fixture as a program.
pub(crate) fn child(limits: &[(&str, usize)]) -> Spawn {
    let mut command = program();
    for (name, value) in limits {
        command.arg(name).arg(value.to_string());
    }
    Spawn::new(command)
}

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fixture"))
}

/// A test in real time: one that hangs fails, by name.
pub(crate) async fn within<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, test).await.expect("the test hung")
}

/// The same for a test that moves the clock on by hand, up to two minutes.
pub(crate) async fn within_moved_time<T>(test: impl Future<Output = T>) -> T {
    let bound = BOUND + Duration::from_secs(120);
    tokio::time::timeout(bound, test).await.expect("the test hung")
}

/// A test in paused time, which runs on by itself as soon as everyone waits: one that hangs
/// arrives here at once.
pub(crate) async fn virtually<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(7 * 24 * 3600), test).await.expect("the test hung")
}

/// Lets everyone else run until `wish` holds.
pub(crate) async fn eventually(wish: impl Fn() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !wish() {
        assert!(Instant::now() < deadline, "it never came true");
        tokio::task::yield_now().await;
    }
}

/// Why a call failed, without whether it may have run.
pub(crate) fn why(error: &Error) -> String {
    let told = error.to_string();
    told.replace("; the call may have run", "").replace("; the call was not sent", "")
}

/// Polls a future once; `None` if it is not ready.
pub(crate) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| match std::pin::Pin::new(&mut *future).poll(context) {
        std::task::Poll::Ready(value) => std::task::Poll::Ready(Some(value)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

/// Runs a test that measures its process in a process of its own: this program again, with
/// nothing but that test.
pub(crate) fn alone(name: &str, test: impl Future<Output = ()>) {
    const MARK: &str = "TURNBUCKLE_CONTRACT_ALONE";
    if std::env::var_os(MARK).is_none() {
        let (_, name) = name.split_once("::").expect("a path starts with its crate");
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output =
            command.args(["--exact", name, "--nocapture"]).env(MARK, "1").output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // It does much, and the machine may be busy.
    runtime.block_on(async {
        tokio::time::timeout(6 * BOUND, test).await.expect("the test hung");
    });
}

/// Makes a test of each function, on each wire, in each era. A function takes a [`Rig`], or a
/// wire and an era if it connects by itself.
macro_rules! contract {
    ($group:ident on $wires:tt in $eras:tt: $($test:ident),+ $(,)?) => {
        mod $group {
            $crate::rig::contract!(@wires rigged $wires $eras [$($test)+]);
        }
    };
    ($group:ident unconnected on $wires:tt in $eras:tt: $($test:ident),+ $(,)?) => {
        mod $group {
            $crate::rig::contract!(@wires bare $wires $eras [$($test)+]);
        }
    };
    ($group:ident alone on $wires:tt in $eras:tt: $($test:ident),+ $(,)?) => {
        mod $group {
            $crate::rig::contract!(@wires alone $wires $eras [$($test)+]);
        }
    };
    (@wires $kind:ident [$($wire:ident)+] $eras:tt $tests:tt) => {
        $($crate::rig::contract!(@wire $kind $wire $eras $tests);)+
    };
    (@wire $kind:ident memory $eras:tt $tests:tt) => {
        mod memory { $crate::rig::contract!(@eras $kind Memory $eras $tests); }
    };
    (@wire $kind:ident stdio $eras:tt $tests:tt) => {
        mod stdio { $crate::rig::contract!(@eras $kind Stdio $eras $tests); }
    };
    (@wire $kind:ident unix $eras:tt $tests:tt) => {
        mod unix { $crate::rig::contract!(@eras $kind Unix $eras $tests); }
    };
    (@wire $kind:ident http $eras:tt $tests:tt) => {
        mod http { $crate::rig::contract!(@eras $kind Http $eras $tests); }
    };
    (@wire $kind:ident sse $eras:tt $tests:tt) => {
        mod sse { $crate::rig::contract!(@eras $kind Sse [legacy] $tests); }
    };
    (@wire $kind:ident direct $eras:tt $tests:tt) => {
        mod direct { $crate::rig::contract!(@eras $kind Direct $eras $tests); }
    };
    (@eras $kind:ident $wire:ident [$($era:ident)+] $tests:tt) => {
        $($crate::rig::contract!(@era $kind $wire $era $tests);)+
    };
    (@era $kind:ident $wire:ident legacy $tests:tt) => {
        mod legacy { $crate::rig::contract!(@tests $kind $wire Legacy $tests); }
    };
    (@era $kind:ident $wire:ident modern $tests:tt) => {
        mod modern { $crate::rig::contract!(@tests $kind $wire Modern $tests); }
    };
    (@tests rigged $wire:ident $era:ident [$($test:ident)+]) => {
        $(
            #[tokio::test]
            async fn $test() {
                $crate::rig::within(async {
                    let (wire, era) = ($crate::rig::Wire::$wire, turnbuckle::types::Era::$era);
                    let rig = $crate::rig::Rig::new(wire, era).await;
                    super::super::super::$test(&rig).await;
                })
                .await;
            }
        )+
    };
    (@tests alone $wire:ident $era:ident [$($test:ident)+]) => {
        $(
            #[test]
            fn $test() {
                let (wire, era) = ($crate::rig::Wire::$wire, turnbuckle::types::Era::$era);
                let name = concat!(module_path!(), "::", stringify!($test));
                $crate::rig::alone(name, async move {
                    let rig = $crate::rig::Rig::new(wire, era).await;
                    super::super::super::$test(&rig).await;
                });
            }
        )+
    };
    (@tests bare $wire:ident $era:ident [$($test:ident)+]) => {
        $(
            #[tokio::test]
            async fn $test() {
                let (wire, era) = ($crate::rig::Wire::$wire, turnbuckle::types::Era::$era);
                $crate::rig::within(super::super::super::$test(wire, era)).await;
            }
        )+
    };
}
pub(crate) use contract;
