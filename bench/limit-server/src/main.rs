//! Owns: the bare limit of a server: what the machine allows without an SDK.
//! Does not own: anything an SDK promises beyond answering the bench contract.

mod counters;
mod pipes;
mod proto;
mod web;

use tokio::runtime::Runtime;

const USAGE: &str = "\
usage: limit-server --stdio [pipe|spawn|tokio] | --http PORT
  pipe   one task over the pipes, as files in the reactor (default)
  spawn  the same with a task for each request and one writer
  tokio  one task over tokio's stdin and stdout";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = Runtime::new().expect("a runtime");
    match words.as_slice() {
        ["--stdio"] | ["--stdio", "pipe"] => runtime.block_on(pipes::one_task()),
        ["--stdio", "spawn"] => runtime.block_on(pipes::task_per_request()),
        ["--stdio", "tokio"] => runtime.block_on(pipes::tokio_stdio()),
        ["--http", port] => {
            runtime.block_on(web::serve(port.parse().expect("a port")));
        }
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2)
        }
    }
    // A thread may still hang in a read of stdin.
    runtime.shutdown_background();
}
