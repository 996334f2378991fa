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

/// How many attacks of servers run at once.
const AT_A_TIME: usize = 3;

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
    let (count, mut problems) = (attacks.len(), 0);
    report::head();
    let mut waiting = attacks.into_iter().peekable();
    while let Some(first) = waiting.next() {
        // Malicious servers mostly wait, and their clients are processes of their own.
        let mut together = vec![first];
        while together[0].is_light() && together.len() < AT_A_TIME {
            let Some(next) = waiting.next_if(Attack::is_light) else { break };
            together.push(next);
        }
        let running = together.into_iter().map(|attack| {
            let world = world.clone();
            tokio::spawn(async move { attack.run(&world).await })
        });
        for report in running.collect::<Vec<_>>() {
            let report = report.await.map_err(|error| error.to_string())?;
            report::row(&report);
            problems += report.problems.len();
        }
    }
    println!("{} attacks, {problems} problems, seed {seed}", count);
    if problems == 0 { Ok(()) } else { Err(format!("{problems} problems")) }
}
