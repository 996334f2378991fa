//! The end of a server that was started: every signal to the command, in every state of the command,
//! with every kind of server.

mod cell;

use std::thread;

use rustix::process::Signal;

use cell::Cell;

/// How a server behaves. Every server reports what it receives: `eof`, `term`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Server {
    /// Exits at the end of its input.
    Obeys,
    /// Exits at SIGTERM, not at the end of its input.
    IgnoresEof,
    /// Exits neither at the end of its input nor at SIGTERM.
    IgnoresTerm,
    /// Obeys, and has a child in its process group that does not read.
    Forks,
    /// Obeys, and has a child in a session of its own.
    Setsid,
}

/// What the command does when it gets the signal.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// A bridge without a client.
    Idle,
    /// `turnbuckle call`, with the call in flight.
    Calling,
    /// A bridge with a call of a modern client, which has a question of the legacy server to answer.
    Parked,
    /// `turnbuckle listen`.
    Listening,
    /// A bridge with a call in flight.
    Bridging,
}

/// What becomes of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Ends,
    Stays,
}

/// What becomes of a server, and of its child if it has one.
struct Promise {
    /// What the server receives, where that is certain.
    received: Option<&'static [&'static str]>,
    server: Fate,
    child: Option<Fate>,
}

const fn promise(
    received: Option<&'static [&'static str]>,
    server: Fate,
    child: Option<Fate>,
) -> Promise {
    Promise { received, server, child }
}

use Fate::{Ends, Stays};

const EOF: Option<&[&str]> = Some(&["eof"]);
const EOF_TERM: Option<&[&str]> = Some(&["eof", "term"]);

/// The promises, the same in every state. After SIGKILL of the command only the kernel acts: it closes
/// the pipes and sends SIGTERM to the server, in either order.
#[rustfmt::skip]
const PROMISES: [(Server, Promise, Promise); 5] = [
    //                    SIGTERM, SIGINT, SIGHUP           SIGKILL
    (Server::Obeys,       promise(EOF, Ends, None),         promise(None, Ends, None)),
    (Server::IgnoresEof,  promise(EOF_TERM, Ends, None),    promise(None, Ends, None)),
    (Server::IgnoresTerm, promise(EOF_TERM, Ends, None),    promise(EOF_TERM, Stays, None)),
    (Server::Forks,       promise(EOF, Ends, Some(Ends)),   promise(None, Ends, Some(Stays))),
    (Server::Setsid,      promise(EOF, Ends, Some(Stays)),  promise(None, Ends, Some(Stays))),
];

const SIGNALS: [(&str, Signal); 4] =
    [("TERM", Signal::TERM), ("INT", Signal::INT), ("HUP", Signal::HUP), ("KILL", Signal::KILL)];

macro_rules! states {
    ($($test:ident: $state:ident,)+) => {$(
        #[test]
        fn $test() {
            every_cell(State::$state);
        }
    )+};
}

states! {
    idle: Idle,
    calling: Calling,
    a_parked_question: Parked,
    listening: Listening,
    bridging: Bridging,
}

/// Sends every signal to a command with every kind of server, all at the same time.
fn every_cell(state: State) {
    let mut cells = Vec::new();
    for (signal_name, signal) in SIGNALS {
        for (server, received, killed) in PROMISES {
            let promise = if signal == Signal::KILL { killed } else { received };
            let name = format!("{state:?}-{signal_name}-{server:?}");
            let run = {
                let name = name.clone();
                move || Cell::start(&name, state, server).end(state, signal, &promise)
            };
            let thread = thread::Builder::new().name(name.clone()).spawn(run).unwrap();
            cells.push((name, thread));
        }
    }
    let failed = cells.into_iter().filter_map(|(name, cell)| cell.join().is_err().then_some(name));
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "these cells failed, as said above: {failed:?}");
}
