//! The listening for signals.

#[cfg(unix)]
use tokio::signal::unix::SignalKind;

use crate::exit::{Failure, Status};

/// Hears Ctrl-C from the moment it is made; before that it ends the process.
#[derive(Debug)]
pub(crate) struct Interrupt(Signal);

#[cfg(unix)]
type Signal = tokio::signal::unix::Signal;
#[cfg(windows)]
type Signal = tokio::signal::windows::CtrlC;

impl Interrupt {
    pub(crate) fn listen() -> Result<Interrupt, Failure> {
        #[cfg(unix)]
        let signal = unix(SignalKind::interrupt(), "Ctrl-C")?;
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c()
            .map_err(|error| Failure::failed(format!("Ctrl-C can't be listened for: {error}")))?;
        Ok(Interrupt(signal))
    }

    /// Resolves at the next Ctrl-C. Dropping the future loses none.
    pub(crate) async fn happened(&mut self) {
        if self.0.recv().await.is_none() {
            // No more can come.
            std::future::pending::<()>().await;
        }
    }
}

/// Receives the signals that end a command: Ctrl-C, and where they exist SIGTERM and SIGHUP.
#[derive(Debug)]
pub(crate) struct EndSignals {
    interrupt: Interrupt,
    #[cfg(unix)]
    terminate: Signal,
    /// `None` if this process ignores it, as `nohup` wants.
    #[cfg(unix)]
    hang_up: Option<Signal>,
}

impl EndSignals {
    pub(crate) fn listen() -> Result<EndSignals, Failure> {
        Ok(EndSignals {
            interrupt: Interrupt::listen()?,
            #[cfg(unix)]
            terminate: unix(SignalKind::terminate(), "SIGTERM")?,
            #[cfg(unix)]
            hang_up: if ignores_hang_up() {
                None
            } else {
                Some(unix(SignalKind::hangup(), "SIGHUP")?)
            },
        })
    }

    /// Resolves at the next of them. Dropping the future loses none.
    pub(crate) async fn happened(&mut self) -> EndSignal {
        #[cfg(unix)]
        {
            let hung_up = async {
                match &mut self.hang_up {
                    Some(hang_up) => hang_up.recv().await,
                    None => None,
                }
            };
            tokio::select! {
                () = self.interrupt.happened() => EndSignal::Interrupt,
                Some(()) = self.terminate.recv() => EndSignal::Terminate,
                Some(()) = hung_up => EndSignal::HangUp,
            }
        }
        #[cfg(not(unix))]
        {
            self.interrupt.happened().await;
            EndSignal::Interrupt
        }
    }
}

/// A signal that ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndSignal {
    Interrupt,
    Terminate,
    HangUp,
}

impl EndSignal {
    /// Returns the failure with the exit status of this signal; `what` says what it did.
    pub(crate) fn failure(self, what: &str) -> Failure {
        let (status, cause) = match self {
            EndSignal::Interrupt => (Status::Interrupted, "interrupted"),
            EndSignal::Terminate => (Status::Terminated, "ended by SIGTERM"),
            EndSignal::HangUp => (Status::HungUp, "ended by SIGHUP"),
        };
        Failure::new(status, format!("{cause}: {what}"))
    }
}

#[cfg(unix)]
fn unix(kind: SignalKind, name: &str) -> Result<Signal, Failure> {
    tokio::signal::unix::signal(kind)
        .map_err(|error| Failure::failed(format!("{name} can't be listened for: {error}")))
}

/// Whether this process was started with SIGHUP ignored. Only Linux tells.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, 1))
}

/// Reads the mask of ignored signals, which counts from 1.
#[cfg(unix)]
fn ignores(status: &str, signal: u32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_mask_says_which_signals_are_ignored() {
        let status = "Name:\tcat\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 2) && !ignores("", 1));
    }
}
