//! A server that is started, says its URL, and is ended.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    time::Duration,
};

use super::process::Family;

/// A server, which runs until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) url: String,
    /// Held for its end.
    _family: Family,
}

impl RunningServer {
    /// Starts what [`command`](super::process::command) made and waits for the URL that it prints.
    pub(crate) fn start(command: &mut Command) -> Result<RunningServer, String> {
        let mut family = Family::start(command.stdout(Stdio::piped()))?;
        let stdout = family.child().stdout.take().ok_or("a server without stdout")?;
        let (send, receive) = sync_channel(1);
        // Ends with the first line, or with the server.
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            let _ = send.send(read.map(|_| line.trim().to_owned()));
        });
        match receive.recv_timeout(Duration::from_secs(30)) {
            Ok(Ok(url)) if url.starts_with("http") => Ok(RunningServer { url, _family: family }),
            Err(RecvTimeoutError::Timeout) => Err("the server took too long to start".to_owned()),
            _ => Err("the server ended before it said its URL".to_owned()),
        }
    }
}
