//! Our side of authorization by a real provider: who vouches for everyone's names, a protected
//! server, and a client that logs in to it and prints a line of JSON for each check.
//!
//! Owns: the command line. Does not own: the provider.

mod authority;
mod checks;
mod serve;
mod web;
mod world;

use std::{path::Path, process::ExitCode};

use turnbuckle::Revision;

use world::World;

const USAGE: &str = "\
usage: interop-auth authority FOLDER
       interop-auth serve FOLDER ISSUER
       interop-auth check FOLDER ISSUER [--revision R] --url URL";

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["authority", folder] => authority::write(Path::new(folder)),
        ["serve", folder, issuer] => serve::run(Path::new(folder), issuer).await,
        ["check", folder, issuer, "--url", url] => check(folder, issuer, None, url).await,
        ["check", folder, issuer, "--revision", revision, "--url", url] => {
            check(folder, issuer, Some(revision), url).await
        }
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::from(2)
        }
    }
}

async fn check(
    folder: &str,
    issuer: &str,
    revision: Option<&str>,
    url: &str,
) -> Result<(), String> {
    let parsed = revision.map(str::parse::<Revision>).transpose();
    let revision = parsed.map_err(|_| "there is no such revision".to_owned())?;
    checks::run(World::new(Path::new(folder), issuer, revision, url)?).await;
    Ok(())
}
