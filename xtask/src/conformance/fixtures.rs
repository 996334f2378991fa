//! The two programs of `conformance/`: building them, starting the server.

use std::path::PathBuf;

use crate::{
    common::{built::Built, process::command, serving::RunningServer},
    workspace,
};

/// Where the programs are.
#[derive(Debug)]
pub(crate) struct Fixtures {
    server: PathBuf,
    pub(crate) client: PathBuf,
}

impl Fixtures {
    pub(crate) fn build() -> Result<Fixtures, String> {
        let mut command = workspace::cargo();
        let built =
            Built::build(command.args(["build", "--package", "turnbuckle-conformance", "--bins"]))?;
        Ok(Fixtures {
            server: built.program("everything-server")?,
            client: built.program("everything-client")?,
        })
    }

    /// Starts the server.
    pub(crate) fn serve(&self) -> Result<RunningServer, String> {
        RunningServer::start(&mut command(&self.server))
    }
}
