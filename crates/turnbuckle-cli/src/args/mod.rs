//! The command line: commands, flags, and the words that `--help` has for them.

#![expect(rustdoc::bare_urls, reason = "the docs are help texts, read in a terminal")]

mod bridge;
mod connection;

use std::{path::PathBuf, time::Duration};

pub(crate) use bridge::Bridge;
use clap::{Args, Parser, Subcommand};
pub(crate) use connection::{Connection, Format, Variable};

use crate::{
    reference::Reference,
    target::Target,
    values::{Object, Pair},
};
use connection::duration;

/// Talk to Model Context Protocol (MCP) servers from a terminal
///
/// See it work first:
///   turnbuckle demo
///
/// Look at a server and call it; a server is given as the command line that starts it,
/// as its URL, or as its name in an mcp.json:
///   turnbuckle info "turnbuckle serve"
///   turnbuckle call "turnbuckle serve" add a=2 b=40
///   turnbuckle listen http://127.0.0.1:8080/mcp
///   turnbuckle tools notes --config mcp.json
///
/// What a server asks meanwhile is asked here, in the terminal.
///
/// Exit status: 0 success, 1 the tool failed, 2 wrong usage, 3 no connection, or the
/// server answered with an error or broke the protocol, 4 someone must log in first,
/// 129, 130 and 143 ended by SIGHUP, Ctrl-C and SIGTERM.
#[derive(Debug, Parser)]
#[command(name = "turnbuckle", version, verbatim_doc_comment, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show calls, progress and cancellation at work, on this machine alone
    ///
    /// Starts the demo server as a child process, calls it, shows progress, abandons a
    /// call halfway and lets the server's own counts prove that its handler stopped: in
    /// the modern era of the protocol and in the one before, and once more over HTTP, on a
    /// port of this machine that is closed again. Takes some fifteen seconds.
    ///
    /// Example:
    ///   turnbuckle demo
    #[command(verbatim_doc_comment)]
    Demo(Demo),
    /// Show who a server is and what it can do
    ///
    /// Examples:
    ///   turnbuckle info "turnbuckle serve"
    ///   turnbuckle info https://mcp.example.com/mcp --output json
    #[command(verbatim_doc_comment)]
    Info(Info),
    /// List the tools of a server, with their arguments
    ///
    /// Examples:
    ///   turnbuckle tools "turnbuckle serve"
    ///   turnbuckle tools "uvx mcp-server-git" --output json
    ///   turnbuckle tools https://mcp.example.com/mcp --bearer-env MCP_TOKEN
    #[command(verbatim_doc_comment)]
    Tools(Tools),
    /// Call a tool and print its result; Ctrl-C cancels the call
    ///
    /// Values take the type that the tool's schema gives the argument: with `text` a
    /// string and `a` an integer, text=42 sends "42" and a=42 sends 42.
    ///
    /// Examples:
    ///   turnbuckle call "turnbuckle serve" echo text=hello
    ///   turnbuckle call "turnbuckle serve" add --json '{"a": 2}' b=40 --output json
    ///   turnbuckle call "turnbuckle serve" countdown from=20 --timeout 5s
    ///   turnbuckle call http://127.0.0.1:8080/mcp add a=2 b=40
    #[command(verbatim_doc_comment)]
    Call(Call),
    /// List the resources of a server, and the templates of those that it does not list
    ///
    /// Examples:
    ///   turnbuckle resources "turnbuckle serve"
    ///   turnbuckle resources http://127.0.0.1:8080/mcp --output json
    #[command(verbatim_doc_comment)]
    Resources(Resources),
    /// Read a resource and print what is in it
    ///
    /// Of what is not text only the size is printed; --output json has all of it.
    ///
    /// Examples:
    ///   turnbuckle read "turnbuckle serve" demo://readme
    ///   turnbuckle read "turnbuckle serve" demo://items/7 --output json
    #[command(verbatim_doc_comment)]
    Read(Read),
    /// List the prompts of a server, with their arguments
    ///
    /// Examples:
    ///   turnbuckle prompts "turnbuckle serve"
    ///   turnbuckle prompts notes --config mcp.json --output json
    #[command(verbatim_doc_comment)]
    Prompts(Prompts),
    /// Fill in a prompt and print its messages
    ///
    /// Examples:
    ///   turnbuckle prompt "turnbuckle serve" review language=rust 'code=fn main() {}'
    ///   turnbuckle prompt notes summarize style=short --output json
    #[command(verbatim_doc_comment)]
    Prompt(Prompt),
    /// Ask how an argument of a prompt or of a resource template may go on
    ///
    /// Prints a suggestion a line.
    ///
    /// Examples:
    ///   turnbuckle complete "turnbuckle serve" prompt:review language ru
    ///   turnbuckle complete "turnbuckle serve" 'demo://items/{id}' id 9
    #[command(verbatim_doc_comment)]
    Complete(Complete),
    /// Print what a server tells of its changes, a line each, until Ctrl-C
    ///
    /// The first line is what the server agreed to tell. Without a choice all its lists are
    /// asked for: tools, prompts and resources. A line is a cue to ask again; none carries
    /// what is new. Ctrl-C unsubscribes; so does --timeout, and then the exit status is 0.
    ///
    /// Examples:
    ///   turnbuckle listen http://127.0.0.1:8080/mcp
    ///   turnbuckle listen "turnbuckle serve" --tools --output json
    ///   turnbuckle listen https://mcp.example.com/mcp --resource note://7
    #[command(verbatim_doc_comment)]
    Listen(Listen),
    /// Log in at a server that wants to know who asks; the other commands then use that
    ///
    /// Opens the browser, and keeps what is granted where only this user can read it. Tokens
    /// are renewed by whichever command needs that. A server that is asked by a command in a
    /// terminal makes that log in by itself.
    ///
    /// Examples:
    ///   turnbuckle login https://mcp.example.com/mcp
    ///   turnbuckle login https://mcp.example.com/mcp --no-browser
    ///   turnbuckle login https://mcp.example.com/mcp --scope files:read --client-id my-client
    #[command(verbatim_doc_comment)]
    Login(Login),
    /// Forget what was granted at a login, and have it taken back where that is possible
    ///
    /// Example:
    ///   turnbuckle logout https://mcp.example.com/mcp
    #[command(verbatim_doc_comment)]
    Logout(Logout),
    /// Serve the demo tools, over standard input and output or over HTTP
    ///
    /// Without --http it is meant to be started by a client, and speaks both eras of the
    /// protocol. The tools are echo, add, sleep, countdown, announce, greet, log, fail, panic
    /// and stats; there are some resources and a prompt too.
    ///
    /// Examples:
    ///   turnbuckle call "turnbuckle serve" stats
    ///   turnbuckle serve --http 127.0.0.1:8080
    #[command(verbatim_doc_comment)]
    Serve(Serve),
    /// Put a server behind another wire: a process behind HTTP, a URL behind stdin and stdout
    ///
    /// Clients of both eras of the protocol reach servers of both. What the bridge does not
    /// know crosses it byte for byte, and so do cancellations. A command line is served over
    /// HTTP, on a free port of this machine; a URL is served to whoever starts this, over
    /// standard input and output. A server of the older era is started once for each client
    /// of that era. The server is connected to before anyone is served: if it can't be reached
    /// the exit status is 3 at once, and so it is if it ends before a client on stdin does.
    ///
    /// The bridge asks a URL in the name of whoever logged in there with `turnbuckle login`, or
    /// with the token that is typed, and asks its own callers for nothing: over HTTP everyone who
    /// reaches it acts as that person.
    ///
    /// Examples:
    ///   turnbuckle bridge --http 127.0.0.1:8080 -- uvx mcp-server-git --repository .
    ///   turnbuckle bridge https://mcp.example.com/mcp --bearer-env MCP_TOKEN
    ///   turnbuckle bridge notes --config mcp.json
    ///   turnbuckle call "turnbuckle bridge http://127.0.0.1:8080/mcp" echo text=hello
    #[command(verbatim_doc_comment)]
    Bridge(Bridge),
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Leave out the pauses that give people time to read.
    ///
    /// Example: turnbuckle demo --fast
    #[arg(long)]
    pub(crate) fast: bool,

    /// How to print: text for people, or json, an object a line and without the pauses, for programs.
    ///
    /// Example: --output json
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Format,
}

