//! `turnbuckle login` and `turnbuckle logout`.

use std::path::Path;

use serde_json::json;
use turnbuckle::{
    Client, ClientBuilder, ErrorKind,
    auth::{LoggedOut, Registered, Scopes},
};

use crate::{
    args::{Format, Login, Logout},
    exit::{Failure, Status},
    interrupt::Interrupt,
    login::{self, Who},
    output::{complain, print, print_json},
    progress::Line,
    target::{Target, check_address},
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
    let socket = arguments.unix_socket.as_deref();
    let Some(()) = or_interrupted(builder(socket).auth(auth).log_in(url)).await? else {
        let kept = match login::is_kept(url, socket).await {
            true => "a login is kept, as it was or just finished",
            false => "nobody is logged in",
        };
        return Err(interrupted(&format!("{kept}; who this client is may be known there now")));
    };
    match arguments.output {
        Format::Text => print(&format!("logged in at {url}\n")),
        Format::Json => print_json(&json!({"url": url, "loggedIn": true})),
    }
}

pub(crate) async fn log_out(arguments: Logout) -> Result<(), Failure> {
    let url = url(&arguments.url)?;
    let auth = login::auth(Who::Nobody, &Line::on_stderr())?;
    let socket = arguments.unix_socket.as_deref();
    let Some(out) = or_interrupted(builder(socket).auth(auth).log_out(url)).await? else {
        return Err(interrupted(match login::is_kept(url, socket).await {
            true => "the login is still kept",
            false => "nothing is kept here any more; whether tokens were taken back is not known",
        }));
    };
    if let LoggedOut::NotRevoked(error) = &out {
        complain(&format!("note: the tokens are deleted here, and were not taken back: {error}"));
    }
    let was_logged_in = out != LoggedOut::Already;
    match (arguments.output, was_logged_in) {
        (Format::Json, _) => print_json(&json!({
            "url": url,
            "loggedIn": false,
            "wasLoggedIn": was_logged_in,
            "revoked": out == LoggedOut::Revoked,
        })),
        (Format::Text, true) => print(&format!("logged out from {url}\n")),
        (Format::Text, false) => print(&format!("nobody was logged in at {url}\n")),
    }
}

fn builder(unix_socket: Option<&Path>) -> ClientBuilder {
    let builder = Client::builder().info("turnbuckle-cli", env!("CARGO_PKG_VERSION"));
    match unix_socket {
        Some(path) => builder.unix_socket(path),
        None => builder,
    }
}

fn url(target: &Target) -> Result<&str, Failure> {
    target.is_no_bare_address()?;
    match target {
        Target::Http(url) => check_address(url).map(|()| url.as_str()),
        Target::Program { .. } => Err(Failure::usage(
            "only at a URL does anyone log in: a server that is started has what it is given (--env)",
        )),
    }
}

/// What comes of the work; nothing if Ctrl-C comes first.
async fn or_interrupted<T>(
    work: impl Future<Output = turnbuckle::Result<T>>,
) -> Result<Option<T>, Failure> {
    let mut interrupt = Interrupt::listen()?;
    tokio::select! {
        biased;
        () = interrupt.happened() => Ok(None),
        done = work => done.map(Some).map_err(|error| match error.kind() {
            ErrorKind::Refused => Failure::usage(error.to_string()),
            _ => error.into(),
        }),
    }
}

fn interrupted(what: &str) -> Failure {
    Failure::new(Status::Interrupted, format!("interrupted: {what}"))
}
