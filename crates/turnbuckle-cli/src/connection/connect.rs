//! Owns how the server that was named is reached: as a process or at a URL, with which
//! settings. Does not own how long that may take, nor what is done with the connection.

use std::{
    collections::VecDeque,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};
use turnbuckle::{
    Client, ClientBuilder, ErrorKind,
    client::{WireDirection, WireKind, WireLine, WireLog},
    transport::child_process::Spawn,
    types::{Era, Method},
};
use turnbuckle_host::{HttpConfig, ProcessConfig, ServerConfig};

use crate::{
    args::{Connection, Variable},
    ask, config,
    exit::{Failure, LAST_LINES},
    login::{self, Who},
    logs,
    progress::{Line, shortened},
    roots::roots,
    target::check_address,
};

#[cfg(target_os = "linux")]
use super::launch;

/// How long a server has to leave when its input ends, and again after SIGTERM. Shorter
/// than the library's: somebody waits for the prompt.
const GRACE: Duration = Duration::from_secs(1);
/// How long a server may be silent about the first question before the older one follows.
const PROBE: Duration = Duration::from_secs(10);
/// How long the first call waits until a legacy server has asked for the roots: many ask right after
/// the handshake, and refuse every path before they have the answer.
const ROOTS_WAIT: Duration = Duration::from_millis(500);
/// What is shown while there is no connection.
const CONNECTING: &str = "connecting";
/// How much of a long command line is shown, so that the seconds have their place on the line.
const SHOWN: usize = 36;

/// Connects. What a process writes to its stderr meanwhile is shown or `heard`.
pub(crate) async fn connect(
    connection: &Connection,
    line: &Line,
    heard: Heard,
) -> Result<Client, Failure> {
    let server = config::server(connection, line)?;
    let roots_told = Arc::new(Notify::new());
    let builder = builder(connection, &server, line, &roots_told)?;
    let shown = server.to_string();
    let way = Way::to(server, connection)?;
    let kind = way.kind();
    let long = match kind {
        WayKind::Process => waiting_for(&shown),
        // There it may be somebody at a browser who is waited for.
        WayKind::Url => CONNECTING.to_owned(),
    };
    let connecting = way.connect(builder, line, heard);
    let client = line.watch_long([CONNECTING, &long], connecting).await.map_err(|error| {
        if error.kind() == ErrorKind::Connect
            && let Some(note) = config::overlooked(connection)
        {
            line.say(&note);
        }
        kind.failure(error)
    })?;
    if !connection.roots.is_empty() && client.revision().era() == Era::Legacy {
        // A server that never asks needs no answer.
        let _ = timeout(ROOTS_WAIT, roots_told.notified()).await;
    }
    if connection.verbose {
        logs::request(&client, line).await;
    }
    Ok(client)
}

fn waiting_for(server: &str) -> String {
    format!("waiting for `{}` to answer", shortened(server, SHOWN))
}

/// What kind of server it is, as far as that says what a failure to connect means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayKind {
    Process,
    Url,
}

impl WayKind {
    pub(crate) fn failure(self, error: turnbuckle::Error) -> Failure {
        match (self, error.kind()) {
            // Nothing was sent: what was typed is no address, or no header.
            (WayKind::Url, ErrorKind::Refused) => Failure::usage(error.to_string()),
            _ => error.into(),
        }
    }
}

/// A client as the command line wants it.
fn builder(
    connection: &Connection,
    server: &ServerConfig,
    line: &Line,
    roots_told: &Arc<Notify>,
) -> Result<ClientBuilder, Failure> {
    // A server that does not know the first question leaves room for the second.
    let probe = connection.timeout.map_or(PROBE, |limit| PROBE.min(limit / 3));
    let mut builder =
        Client::builder().info("turnbuckle-cli", env!("CARGO_PKG_VERSION")).probe_timeout(probe);
    if let Some(revision) = connection.revision {
        builder = builder.revision(revision);
    }
    if !connection.roots.is_empty() {
        builder = builder.roots(roots(&connection.roots)?);
    }
    let shown = connection.wire.then(|| line.clone());
    let roots_told = (!connection.roots.is_empty()).then(|| Arc::clone(roots_told));
    if shown.is_some() || roots_told.is_some() {
        builder = builder.wire_log(WireLog::new(move |message| {
            if let Some(line) = &shown {
                line.say(&message.to_string());
            }
            if let Some(told) = roots_told.as_deref().filter(|_| tells_roots(message)) {
                told.notify_one();
            }
        }));
    }
    if connection.verbose {
        builder = logs::show(builder, line);
    }
    if !connection.no_input && ask::is_possible() {
        let desk = ask::Desk::new(&server.to_string(), line);
        let model = desk.clone();
        builder = builder
            .capabilities(ask::declared())
            .on_elicitation(move |question| desk.clone().answer(question))
            .on_sampling(move |question| model.clone().stand_in(question));
    }
    Ok(builder)
}

fn tells_roots(message: &WireLine) -> bool {
    message.direction == WireDirection::Sent
        && message.kind == WireKind::Result
        && message.method.as_deref() == Some(Method::ListRoots.as_str())
}

/// Shows what travels.
pub(crate) fn wire_log(builder: ClientBuilder, line: &Line) -> ClientBuilder {
    let line = line.clone();
    builder.wire_log(WireLog::new(move |message| line.say(&message.to_string())))
}

