//! `cargo xtask fuzz`: builds the targets in `fuzz/` once and runs each for its share of the time.
//!
//! Needs a C++ compiler, for libFuzzer, and no nightly toolchain: the flags below are stable.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::Mutex,
    thread,
};

use crate::{
    common::{built::Built, files::create, page},
    workspace,
};

/// What libFuzzer needs from the compiler: counters and tables for coverage, and the operands of
/// comparisons. `fuzzing` compiles the seams of the targets.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Dwarnings",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The lines of a log that are printed for a crash.
const TAIL: usize = 40;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The minutes of all targets together
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Only these targets
    #[arg(long = "target")]
    targets: Vec<String>,
    /// The seed of all targets, so that a run can be repeated; a random one if it is missing
    #[arg(long)]
    seed: Option<u32>,
    /// The number of targets that run at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// Runs the targets; the error says how to reproduce each crash.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let home = workspace::target().join("fuzz");
    let program = build(&home)?;
    let known = workspace::output(&mut Command::new(&program))?;
    let known: Vec<&str> = known.lines().collect();
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("there is no target `{unknown}`, but {}", known.join(", ")));
    }
    let is_chosen = |name: &&str| {
        options.targets.is_empty() || options.targets.iter().any(|chosen| chosen == name)
    };
    let chosen: Vec<&str> = known.into_iter().filter(is_chosen).collect();
    let seconds = (options.minutes * 60.0 / chosen.len() as f64).ceil().max(1.0) as u64;
    println!("{} targets, {seconds} s each", chosen.len());
    // libFuzzer chooses a seed for 0.
    let limits =
        [format!("-max_total_time={seconds}"), format!("-seed={}", options.seed.unwrap_or(0))];
    let waiting = Mutex::new(chosen.iter());
    let outcomes = Mutex::new(Vec::new());
    let next = || waiting.lock().ok()?.next().copied();
    thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(name) = next() {
                    let outcome = fuzz(&program, &home, name, &limits);
                    outcomes.lock().expect("no thread panics").push(outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no thread panics");
    report(outcomes.into_iter().collect::<Result<Vec<_>, _>>()?)
}

/// Builds the program with all targets and returns its path.
fn build(home: &Path) -> Result<PathBuf, String> {
    let compiler = workspace::output(Command::new("rustc").arg("-vV"))?;
    let host = compiler.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?;
    let mut command = workspace::cargo();
    command.args(["build", "--quiet", "--release", "--locked"]);
    command.args(["--manifest-path", "fuzz/Cargo.toml", "--target-dir"]).arg(home);
    // With a target, the flags do not apply to build scripts and macros, which have no fuzzer to link.
    command.args(["--target", host]).env("RUSTFLAGS", FLAGS.join(" "));
    Built::build(&mut command)?.program("turnbuckle-fuzz")
}

/// One run of a target.
struct Fuzzed {
    name: String,
    status: ExitStatus,
    log: String,
    /// How to run it again on the input that ended it.
    again: String,
}

fn fuzz(program: &Path, home: &Path, name: &str, limits: &[String]) -> Result<Fuzzed, String> {
    let [corpus, artifacts, logs] =
        ["corpus", "artifacts", "logs"].map(|kind| home.join(kind).join(name));
    // New inputs stay out of the checkout; the first directory takes them.
    for directory in [&corpus, &artifacts, &logs] {
        create(directory)?;
    }
    let log = logs.join("log.txt");
    let file = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let mut command = Command::new(program);
    command.env("FUZZ_TARGET", name).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    command.args(limits);
    command.args(["-timeout=20", "-rss_limit_mb=1024", "-max_len=4096", "-print_final_stats=1"]);
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.arg(&corpus).arg(workspace::root().join("fuzz/corpus").join(name));
    let status = command.status().map_err(|error| format!("{}: {error}", program.display()))?;
    let log = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
    let input = log.lines().find_map(|line| line.split_once("Test unit written to "));
    let input = input.map_or("INPUT", |(_, path)| path.trim());
    let again = format!("FUZZ_TARGET={name} {} {input}", program.display());
    Ok(Fuzzed { name: name.to_owned(), status, log, again })
}

/// Prints the table.
fn report(mut all: Vec<Fuzzed>) -> Result<(), String> {
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let rows = all.iter().map(|run| {
        let crash = if run.status.success() { "no" } else { "YES" };
        vec![
            run.name.clone(),
            statistic(&run.log, "stat::number_of_executed_units:"),
            last_after(&run.log, " cov: "),
            last_after(&run.log, " ft: "),
            statistic(&run.log, "stat::new_units_added:"),
            crash.to_owned(),
        ]
    });
    println!(
        "{}",
        page::table(&["target", "runs", "edges", "features", "new inputs", "crash"], rows)
    );
    let crashed = all.iter().filter(|run| !run.status.success());
    let problems: Vec<String> = crashed
        .map(|run| {
            let lines: Vec<&str> = run.log.lines().collect();
            let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
            format!(
                "{tail}\n\n{} crashed ({}). Run it again:\n  {}",
                run.name, run.status, run.again
            )
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n\n")) }
}

/// Returns the number after a name at the start of a line.
fn statistic(log: &str, name: &str) -> String {
    let found = log.lines().find_map(|line| line.strip_prefix(name));
    found.map_or_else(|| "?".to_owned(), |number| number.trim().to_owned())
}

/// Returns the number after the last occurrence of a word.
fn last_after(log: &str, word: &str) -> String {
    let after = log.rsplit_once(word).map_or("", |(_, after)| after);
    let number: String = after.chars().take_while(char::is_ascii_digit).collect();
    if number.is_empty() { "?".to_owned() } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::files::read;

    #[test]
    fn numbers_are_read_from_a_log() {
        let log = "#2\tINITED cov: 5 ft: 6 corp: 1/1b\n#9\tDONE   cov: 41 ft: 130 corp: 7/9b\n\
                   stat::number_of_executed_units: 123\nstat::new_units_added:         4\n";
        assert_eq!(last_after(log, " cov: "), "41");
        assert_eq!(last_after(log, " ft: "), "130");
        assert_eq!(statistic(log, "stat::number_of_executed_units:"), "123");
        assert_eq!(statistic(log, "stat::new_units_added:"), "4");
        assert_eq!((statistic("", "x"), last_after("", "x")), ("?".to_owned(), "?".to_owned()));
    }

    #[test]
    fn every_target_has_a_corpus() {
        let root = workspace::root();
        let list = read(&root.join("fuzz/src/targets/mod.rs")).unwrap();
        let names: Vec<&str> = list
            .lines()
            .filter_map(|line| line.trim().strip_prefix("(\"")?.split_once('"'))
            .map(|(name, _)| name)
            .collect();
        assert!(names.len() >= 10, "{names:?}");
        for name in names {
            let corpus = fs::read_dir(root.join("fuzz/corpus").join(name));
            assert!(corpus.is_ok_and(|files| files.count() > 2), "{name}");
        }
    }
}
