//! The listening for signals.

use crate::exit::Failure;

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
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c();
        signal
            .map(Interrupt)
            .map_err(|error| Failure::failed(format!("Ctrl-C can't be listened for: {error}")))
    }

    /// Resolves at the next Ctrl-C. Dropping the future loses none.
    pub(crate) async fn happened(&mut self) {
        if self.0.recv().await.is_none() {
            // No more can come.
            std::future::pending::<()>().await;
        }
    }
}

/// Hears Ctrl-C, and where there is one SIGTERM: what asks a server to stop.
#[derive(Debug)]
pub(crate) struct Stop {
    interrupt: Interrupt,
    #[cfg(unix)]
    terminate: Signal,
}

impl Stop {
    pub(crate) fn listen() -> Result<Stop, Failure> {
        Ok(Stop {
            interrupt: Interrupt::listen()?,
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .map_err(|error| {
                    Failure::failed(format!("SIGTERM can't be listened for: {error}"))
                })?,
        })
    }

    /// Resolves at the next of them. Dropping the future loses none.
    pub(crate) async fn asked(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            () = self.interrupt.happened() => {}
            Some(()) = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        self.interrupt.happened().await;
    }
}
