//! Owns how the server that was named is reached: as a process or at a URL, with which
//! settings. Does not own how long that may take, nor what is done with the connection.

use std::{
    collections::VecDeque,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use turnbuckle::{Client, ClientBuilder, ErrorKind, transport::child::Spawn};

use crate::{
    args::{Connection, Variable},
    exit::{Failure, LAST_LINES},
    progress::Line,
    target::Target,
};

/// How long a server has to leave when its input ends, and again after SIGTERM. Shorter
/// than the library's: somebody waits for the prompt.
const GRACE: Duration = Duration::from_secs(1);
/// How long a server may be silent about the first question before the older one follows.
const PROBE: Duration = Duration::from_secs(10);

/// Connects. What a process writes to its stderr meanwhile is shown or `heard`.
pub(crate) async fn connect(
    connection: &Connection,
    line: &Line,
    heard: Heard,
) -> Result<Client, Failure> {
    // A server that does not know the first question leaves room for the second.
    let probe = connection.timeout.map_or(PROBE, |limit| PROBE.min(limit / 3));
    let mut builder =
        Client::builder().info("turnbuckle-cli", env!("CARGO_PKG_VERSION")).probe_timeout(probe);
    if let Some(revision) = connection.revision {
        builder = builder.revision(revision);
    }
    match &connection.target {
        Target::Program { program, arguments } => {
            let mut command = Command::new(program);
            command.args(arguments);
            Ok(builder.spawn(process(connection, command, line, heard)?).await?)
        }
        Target::Http(url) => {
            let connecting = requests(connection, builder)?.connect(url);
            connecting.await.map_err(|error| match error.kind() {
                // Nothing was sent: what was typed is no address, or no header.
                ErrorKind::Refused => Failure::usage(error.to_string()),
                _ => error.into(),
            })
        }
    }
}

fn process(
    connection: &Connection,
    mut command: Command,
    line: &Line,
    heard: Heard,
) -> Result<Spawn, Failure> {
    let for_urls = [
        ("--header", !connection.headers.is_empty()),
        ("--bearer-env", connection.bearer_env.is_some()),
        ("--unix-socket", connection.unix_socket.is_some()),
    ];
    if let Some((flag, _)) = for_urls.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{flag} is for a server at a URL, and the target is a command line"
        )));
    }
    let mut passed = Vec::new();
    for variable in &connection.environment {
        match variable {
            Variable::Set(name, value) => drop(command.env(name, value)),
            Variable::Passed(name) => passed.push(name),
        }
    }
    let mut spawn = Spawn::new(command).close_grace(GRACE).terminate_grace(GRACE);
    for name in passed {
        spawn = spawn.allow_env(name);
    }
    Ok(if connection.verbose {
        let line = line.clone();
        spawn.on_stderr(move |text| line.say(&format!("server: {text}")))
    } else {
        spawn.on_stderr(move |text| heard.hear(text))
    })
}

fn requests(connection: &Connection, mut builder: ClientBuilder) -> Result<ClientBuilder, Failure> {
    if !connection.environment.is_empty() {
        return Err(Failure::usage(
            "--env is for a server that is started, and the target is a URL",
        ));
    }
    for header in &connection.headers {
        builder = builder.header(&header.name, &header.value);
    }
    if let Some(name) = &connection.bearer_env {
        let token = std::env::var(name).ok().filter(|token| !token.trim().is_empty());
        let token = token.ok_or_else(|| {
            Failure::usage(format!("the variable {name} has no token in it (--bearer-env)"))
        })?;
        builder = builder.header("authorization", format!("Bearer {}", token.trim()));
    }
    if let Some(path) = &connection.unix_socket {
        builder = builder.unix_socket(path);
    }
    Ok(builder)
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
