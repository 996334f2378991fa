//! How to reach one server: a program to start, or a URL.

use std::{fmt, path::PathBuf, process::Command};

use turnbuckle::{Client, ClientBuilder, Result};

/// How to reach a server.
///
/// `Debug` and `Display` do not show the values of variables and headers.
///
/// ```
/// use turnbuckle_host::{HttpConfig, ProcessConfig, ServerConfig};
///
/// let notes: ServerConfig = ProcessConfig::new("notes-server").arg("--stdio").into();
/// let search = HttpConfig::new("https://mcp.example.com/mcp?key=s3cret").header("x-key", "s3cret");
/// let search = ServerConfig::from(search);
/// assert_eq!(notes.to_string(), "notes-server --stdio");
/// assert_eq!(search.to_string(), "https://mcp.example.com/mcp");
/// assert!(!format!("{search:?}").contains("s3cret"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerConfig {
    /// A program to start, which serves over its standard streams.
    Process(ProcessConfig),
    /// A server at a URL.
    Http(HttpConfig),
}

/// A program to start, which serves over its standard streams.
///
/// Its environment has the variables of this process that
/// [`Spawn`](turnbuckle::transport::child_process::Spawn) passes on, and those that are set here.
///
/// ```
/// use turnbuckle_host::ProcessConfig;
/// let process = ProcessConfig::new("npx")
///     .args(["-y", "some-server"])
///     .env("API_KEY", "s3cret")
///     .current_dir("/srv/notes");
/// assert_eq!(process.command().get_program(), "npx");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessConfig {
    program: Word,
    arguments: Vec<Word>,
    /// `None` removes a variable.
    env: Vec<(String, Option<String>)>,
    /// The path, and its text in the file, which may be shown.
    directory: Option<(PathBuf, String)>,
}

/// A server at a URL.
///
/// ```
/// use turnbuckle_host::HttpConfig;
/// let server = HttpConfig::new("https://mcp.example.com/mcp").header("authorization", "Bearer x");
/// assert_eq!(server.url(), "https://mcp.example.com/mcp");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct HttpConfig {
    url: Word,
    headers: Vec<(String, String)>,
}

/// An expanded string, and its text in the file, which may be shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) value: String,
    pub(super) shown: String,
}

impl From<String> for Word {
    fn from(text: String) -> Word {
        Word { value: text.clone(), shown: text }
    }
}

impl ProcessConfig {
    /// Creates a configuration of this program, which is searched as the operating system does. No shell is
    /// involved.
    pub fn new(program: impl Into<String>) -> ProcessConfig {
        ProcessConfig::of(program.into().into())
    }

