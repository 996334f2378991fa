//! Counts a server over HTTP/1.1.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::{
    message::{call, post_call, post_list, request},
    workload::{Counts, Sends, Workload},
};
use crate::common::process::connect;

/// How long a server under valgrind may take until it listens, and to answer.
const START: Duration = Duration::from_secs(30);

/// How long the server may take to drop closed connections.
const SETTLE: Duration = Duration::from_millis(500);

type Connection = BufReader<TcpStream>;

/// Sends `length` requests and waits for their answers, then ends the server with a signal: it
/// has no input that could end.
pub(super) fn drive(
    mut command: Command,
    port: u16,
    workload: &Workload,
    length: usize,
) -> Result<(), String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("valgrind could not be started: {error}"))?;
    let talked = match workload.counts {
        Counts::Answers | Counts::Instructions => answers(port, workload, length),
        Counts::Remains => closes(port, workload, length),
    };
    // Valgrind writes its counts although a signal is not a successful end.
    let _ = Command::new("sh").args(["-c", &format!("kill -s TERM {}", child.id())]).status();
    let _ = child.wait();
    talked
}

/// Requests and their answers.
fn answers(port: u16, workload: &Workload, length: usize) -> Result<(), String> {
    let mut connections = open(port, workload.window)?;
    let ids: Vec<usize> = (1..=length).collect();
    for window in ids.chunks(workload.window) {
        for (id, connection) in window.iter().zip(&mut connections) {
            send(connection, &post(port, workload.sends, *id)?)?;
        }
        for connection in connections.iter_mut().take(window.len()) {
            result(connection)?;
        }
    }
    Ok(())
}

fn post(port: u16, sends: Sends, id: usize) -> Result<String, String> {
    match sends {
        Sends::Echo { .. } => Ok(post_call(port, "echo", &request(sends, id))),
        Sends::List => Ok(post_list(port, &request(sends, id))),
        other => Err(format!("{other:?} is counted over pipes only")),
    }
}

/// Calls that run until their connections are closed; all have ended when this returns.
fn closes(port: u16, workload: &Workload, length: usize) -> Result<(), String> {
    let mut control = open(port, 1)?.remove(0);
    for begun in (0..length).step_by(workload.window) {
        let mut connections = open(port, workload.window)?;
        for (id, connection) in connections.iter_mut().enumerate() {
            send(connection, &post_call(port, "slow", &call(id, "slow")))?;
        }
        let wanted = begun + workload.window;
        reach(&mut control, port, "started", wanted)?;
        drop(connections);
        reach(&mut control, port, "released", wanted)?;
    }
    // Its buffers depend on the length of this run, too.
    drop(control);
    // The handlers are gone; the tasks of their connections end a moment later.
    std::thread::sleep(SETTLE);
    Ok(())
}

/// Reads the counters until this one has the wanted value.
fn reach(control: &mut Connection, port: u16, name: &str, wanted: usize) -> Result<(), String> {
    let waiting = Instant::now();
    loop {
        send(control, &post_call(port, "stats", &call(1, "stats")))?;
        let counters = result(control)?;
        if counter(&counters, name) == Some(wanted) {
            return Ok(());
        }
        if waiting.elapsed() > START {
            return Err(format!("{name} is not {wanted}: {counters}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A number of JSON that is escaped in a string.
fn counter(text: &str, name: &str) -> Option<usize> {
    let (_, rest) = text.split_once(&format!(r#"\"{name}\":"#))?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    rest[..end].parse().ok()
}

fn open(port: u16, count: usize) -> Result<Vec<Connection>, String> {
    let prepared = |stream: TcpStream| -> std::io::Result<Connection> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(START))?;
        Ok(BufReader::new(stream))
    };
    let connect = |_| prepared(connect(port, START)?).map_err(|error| error.to_string());
    (0..count).map(connect).collect()
}

fn send(connection: &mut Connection, request: &str) -> Result<(), String> {
    let written = connection.get_mut().write_all(request.as_bytes());
    written.map_err(|error| format!("the server closed a connection: {error}"))
}

fn result(connection: &mut Connection) -> Result<String, String> {
    let (head, body) = answer(connection).map_err(|error| format!("no answer: {error}"))?;
    if head.starts_with("http/1.1 200") && body.contains("\"result\"") {
        return Ok(body);
    }
    Err(format!("the server refused: {head}{body}"))
}

/// The head in lower case and the body, by its length or in chunks.
fn answer(connection: &mut impl BufRead) -> std::io::Result<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        line(connection, &mut head)?;
    }
    head.make_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = Vec::new();
    match length {
        Some(length) => take(connection, number(length, 10)?, &mut body)?,
        None => loop {
            let mut size = String::new();
            line(connection, &mut size)?;
            let size = number(&size, 16)?;
            take(connection, size, &mut body)?;
            line(connection, &mut String::new())?;
            if size == 0 {
                break;
            }
        },
    }
    Ok((head, String::from_utf8_lossy(&body).into_owned()))
}

fn line(connection: &mut impl BufRead, text: &mut String) -> std::io::Result<()> {
    match connection.read_line(text)? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn take(connection: &mut impl BufRead, size: u64, body: &mut Vec<u8>) -> std::io::Result<()> {
    match connection.take(size).read_to_end(body)? {
        count if count as u64 == size => Ok(()),
        _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

fn number(text: &str, radix: u32) -> std::io::Result<u64> {
    u64::from_str_radix(text.trim(), radix).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_by_length_and_in_chunks() {
        let wire = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\
                    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                    2\r\nde\r\n1\r\nf\r\n0\r\n\r\nrest";
        let mut wire = wire.as_bytes();
        assert_eq!(answer(&mut wire).unwrap().1, "abc");
        assert_eq!(answer(&mut wire).unwrap().1, "def");
        assert_eq!(wire, b"rest");
    }

    #[test]
    fn a_counter_is_found_wherever_it_stands() {
        let text = r#"{"text":"{\"started\":64,\"released\":7}"}"#;
        assert_eq!(counter(text, "started"), Some(64));
        assert_eq!(counter(text, "released"), Some(7));
        assert_eq!(counter(text, "listeners"), None);
    }

    #[test]
    fn an_answer_that_is_cut_short_is_an_error() {
        for wire in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"] {
            assert!(answer(&mut wire.as_bytes()).is_err());
        }
    }
}