/// How a server is reached, as often as it takes.
#[derive(Clone)]
pub(crate) enum Way {
    Process { process: ProcessConfig, environment: Vec<Variable>, noise: Noise },
    Url { url: String, headers: Vec<(String, String)>, unix_socket: Option<PathBuf>, who: Who },
}

/// What becomes of what a process writes to its stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noise {
    Shown,
    Heard,
}

impl Way {
    pub(crate) fn kind(&self) -> WayKind {
        match self {
            Way::Process { .. } => WayKind::Process,
            Way::Url { .. } => WayKind::Url,
        }
    }

    /// Fails if something was given that is not for this kind of server.
    pub(crate) fn to(server: ServerConfig, connection: &Connection) -> Result<Way, Failure> {
        match server {
            ServerConfig::Process(process) => {
                not_for_processes(connection)?;
                let environment = connection.environment.clone();
                let noise = if connection.verbose { Noise::Shown } else { Noise::Heard };
                Ok(Way::Process { process, environment, noise })
            }
            ServerConfig::Http(server) => {
                check_address(server.url())?;
                Ok(Way::Url {
                    url: server.url().to_owned(),
                    headers: headers(&server, connection)?,
                    unix_socket: connection.unix_socket.clone(),
                    who: if !connection.no_input && ask::is_possible() {
                        Who::Browser
                    } else {
                        Who::Nobody
                    },
                })
            }
            other => Err(Failure::failed(format!("there is no way to reach {other}"))),
        }
    }

    /// The server's address, if requests to it carry what was granted to a person.
    pub(crate) async fn asks_in_the_name_of_a_person(&self) -> Option<&str> {
        let Way::Url { url, headers, unix_socket, .. } = self else { return None };
        let typed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        (!typed && login::is_kept(url, unix_socket.as_deref()).await).then_some(&**url)
    }

    /// Connects. Dropping the future gives that up.
    pub(crate) async fn connect(
        self,
        mut builder: ClientBuilder,
        line: &Line,
        heard: Heard,
    ) -> turnbuckle::Result<Client> {
        match self {
            Way::Process { process, environment, noise } => {
                let spawn = with_environment(process.command(), &environment);
                let spawn = match noise {
                    Noise::Shown => {
                        let line = line.clone();
                        spawn.on_stderr(move |text| line.say(&format!("server: {text}")))
                    }
                    Noise::Heard => spawn.on_stderr(move |text| heard.hear(text)),
                };
                builder.spawn(spawn).await
            }
            Way::Url { url, headers, unix_socket, who } => {
                // Where nothing can be kept, who asks is in the headers or nowhere.
                if let Ok(auth) = login::auth(who, line) {
                    builder = builder.auth(auth);
                }
                for (name, value) in headers {
                    builder = builder.header(name, value);
                }
                if let Some(path) = unix_socket {
                    builder = builder.unix_socket(path);
                }
                builder.connect(url).await
            }
        }
    }
}

fn not_for_processes(connection: &Connection) -> Result<(), Failure> {
    let for_urls = [
        ("--header", !connection.headers.is_empty()),
        ("--bearer-env", connection.bearer_env.is_some()),
        ("--unix-socket", connection.unix_socket.is_some()),
    ];
    match for_urls.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::usage(format!(
            "{flag} is for a server at a URL, and this one is started by a command line"
        ))),
        None => Ok(()),
    }
}

fn with_environment(mut command: Command, environment: &[Variable]) -> Spawn {
    let mut passed = Vec::new();
    for variable in environment {
        match variable {
            Variable::Set(name, value) => drop(command.env(name, value)),
            Variable::Passed(name) => passed.push(name),
        }
    }
    let mut spawn = Spawn::new(command).close_grace(GRACE).terminate_grace(GRACE);
    for name in passed {
        spawn = spawn.allow_env(name);
    }
    #[cfg(target_os = "linux")]
    let spawn = launch::by_this_program(spawn);
    spawn
}

/// The headers that go with every request: what was typed goes before what a file says.
fn headers(server: &HttpConfig, connection: &Connection) -> Result<Vec<(String, String)>, Failure> {
    if !connection.environment.is_empty() {
        return Err(Failure::usage(
            "--env is for a server that is started, and this one is at a URL",
        ));
    }
    let given = connection.headers.iter();
    let mut headers: Vec<_> =
        given.map(|header| (header.name.clone(), header.value.clone())).collect();
    if let Some(name) = &connection.bearer_env {
        let token = std::env::var(name).ok().filter(|token| !token.trim().is_empty());
        let token = token.ok_or_else(|| {
            Failure::usage(format!("the variable {name} has no token in it (--bearer-env)"))
        })?;
        headers.push(("authorization".to_owned(), format!("Bearer {}", token.trim())));
    }
    for (name, value) in server.headers() {
        if !headers.iter().any(|(typed, _)| typed.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(headers)
}

/// The last lines of a server's stderr, for the case that no connection to it is left to ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<Mutex<VecDeque<String>>>);

impl Heard {
    fn hear(&self, line: &str) {
        let mut lines = self.lock();
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        // Lines are whole whatever happened.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_command_line_the_start_is_shown() {
        assert_eq!(waiting_for("sleep 100"), "waiting for `sleep 100` to answer");
        let long = waiting_for(&"a".repeat(1000));
        assert_eq!(long, format!("waiting for `{}…` to answer", "a".repeat(SHOWN)));
    }
}
