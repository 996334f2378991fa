//! Children that must end by themselves, and do not outlive their time if they fail to.

use std::{
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Kills a child that is still there after its time.
pub(crate) struct Watched {
    child: Arc<Mutex<Child>>,
    done: SyncSender<()>,
    guard: JoinHandle<()>,
}

impl Watched {
    pub(crate) fn new(child: Child, time: Duration) -> Self {
        let child = Arc::new(Mutex::new(child));
        let (done, is_done) = sync_channel(1);
        let watched = child.clone();
        let guard = std::thread::spawn(move || {
            if is_done.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
                && let Ok(mut child) = watched.lock()
            {
                // It may have ended in this moment.
                let _ = child.kill();
            }
        });
        Self { child, done, guard }
    }

    /// Waits for the end; true when it was a good one.
    pub(crate) fn finish(self) -> bool {
        // Only `try_wait`: the guard needs the lock to kill a child that hangs.
        let succeeded = loop {
            match self.child.lock().map(|mut child| child.try_wait()) {
                Ok(Ok(Some(status))) => break status.success(),
                Ok(Ok(None)) => std::thread::sleep(Duration::from_millis(5)),
                _ => break false,
            }
        };
        let _ = self.done.send(());
        let _ = self.guard.join();
        succeeded
    }
}

/// Runs a command that prints little, and returns what it printed.
pub(crate) fn output_within(command: &mut Command, time: Duration) -> Result<String, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} could not be started: {error}", name(command)))?;
    let mut stdout = child.stdout.take().ok_or("a child without stdout")?;
    let watched = Watched::new(child, time);
    let mut text = String::new();
    let read = std::io::Read::read_to_string(&mut stdout, &mut text);
    let succeeded = watched.finish();
    match read {
        Ok(_) if succeeded => Ok(text),
        Ok(_) => Err(format!("{} failed or took more than {time:?}", name(command))),
        Err(error) => Err(format!("{} printed no text: {error}", name(command))),
    }
}

/// A port of the loopback address that is free now.
pub(crate) fn free_port() -> Result<u16, String> {
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("there is no free port: {error}"))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_ends_gives_its_output() {
        let mut command = Command::new("echo");
        assert_eq!(output_within(command.arg("hi"), Duration::from_secs(60)), Ok("hi\n".into()));
    }

    #[test]
    fn a_child_that_hangs_is_killed() {
        let mut command = Command::new("cat");
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        assert!(!Watched::new(child, Duration::from_millis(1)).finish());
    }
}
