//! A cell with authorization: the certificate authority, the provider, the protected server, and the
//! command of the client.

use std::{path::Path, process::Command};

use super::{
    cells::{Cell, Role},
    conversation::start,
    peers::{Program, Programs},
};
use crate::{
    common::process::{RunningServer, file},
    workspace,
};

/// Starts the provider and the server, and returns them with the client's command, which lacks only
/// the arguments that all clients have.
pub(crate) fn start_all(
    programs: &Programs,
    cell: &Cell,
    folder: &Path,
) -> Result<([RunningServer; 2], Command), String> {
    let auth = programs.auth()?;
    workspace::run(Command::new(&auth[0]).arg("authority").arg(folder))?;
    let mut provide = trusting(&programs.provider()?, folder);
    provide.arg(folder);
    if cell.role == Role::Client {
        // Peers register with the scopes that they need, which a provider that leaves scopes to the
        // protected servers would refuse.
        provide.args(["read", "write"]);
    }
    let provider = RunningServer::start(provide.stderr(file(&folder.join("provider.err"))?))?;
    let mut serve = trusting(&auth, folder);
    serve.arg("serve").arg(folder).arg(&provider.url);
    let server = RunningServer::start(serve.stderr(file(&folder.join("server.err"))?))?;
    let client = match cell.role {
        Role::Client => trusting(&programs.peer(cell.peer, "login")?, folder),
        Role::Server | Role::Provider => {
            let mut command = trusting(&auth, folder);
            command.arg("check").arg(folder).arg(&provider.url);
            command
        }
    };
    Ok(([provider, server], client))
}

/// A program that trusts the authority in this folder.
fn trusting(program: &Program, folder: &Path) -> Command {
    let (mut command, root) = (start(program), folder.join("ca.pem"));
    command.env("SSL_CERT_FILE", &root).env("NODE_EXTRA_CA_CERTS", &root);
    // Programs on one machine do not use a proxy.
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    command
}
