//! Attacks on real processes of the `turnbuckle` command, with bounds on their resources.
//!
//! `cargo xtask hostile` builds the command and runs this program. Each attack starts a server or a client
//! of its own with an address space of 1 GiB; a witness uses an attacked HTTP server all the time.

mod attack;
mod client;
mod conformance;
mod process;
mod random;
mod report;
mod server;
mod soak;
mod wire;
mod witness;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

use crate::attack::{Attack, Extent, World};

/// Tasks of `cargo xtask`, which builds the command first.
#[derive(Parser)]
enum Task {
    /// Run attacks
    Attack(AttackOptions),
    /// Put a server under load
    Soak(soak::SoakOptions),
    /// Serve as a malicious server on standard input and output
    #[command(hide = true)]
    Malicious {
        /// The name of the attack
        name: String,
        era: client::Era,
    },
}

#[derive(clap::Args)]
struct AttackOptions {
    /// The `turnbuckle` command
    #[arg(long)]
    program: PathBuf,
    /// Leave out attacks and sizes that take long
    #[arg(long)]
    quick: bool,
    /// The seed of attacks with random bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run only attacks whose name contains this text
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Task::parse() {
        Task::Attack(options) => attack(options).await,
        Task::Soak(options) => soak::run(options).await,
        Task::Malicious { name, era } => client::serve_stdio(&name, era).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

async fn attack(options: AttackOptions) -> Result<(), String> {
    let AttackOptions { program, quick, seed, only } = options;
    let extent = if quick { Extent::Quick } else { Extent::Full };
    let world = World { program, seed, extent };
    let chosen = |attack: &Attack| {
        attack.name.contains(&only) && (attack.extent == Extent::Quick || extent == Extent::Full)
    };
    let attacks = server::attacks().into_iter().chain(client::attacks());
    let attacks: Vec<Attack> = attacks.filter(chosen).collect();
    if attacks.is_empty() {
        return Err(format!("no attack has `{only}` in its name"));
    }
    report::head();
    let mut problems = 0;
    for attack in &attacks {
        let report = attack.run(&world).await;
        report::row(&report);
        problems += report.problems.len();
    }
    println!("{} attacks, {problems} problems, seed {seed}", attacks.len());
    if problems == 0 { Ok(()) } else { Err(format!("{problems} problems")) }
}
