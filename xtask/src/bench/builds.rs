//! `cargo xtask bench --build`: the cost of a cold release build of the README's server, beside rmcp.

use std::{collections::BTreeSet, path::Path, time::Instant};

use serde_json::Value;

use super::home;
use crate::{
    common::{
        built::Built,
        files::{create, read, write},
        page,
    },
    workspace,
};

/// A server and the dependencies that its author adds.
struct Setup {
    name: &'static str,
    /// The program in `bench/builds`.
    source: &'static str,
    dependencies: &'static str,
}

const TURNBUCKLE: &str = "turnbuckle = { path = \"ROOT/crates/turnbuckle\"";
const OTHERS: &str = "\
schemars = \"1\"\nserde = { version = \"1\", features = [\"derive\"] }\nserde_json = \"1\"
tokio = { version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }\n";

/// Sets of features that do the same, of Turnbuckle and rmcp in turns. rmcp has no validation of JSON
/// Schemas, and its HTTP server needs axum or hyper besides, which is not counted.
const SETUPS: &[Setup] = &[
    Setup { name: "Turnbuckle, default features", source: "turnbuckle.rs", dependencies: " }" },
    Setup {
        name: "rmcp, its README's server",
        source: "rmcp.rs",
        dependencies: "rmcp = { version = \"=3.8.0\", features = [\"transport-io\"] }",
    },
    Setup {
        name: "Turnbuckle, both sides, HTTP and TLS",
        source: "turnbuckle.rs",
        dependencies: ", features = [\"client\", \"server\", \"macros\", \"http\"] }",
    },
    Setup {
        name: "rmcp, both sides, HTTP and TLS",
        source: "rmcp.rs",
        dependencies: "rmcp = { version = \"=3.8.0\", features = [\"client\", \"elicitation\", \
                       \"reqwest\", \"transport-io\", \"transport-child-process\", \
                       \"transport-streamable-http-server\", \
                       \"transport-streamable-http-client-reqwest\"] }",
    },
    Setup {
        name: "Turnbuckle, both sides, HTTP, TLS and `validate`",
        source: "turnbuckle.rs",
        dependencies: ", features = [\"client\", \"server\", \"macros\", \"http\", \"validate\"] }",
    },
];

/// The cost of one build.
struct Cost {
    cpu_seconds: f64,
    wall_seconds: f64,
    crates: usize,
    megabytes: f64,
}

/// Builds every set-up from nothing and returns the section of the page.
pub(crate) fn measure() -> Result<String, String> {
    let mut lines = Vec::new();
    for setup in SETUPS {
        let cost = build(setup)?;
        let line = vec![
            setup.name.to_owned(),
            format!("{:.0}", cost.cpu_seconds),
            format!("{:.0}", cost.wall_seconds),
            cost.crates.to_string(),
            format!("{:.1}", cost.megabytes),
        ];
        eprintln!("{}", line.join(", "));
        lines.push(line);
    }
    Ok(format!(
        "`cargo xtask bench --build`: a cold release build of the README's server, stripped, one \
         after another. CPU seconds hardly depend on how busy the machine is; wall seconds do. \
         Crates are all that is compiled, build scripts' dependencies included.\n\n{}",
        page::table(&["server", "CPU s", "wall s", "crates", "MB"], lines)
    ))
}

fn build(setup: &Setup) -> Result<Cost, String> {
    let package = home().join("target/builds");
    // Remove an earlier build.
    let _ = std::fs::remove_dir_all(&package);
    create(&package.join("src"))?;
    let root = workspace::root();
    write(&package.join("Cargo.toml"), &manifest(setup, &root))?;
    write(&package.join("Cargo.lock"), &read(&home().join("Cargo.lock"))?)?;
    let source = home().join("builds").join(setup.source);
    write(&package.join("src/main.rs"), &read(&source)?)?;
    let mut fetch = workspace::cargo();
    workspace::run(fetch.args(["fetch", "--quiet"]).current_dir(&package))?;
    let (started, before) = (Instant::now(), children_cpu()?);
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--quiet", "--target-dir", "target"]);
    let built = Built::build(command.current_dir(&package))?;
    let wall_seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = children_cpu()? - before;
    let program = built.program("server")?;
    let size = std::fs::metadata(&program)
        .map_err(|error| format!("{} is not there: {error}", program.display()))?;
    let crates = compiled(built.messages());
    Ok(Cost { cpu_seconds, wall_seconds, crates, megabytes: size.len() as f64 / 1e6 })
}

fn manifest(setup: &Setup, root: &Path) -> String {
    let ours = if setup.source == "turnbuckle.rs" { TURNBUCKLE } else { "" };
    let ours = ours.replace("ROOT", &root.to_string_lossy());
    format!(
        "[workspace]\n[package]\nname = \"server\"\nedition = \"2024\"\n[profile.release]\n\
         strip = true\n[dependencies]\n{OTHERS}{ours}{}\n",
        setup.dependencies
    )
}

/// The packages of which cargo compiled something, the server itself left out.
fn compiled(messages: &str) -> usize {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let artifacts = messages.filter(|message| message["reason"] == "compiler-artifact");
    let packages = artifacts.filter_map(|it| it["package_id"].as_str().map(str::to_owned));
    packages.collect::<BTreeSet<_>>().len().saturating_sub(1)
}

/// Seconds of processor time of all children that have ended, and of theirs.
#[cfg(target_os = "linux")]
fn children_cpu() -> Result<f64, String> {
    let text = read(Path::new("/proc/self/stat"))?;
    let ticks = children_ticks(&text).ok_or("/proc/self/stat is not understood")?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(not(target_os = "linux"))]
fn children_cpu() -> Result<f64, String> {
    Err("processor time of builds is measured on Linux only".to_owned())
}

/// `cutime` and `cstime`, the 16th and 17th field; the second one may contain spaces.
#[cfg(target_os = "linux")]
fn children_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(field(16)? + field(17)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_one_sdk() {
        for setup in SETUPS {
            let manifest = manifest(setup, Path::new("/x"));
            let parsed: toml::Table = toml::from_str(&manifest).unwrap();
            let dependencies = parsed["dependencies"].as_table().unwrap();
            let sdks = ["turnbuckle", "rmcp"].map(|name| dependencies.contains_key(name));
            assert_eq!(sdks.iter().filter(|is_there| **is_there).count(), 1, "{manifest}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn time_of_children_is_read_behind_the_name() {
        let stat = "1 (a) b) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
        assert_eq!(children_ticks(stat), Some(14 + 15));
        assert!(children_cpu().unwrap() >= 0.0);
    }
}