#[derive(Args, Debug)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Args, Debug)]
pub(crate) struct Tools {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Args, Debug)]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// The name of the tool; `turnbuckle tools TARGET` lists them.
    ///
    /// Example: echo
    pub(crate) tool: String,

    /// The tool's arguments. Arrays and objects are written as JSON.
    ///
    /// Example: text=hello count=3 'list=["a", "b"]'
    #[arg(value_name = "KEY=VALUE", value_parser = Pair::beside_an_object)]
    pub(crate) arguments: Vec<Pair>,

    /// All arguments as one JSON object; each key=value replaces one of its members.
    ///
    /// Example: --json '{"a": 2, "b": 40}'
    #[arg(long, value_name = "OBJECT")]
    pub(crate) json: Option<Object>,
}

#[derive(Args, Debug)]
pub(crate) struct Resources {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Args, Debug)]
pub(crate) struct Read {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// The URI of the resource; `turnbuckle resources TARGET` lists them.
    ///
    /// Example: demo://readme
    pub(crate) uri: String,
}

#[derive(Args, Debug)]
pub(crate) struct Prompts {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Args, Debug)]
pub(crate) struct Prompt {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// The name of the prompt; `turnbuckle prompts TARGET` lists them.
    ///
    /// Example: review
    pub(crate) name: String,