    pub(super) fn of(program: Word) -> ProcessConfig {
        ProcessConfig { program, arguments: Vec::new(), env: Vec::new(), directory: None }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(self, argument: impl Into<String>) -> ProcessConfig {
        self.word(argument.into().into())
    }

    pub(super) fn word(mut self, word: Word) -> ProcessConfig {
        self.arguments.push(word);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: Into<String>>(self, arguments: impl IntoIterator<Item = I>) -> ProcessConfig {
        arguments.into_iter().fold(self, ProcessConfig::arg)
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> ProcessConfig {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Removes a variable from its environment.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<String>) -> ProcessConfig {
        self.env.push((name.into(), None));
        self
    }

    /// Sets its working directory. The default is that of this process.
    #[must_use]
    pub fn current_dir(self, directory: impl Into<PathBuf>) -> ProcessConfig {
        let directory = directory.into();
        let shown = directory.display().to_string();
        self.directory(directory, shown)
    }

    pub(super) fn directory(mut self, directory: PathBuf, shown: String) -> ProcessConfig {
        self.directory = Some((directory, shown));
        self
    }

    /// Returns the command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program.value);
        command.args(self.arguments.iter().map(|word| &word.value));
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some((directory, _)) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}

impl HttpConfig {
    /// Creates a configuration of this `http` or `https` URL.
    pub fn new(url: impl Into<String>) -> HttpConfig {
        HttpConfig::of(url.into().into())
    }

    pub(super) fn of(url: Word) -> HttpConfig {
        HttpConfig { url, headers: Vec::new() }
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> HttpConfig {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Returns the URL.
    pub fn url(&self) -> &str {
        &self.url.value
    }

    /// Returns the names and values of the headers.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl ServerConfig {
    /// Connects to the server: starts the program, or connects to the URL. Dropping the future stops
    /// that; a program that was started is shut down.
    ///
    /// ```no_run
    /// # async fn example() -> turnbuckle::Result<()> {
    /// use turnbuckle::Client;
    /// use turnbuckle_host::McpConfig;
    /// let config = McpConfig::read("mcp.json")?;
    /// if let Some(Ok(server)) = config.server("notes") {
    ///     let client = server.connect(Client::builder().info("my-host", "2.1")).await?;
    ///     println!("{}", client.revision());
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn connect(&self, builder: ClientBuilder) -> Result<Client> {
        match self {
            ServerConfig::Process(process) => builder.spawn(process.command()).await,
            ServerConfig::Http(http) => http.connect(builder).await,
        }
    }
}

impl HttpConfig {
    #[cfg(feature = "http")]
    async fn connect(&self, builder: ClientBuilder) -> Result<Client> {
        let headers = self.headers.iter();
        let builder = headers.fold(builder, |builder, (name, value)| builder.header(name, value));
        builder.connect(self.url()).await
    }

    #[cfg(not(feature = "http"))]
    async fn connect(&self, _: ClientBuilder) -> Result<Client> {
        Err(turnbuckle::__seam::error(
            turnbuckle::ErrorKind::Connect,
            format!("{self:?} is an HTTP server: enable the feature `http` of turnbuckle-host"),
        ))
    }
}

impl From<ProcessConfig> for ServerConfig {
    fn from(process: ProcessConfig) -> ServerConfig {
        ServerConfig::Process(process)
    }
}

impl From<HttpConfig> for ServerConfig {
    fn from(http: HttpConfig) -> ServerConfig {
        ServerConfig::Http(http)
    }
}

impl fmt::Display for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerConfig::Process(process) => {
                f.write_str(&process.program.shown)?;
                process.arguments.iter().try_for_each(|word| write!(f, " {}", word.shown))
            }
            ServerConfig::Http(http) => f.write_str(&without_secrets(&http.url.shown)),
        }
    }
}

impl fmt::Debug for ProcessConfig {
    // Values of variables are often secrets: only the names are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: Vec<_> = self.arguments.iter().map(|word| &word.shown).collect();
        let env: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("ProcessConfig")
            .field("program", &self.program.shown)
            .field("arguments", &arguments)
            .field("env", &env)
            .field("directory", &self.directory.as_ref().map(|(_, shown)| shown))
            .finish()
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpConfig")
            .field("url", &without_secrets(&self.url.shown))
            .field("headers", &headers)
            .finish()
    }
}

/// Returns a URL without user, password, query and fragment.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_command_is_what_was_said() {
        let process =
            ProcessConfig::new("a b").args(["c d", "$E"]).env("K", "v").env_remove("HOME");
        let command = process.current_dir("/tmp").command();
        assert_eq!(command.get_program(), "a b");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["c d", "$E"]);
        let env: Vec<_> = command.get_envs().collect();
        let expected = [(OsStr::new("HOME"), None), (OsStr::new("K"), Some(OsStr::new("v")))];
        assert_eq!(env, expected);
        assert_eq!(command.get_current_dir(), Some(std::path::Path::new("/tmp")));
    }

    #[test]
    fn secrets_are_shown_nowhere() {
        let word = Word { value: "--key=s3cret".into(), shown: "--key=${KEY}".into() };
        let process = ServerConfig::from(ProcessConfig::new("p").word(word).env("K", "s3cret"));
        let http = HttpConfig::new("https://u:s3cret@h:1/p?k=s3cret#s3cret").header("h", "s3cret");
        let http = ServerConfig::from(http);
        for shown in [format!("{process} {process:?}"), format!("{http} {http:?}")] {
            assert!(!shown.contains("s3cret"), "{shown}");
        }
        assert_eq!(http.to_string(), "https://h:1/p");
        assert_eq!(process.to_string(), "p --key=${KEY}");
        assert_eq!(without_secrets("s3 cret"), "s3 cret");
    }

    #[cfg(not(feature = "http"))]
    #[tokio::test]
    async fn an_address_needs_the_feature() {
        let server = ServerConfig::from(HttpConfig::new("http://h/"));
        let error = server.connect(Client::builder()).await.unwrap_err();
        assert!(error.to_string().contains("feature `http`"), "{error}");
    }
}
