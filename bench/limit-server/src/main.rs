//! The bare limit of a server: what the machine allows without an SDK.

mod counters;
mod pipes;
mod proto;
mod web;

use tokio::runtime::Runtime;

const USAGE: &str = "\
usage: limit-server [--kept-list TOOLS] (--stdio [pipe|spawn|tokio] | --http PORT)
  pipe   one task over the pipes, as files in the reactor (default)
  spawn  the same with a task for each request and one writer
  tokio  one task over tokio's stdin and stdout
  --kept-list TOOLS  lists so many tools, and lets clients keep the list for an hour";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = Runtime::new().expect("a runtime");
    let mode = match words.as_slice() {
        ["--kept-list", count, mode @ ..] => {
            proto::KEPT_LIST.get_or_init(|| count.parse().expect("a number of tools"));
            mode
        }
        mode => mode,
    };
    match mode {
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