    /// The prompt's arguments, each of them a text.
    ///
    /// Example: language=rust 'code=fn main() {}'
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<Pair>,
}

#[derive(Args, Debug)]
pub(crate) struct Complete {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// What has the argument: prompt:NAME, or a resource template.
    ///
    /// Example: prompt:review or 'demo://items/{id}'
    #[arg(value_name = "prompt:NAME|TEMPLATE")]
    pub(crate) reference: Reference,

    /// The name of the argument.
    ///
    /// Example: language
    pub(crate) argument: String,

    /// What has been typed of it so far; nothing if it is left out.
    ///
    /// Example: ru
    #[arg(default_value = "")]
    pub(crate) typed: String,
}

#[derive(Args, Debug)]
pub(crate) struct Listen {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// Ask for changes of the list of tools.
    ///
    /// Example: turnbuckle listen "turnbuckle serve" --tools
    #[arg(long)]
    pub(crate) tools: bool,

    /// Ask for changes of the list of prompts.
    ///
    /// Example: turnbuckle listen "my-server" --prompts
    #[arg(long)]
    pub(crate) prompts: bool,

    /// Ask for changes of the list of resources.
    ///
    /// Example: turnbuckle listen "my-server" --resources
    #[arg(long)]
    pub(crate) resources: bool,

