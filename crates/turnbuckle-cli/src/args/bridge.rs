//! Owns what `turnbuckle bridge` takes. Does not own what it does.

use std::path::PathBuf;

use clap::Args;
use turnbuckle::Revision;

use super::connection::{Format, Header, Variable, revision};
use crate::target::Target;

#[derive(Args, Debug)]
pub(crate) struct Bridge {
    /// The server: its http(s) URL, a command line that starts it, as one argument, or its name
    /// in an mcp.json.
    ///
    /// A single word is a name if --config is given, or if ~/.config/turnbuckle/mcp.json has it;
    /// ./notes is always a program, and so is what stands after --. An mcp.json of the folder
    /// counts only if --config names it: it says which programs are started.
    ///
    /// Example: https://mcp.example.com/mcp
    #[arg(required_unless_present = "command")]
    pub(crate) target: Option<Target>,

    /// Look the server up by its name in this file, as editors and desktop hosts have it.
    ///
    /// Example: turnbuckle bridge notes --config ~/.config/mcp.json
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) config: Option<PathBuf>,

    /// The command line that starts the server, word by word.
    ///
    /// Example: turnbuckle bridge -- uvx mcp-server-git --repository .
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "target")]
    pub(crate) command: Vec<String>,

    /// Serve one client over standard input and output.
    ///
    /// Example: turnbuckle bridge --stdio -- my-server
    #[arg(long, conflicts_with_all = ["http", "path", "public_hosts"])]
    pub(crate) stdio: bool,

    /// Serve over HTTP at this address; its URL is printed to stderr.
    ///
    /// Port 0 takes a free one; unix:PATH makes a Unix socket. Whoever reaches it uses the server
    /// with what the bridge has: the headers that were typed, and what was granted at a login.
    ///
    /// Example: --http 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,

    /// The path under which it is served over HTTP.
    ///
    /// Example: --path /git
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,

    /// A name by which clients on other machines reach this bridge; can be repeated.
    ///
    /// Example: --http 0.0.0.0:8080 --public-host mcp.example.com
    #[arg(long = "public-host", value_name = "NAME")]
    pub(crate) public_hosts: Vec<String>,

    /// Speak this revision of the protocol with the server.
    ///
    /// Example: --revision 2025-11-25
    #[arg(long, value_parser = revision())]
    pub(crate) revision: Option<Revision>,

    /// Let the server see a variable of this environment, or set one for it; can be repeated.
    ///
    /// Example: --env GITHUB_TOKEN --env LOG_LEVEL=debug
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) environment: Vec<Variable>,

    /// Send this header with every request to a URL; can be repeated.
    ///
    /// Example: --header 'X-Tenant: acme'
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<Header>,

    /// Send the value of this variable as a bearer token with every request to a URL.
    ///
    /// Example: --bearer-env MCP_TOKEN
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) bearer_env: Option<String>,

    /// Reach a URL through this Unix socket; its host is then only a name.
    ///
    /// Example: turnbuckle bridge http://localhost/mcp --unix-socket /run/mcp.sock
    #[arg(long, value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,

    /// Show what the server writes to its stderr, as it comes.
    ///
    /// Example: turnbuckle bridge --verbose -- my-server
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Show every message to and from the server on stderr, with secrets masked.
    ///
    /// Example: turnbuckle bridge --wire -- my-server
    #[arg(long)]
    pub(crate) wire: bool,

    /// How to say where it is served: text for people, on stderr, or json for programs, an object
    /// with the URL on stdout too, once it is ready. Only over HTTP: else stdout is the wire.
    ///
    /// Example: --http 127.0.0.1:0 --output json
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Format,
}
