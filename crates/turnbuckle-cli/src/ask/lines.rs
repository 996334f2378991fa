//! The reading of lines by a thread, so that nobody who waits for one has to block.

use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::sync::mpsc::{Receiver, channel};

/// Reads a line; `None` is the end of the input.
type ReadLine = Box<dyn FnMut() -> Option<String> + Send>;

/// Lines that are read only when one is wanted: before that the input is left alone.
pub(super) struct Lines {
    state: State,
    /// A line was wanted and has not come: whoever wanted it may be gone.
    is_awaited: bool,
}

enum State {
    New(Option<ReadLine>),
    Reading { want: SyncSender<()>, typed: Receiver<Option<String>> },
}

impl Lines {
    pub(super) fn new(read: impl FnMut() -> Option<String> + Send + 'static) -> Lines {
        Lines { state: State::New(Some(Box::new(read))), is_awaited: false }
    }

    /// The next line, without its end. Dropping the future loses none: who comes next gets it.
    pub(super) async fn next(&mut self) -> Option<String> {
        if let State::New(read) = &mut self.state {
            self.state = start(read.take()?);
        }
        let State::Reading { want, typed } = &mut self.state else { return None };
        if !self.is_awaited {
            want.try_send(()).ok()?;
            self.is_awaited = true;
        }
        let line = typed.recv().await?;
        self.is_awaited = false;
        line
    }

    /// Throws away a line that came when nobody wanted it any more.
    pub(super) fn forget(&mut self) {
        if let State::Reading { typed, .. } = &mut self.state
            && typed.try_recv().is_ok()
        {
            self.is_awaited = false;
        }
    }
}

/// A line of standard input. What can't be read is its end.
pub(super) fn from_stdin() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim_end_matches(['\n', '\r']).to_owned()),
    }
}

fn start(mut read: ReadLine) -> State {
    let (want, wanted) = sync_channel(1);
    let (sender, typed) = channel(1);
    // It may wait for a line for ever: the end of the process ends it.
    std::thread::spawn(move || {
        while wanted.recv().is_ok() {
            if sender.blocking_send(read()).is_err() {
                break;
            }
        }
    });
    State::Reading { want, typed }
}
