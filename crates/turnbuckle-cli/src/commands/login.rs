//! Owns `turnbuckle login` and `turnbuckle logout`. Does not own what is kept, nor where.

use turnbuckle::{
    Client, ClientBuilder, ErrorKind,
    auth::{LoggedOut, Registered, Scopes},
};

use crate::{
    args::{Login, Logout},
    exit::{Failure, Status},
    interrupt::Interrupt,
    login::{self, Who},
    output::{complain, print},
    progress::Line,
    target::Target,
};

pub(crate) async fn log_in(arguments: Login) -> Result<(), Failure> {
    let url = url(&arguments.url)?;
    let who = if arguments.no_browser { Who::Pasted } else { Who::Browser };
    let mut auth = login::within(login::auth(who, &Line::on_stderr())?, arguments.timeout);
    if !arguments.scopes.is_empty() {
        auth = auth.scopes(arguments.scopes.iter().collect::<Scopes>());
    }
    if let Some(client_id) = &arguments.client_id {
        auth = auth.registered(Registered::new(client_id));
    }
    or_interrupted(builder().auth(auth).log_in(url)).await?;
    print(&format!("logged in at {url}\n"))
}

pub(crate) async fn log_out(arguments: Logout) -> Result<(), Failure> {
    let url = url(&arguments.url)?;
    let auth = login::auth(Who::Nobody, &Line::on_stderr())?;
    let out = or_interrupted(builder().auth(auth).log_out(url)).await?;
    match out {
        LoggedOut::Already => return print(&format!("nobody was logged in at {url}\n")),
        LoggedOut::NotRevoked(error) => {
            complain(&format!(
                "note: the tokens are deleted here, and were not taken back: {error}"
            ));
        }
        _ => {}
    }
    print(&format!("logged out from {url}\n"))
}

fn builder() -> ClientBuilder {
    Client::builder().info("turnbuckle-cli", env!("CARGO_PKG_VERSION"))
}

fn url(target: &Target) -> Result<&str, Failure> {
    match target {
        Target::Http(url) => Ok(url),
        Target::Program { .. } => Err(Failure::usage(
            "only at a URL does anyone log in: a server that is started has what it is given (--env)",
        )),
    }
}

async fn or_interrupted<T>(
    work: impl Future<Output = turnbuckle::Result<T>>,
) -> Result<T, Failure> {
    let mut interrupt = Interrupt::listen()?;
    tokio::select! {
        biased;
        () = interrupt.happened() => {
            Err(Failure::new(Status::Interrupted, "interrupted: nothing has changed"))
        }
        done = work => done.map_err(|error| match error.kind() {
            ErrorKind::Refused => Failure::usage(error.to_string()),
            _ => error.into(),
        }),
    }
}
