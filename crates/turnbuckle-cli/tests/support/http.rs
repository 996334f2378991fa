//! Servers over HTTP: ours as a real process, a wire that is listened in on, one of long ago.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::{Child, ChildStderr, Command},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Instant,
};

use rustix::process::Signal;
use serde_json::Value;

use super::{Run, TOO_LONG, code, command, signal, turnbuckle};

/// A `turnbuckle` that serves over HTTP; killed when it is dropped.
pub(crate) struct Served {
    child: Child,
    stderr: BufReader<ChildStderr>,
    url: String,
    /// What it said before it served anyone.
    before: String,
}

impl Served {
    pub(crate) fn new() -> Served {
        Served::at(&["127.0.0.1:0"])
    }

    /// Serves where these arguments say.
    pub(crate) fn at(arguments: &[&str]) -> Served {
        Served::by(&[&["serve", "--http"], arguments].concat())
    }

    /// What these arguments put on HTTP.
    pub(crate) fn by(arguments: &[&str]) -> Served {
        Served::run(&mut command(arguments))
    }

    pub(crate) fn run(command: &mut Command) -> Served {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut served = Served { child, stderr, url: String::new(), before: String::new() };
        while served.url.is_empty() {
            let line = served.line();
            assert!(!line.is_empty(), "no URL: {:?}", served.before);
            match line.strip_prefix("serving ").and_then(|rest| rest.split_once(' ')) {
                Some((url, _)) => url.clone_into(&mut served.url),
                None => served.before.push_str(&line),
            }
        }
        served
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Calls one of its tools.
    pub(crate) fn call(&self, arguments: &[&str]) -> Run {
        turnbuckle(["call", &self.url].iter().chain(arguments))
    }

    /// Waits until its own count of calls says so.
    pub(crate) fn wait_for_count(&self, count: &str, expected: u64) {
        let began = Instant::now();
        loop {
            let stats: Value = serde_json::from_str(&self.call(&["stats"]).stdout).unwrap();
            if stats[count] == expected {
                return;
            }
            assert!(began.elapsed() < TOO_LONG, "{count} is never {expected}: {stats}");
        }
    }

    pub(crate) fn signal(&self, which: Signal) {
        signal(&self.child, which);
    }

    /// The next line on its stdout; what [`wait`](Served::wait) gives begins after it.
    pub(crate) fn printed(&mut self) -> String {
        let stdout = self.child.stdout.as_mut().unwrap();
        let (mut line, mut letter) = (Vec::new(), [0]);
        // One by one: what is read ahead would be lost.
        while line.last() != Some(&b'\n') {
            stdout.read_exact(&mut letter).unwrap();
            line.push(letter[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// The next line on its stderr.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Run {
        let (mut stdout, mut stderr) = (String::new(), std::mem::take(&mut self.before));
        self.stderr.read_to_string(&mut stderr).unwrap();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        Run { status: code(self.child.wait().unwrap()), stdout, stderr }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended can't be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A wire between clients and a server, on which everything that clients send is seen.
pub(crate) struct Wire {
    address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    bytes: Mutex<Vec<u8>>,
    more: Condvar,
}

impl Wire {
    /// Leads to a server of ours.
    pub(crate) fn to(served: &Served) -> Wire {
        let server = served.url().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let server: SocketAddr = server.parse().unwrap();
        Wire::new(move |client, seen| {
            let upstream = TcpStream::connect(server).unwrap();
            let (back, forth) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || pass(back, forth, |_| {}));
            pass(client, upstream, |bytes| seen.add(bytes));
        })
    }

    /// Leads to a server that knows nothing of revision 2026-07-28: it answers this.
    pub(crate) fn to_stranger(answer: &'static str) -> Wire {
        Wire::new(move |mut client, seen| {
            let mut buffer = [0; 65536];
            let Ok(count @ 1..) = client.read(&mut buffer) else { return };
            seen.add(&buffer[..count]);
            let _ = client.write_all(answer.as_bytes());
        })
    }

    fn new(serve: impl Fn(TcpStream, &Seen) + Clone + Send + 'static) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let shared = seen.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (serve, seen) = (serve.clone(), shared.clone());
                thread::spawn(move || serve(client, &seen));
            }
        });
        Wire { address, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// How often clients sent this so far.
    pub(crate) fn count(&self, text: &str) -> usize {
        String::from_utf8_lossy(&self.seen.bytes.lock().unwrap()).matches(text).count()
    }

    /// Waits until a client has sent this.
    pub(crate) fn wait_for(&self, text: &str) {
        let bytes = self.seen.bytes.lock().unwrap();
        let lacks = |bytes: &mut Vec<u8>| !String::from_utf8_lossy(bytes).contains(text);
        let (_bytes, waited) = self.seen.more.wait_timeout_while(bytes, TOO_LONG, lacks).unwrap();
        assert!(!waited.timed_out(), "`{text}` was never sent");
    }
}

impl Seen {
    fn add(&self, bytes: &[u8]) {
        self.bytes.lock().unwrap().extend_from_slice(bytes);
        self.more.notify_all();
    }
}

/// Passes bytes on until one side ends, and then ends the other.
fn pass(mut from: TcpStream, mut to: TcpStream, see: impl Fn(&[u8])) {
    let mut buffer = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        see(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Whichever is gone already needs no end.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
