//! The `turnbuckle` command: talk to Model Context Protocol servers from a terminal.
//!
//! Owns: the runtime and the way from a command to its exit status. Does not own: the commands.

mod args;
mod ask;
mod commands;
mod connection;
mod demo_server;
mod exit;
mod interrupt;
mod limits;
mod misspelt;
mod output;
mod progress;
mod reference;
mod schema;
mod values;

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use turnbuckle::transport::child_process::settle;

use connection::{config, connect, login, logs, roots, session, target};

use crate::{
    args::{Cli, Command},
    exit::Failure,
};

/// How long the end of a server that was started is waited for.
const LAST_WAIT: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    connection::launch::become_server();
    let cli = Cli::parse();
    // One thread: what the demo server counts is then always in the order of the wire.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::failed(format!("this system can't run the program: {error}"));
            failure.report();
            return failure.exit_code();
        }
    };
    let outcome = runtime.block_on(async {
        let outcome = run(cli.command).await;
        login::settle().await;
        outcome
    });
    // Whatever still waits for something is not waited for.
    runtime.shutdown_background();
    // With the runtime went the last that held a server. It is ended by another thread, which the
    // end of this process would end too.
    let _ = settle(LAST_WAIT);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit_code(),
    }
}

/// Runs a command. Each reports its own failure, when it is time for it.
async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(arguments) => commands::demo::run(arguments).await,
        Command::Info(arguments) => commands::info::run(arguments).await,
        Command::Tools(arguments) => commands::tools::run(arguments).await,
        Command::Call(arguments) => commands::call::run(arguments).await,
        Command::Resources(arguments) => commands::resources::list(arguments).await,
        Command::Read(arguments) => commands::resources::read(arguments).await,
        Command::Prompts(arguments) => commands::prompts::list(arguments).await,
        Command::Prompt(arguments) => commands::prompts::fill_in(arguments).await,
        Command::Complete(arguments) => commands::complete::run(arguments).await,
        Command::Listen(arguments) => commands::listen::run(arguments).await,
        Command::Login(arguments) => {
            commands::login::log_in(arguments).await.inspect_err(Failure::report)
        }
        Command::Logout(arguments) => {
            commands::login::log_out(arguments).await.inspect_err(Failure::report)
        }
        Command::Bridge(arguments) => {
            commands::bridge::run(arguments).await.inspect_err(Failure::report)
        }
        Command::Serve(arguments) => {
            commands::serve::run(arguments).await.inspect_err(Failure::report)
        }
    }
}