    /// Ask for changes of this resource; can be repeated.
    ///
    /// Example: --resource note://7 --resource note://8
    #[arg(long = "resource", value_name = "URI")]
    pub(crate) watched: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Login {
    /// The server's http(s) URL.
    ///
    /// Example: https://mcp.example.com/mcp
    pub(crate) url: Target,

    /// Open no browser: print the address to go to, and read the one that it leads to.
    ///
    /// For machines that one is not sitting at.
    ///
    /// Example: turnbuckle login https://mcp.example.com/mcp --no-browser
    #[arg(long)]
    pub(crate) no_browser: bool,

    /// Ask for this instead of what the server says; can be repeated.
    ///
    /// Example: --scope files:read --scope files:write
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// Be this client, which someone registered at the authorization server beforehand.
    ///
    /// Example: --client-id my-client
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// Reach the server through this Unix socket: what is granted is for that alone.
    ///
    /// Example: turnbuckle login http://localhost/mcp --unix-socket /run/mcp.sock
    #[arg(long, value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,

    /// Give up after this long: five minutes unless told.
    ///
    /// Example: --timeout 1m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// How to print: text for people, or json, one object, for programs.
    ///
    /// Example: --output json
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Format,
}

#[derive(Args, Debug)]
pub(crate) struct Logout {
    /// The server's http(s) URL.
    ///
    /// Example: https://mcp.example.com/mcp
    pub(crate) url: Target,

    /// How to print: text for people, or json, one object, for programs.
    ///
    /// Example: --output json
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Format,

    /// The Unix socket that the server is reached through.
    ///
    /// Example: turnbuckle logout http://localhost/mcp --unix-socket /run/mcp.sock
    #[arg(long, value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Serve over HTTP at this address, path /mcp; its URL is printed to stderr.
    ///
    /// Port 0 takes a free one; unix:PATH makes a Unix socket. Ctrl-C and SIGTERM let running
    /// calls finish for up to 5 s; a second one does not wait.
    ///
    /// Example: --http 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,

    /// A name by which clients on other machines reach this server; can be repeated.
    ///
    /// Requests to any other name are refused, except those of this machine. An address that
    /// other machines reach is not served without it.
    ///
    /// Example: --http 0.0.0.0:8080 --public-host mcp.example.com
    #[arg(long = "public-host", value_name = "NAME", requires = "http")]
    pub(crate) public_hosts: Vec<String>,

    /// How to say where it is served: text for people, on stderr, or json for programs, an object
    /// with the URL on stdout too, once it is ready. Only with --http: else stdout is the wire.
    ///
    /// Example: --http 127.0.0.1:0 --output json
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Format,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_fits_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_flag_is_explained_with_an_example() {
        let cli = Cli::command();
        let explained = |help: Option<String>, what: &str| {
            let help = help.unwrap_or_default();
            assert!(help.contains("Example"), "{what} has no example: {help:?}");
        };
        for command in cli.get_subcommands() {
            let name = command.get_name();
            explained(command.get_long_about().map(ToString::to_string), name);
            for argument in command.get_arguments() {
                let what = format!("{name} {}", argument.get_id());
                explained(argument.get_long_help().map(ToString::to_string), &what);
            }
        }
    }

    /// A file of the folder may be anyone's, and says which programs are started.
    #[test]
    fn wherever_a_name_is_taken_it_is_said_which_files_count() {
        let mut count = 0;
        for command in Cli::command().get_subcommands() {
            let takes_names = command.get_arguments().any(|one| one.get_id() == "config");
            let target = command.get_arguments().find(|one| one.get_id() == "target");
            let Some(target) = target.filter(|_| takes_names) else { continue };
            let help = target.get_long_help().map(ToString::to_string).unwrap_or_default();
            let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
            for expected in [
                "if --config is given, or if ~/.config/turnbuckle/mcp.json has it",
                "An mcp.json of the folder counts only if --config names it",
            ] {
                assert!(words.contains(expected), "{}: {words}", command.get_name());
            }
            count += 1;
        }
        assert_eq!(count, 10);
    }

    #[test]
    fn every_example_of_a_command_can_be_typed() {
        let mut count = 0;
        for command in Cli::command().get_subcommands() {
            let help = command.get_long_about().map(ToString::to_string).unwrap_or_default();
            for example in help.lines().filter(|line| line.starts_with("  turnbuckle ")) {
                let words = shell_words::split(example).unwrap();
                let parsed = Cli::try_parse_from(words);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
                count += 1;
            }
        }
        assert!(count > 20, "{count}");
    }
}
