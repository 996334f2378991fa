//! A cell with authorization: the certificate authority, the provider, the protected server, and the
//! command of the client.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    cells::{Cell, Role},
    conversation::start,
    peers::{Program, Programs},
};
use crate::{
    common::process::{RunningServer, file},
    workspace,
};

/// All programs but the client, until this is dropped.
pub(crate) struct Others {
    folder: PathBuf,
    provider: RunningServer,
    server: RunningServer,
}

impl Others {
    pub(crate) fn start(programs: &Programs, cell: &Cell, folder: &Path) -> Result<Others, String> {
        let auth = programs.auth()?;
        let mut authority = Command::new(&auth[0]);
        workspace::run(authority.arg("authority").arg(folder))?;
        let mut provide = trusting(&programs.provider()?, folder);
        provide.arg(folder);
        if cell.role == Role::Client {
            // Peers register with the scopes that they need, which a provider that leaves scopes to
            // the protected servers would refuse.
            provide.args(["read", "write"]);
        }
        let log = file(&folder.join("provider.err"))?;
        let provider = RunningServer::start(provide.stderr(log))?;
        let mut serve = trusting(&auth, folder);
        serve.arg("serve").arg(folder).arg(&provider.url);
        let server = RunningServer::start(serve.stderr(file(&folder.join("server.err"))?))?;
        Ok(Others { folder: folder.to_owned(), provider, server })
    }

    /// The client, without the arguments that all clients have.
    pub(crate) fn client(&self, programs: &Programs, cell: &Cell) -> Result<Command, String> {
        Ok(match programs.login(cell)? {
            Some(program) => trusting(&program, &self.folder),
            None => {
                let mut command = trusting(&programs.auth()?, &self.folder);
                command.arg("check").arg(&self.folder).arg(&self.provider.url);
                command
            }
        })
    }

    pub(crate) fn target(&self) -> Vec<PathBuf> {
        vec!["--url".into(), self.server.url.clone().into()]
    }
}

/// A program that trusts the authority in this folder.
fn trusting(program: &Program, folder: &Path) -> Command {
    let (mut command, root) = (start(program), folder.join("ca.pem"));
    command.env("SSL_CERT_FILE", &root).env("NODE_EXTRA_CA_CERTS", &root);
    // Programs on one machine do not use a proxy.
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    command
}
