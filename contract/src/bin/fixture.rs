//! The fixture over the standard streams.
//!
//! Owns: the process. Does not own: the tools. `--in-flight N`, `--line-bytes N` and
//! `--listeners N` set limits; `--serves modern` or `legacy` leaves the other era out; `--http 1`
//! serves over HTTP instead, and prints the address; `--offers 1` serves one of everything instead.

use std::future::IntoFuture;

use turnbuckle::{Limits, Result, Server, server::Revisions};
use turnbuckle_contract::{Fixture, Tenant, offers, server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let fixture = Fixture::default();
    let options = options();
    let server = match options.what {
        What::Tools => server(&fixture, options.limits).revisions(options.serves),
        What::Everything => offers(&fixture),
    };
    match options.wire {
        Wire::Stdio => {
            let serving = server.serve_stdio().extension(Tenant("connection".to_owned()));
            serving.with_shutdown(fixture.leaving()).await
        }
        Wire::Http => serve_http(&server, &fixture).await,
    }
}

async fn serve_http(server: &Server, fixture: &Fixture) -> Result<()> {
    let serving = server.serve_http("127.0.0.1:0").with_shutdown(fixture.leaving());
    let bound = serving.bind().await?;
    println!("{}", bound.url());
    bound.into_future().await.map(drop)
}

struct Options {
    limits: Limits,
    serves: Revisions,
    wire: Wire,
    what: What,
}

enum What {
    Tools,
    Everything,
}

enum Wire {
    Stdio,
    Http,
}

fn options() -> Options {
    let mut limits = Limits::default();
    let (mut serves, mut wire, mut what) = (Revisions::All, Wire::Stdio, What::Tools);
    let mut words = std::env::args().skip(1);
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        match (name.as_str(), value.as_str()) {
            ("--serves", "modern") => serves = Revisions::Modern,
            ("--serves", "legacy") => serves = Revisions::Legacy,
            ("--http", _) => wire = Wire::Http,
            ("--offers", _) => what = What::Everything,
            _ => limits = limited(limits, &name, &value),
        }
    }
    Options { limits, serves, wire, what }
}

fn limited(limits: Limits, name: &str, value: &str) -> Limits {
    // Only the suite starts this program: a value that is no number is a mistake in it.
    let value = value.parse().expect("a limit is a number");
    match name {
        "--in-flight" => limits.in_flight(value),
        "--line-bytes" => limits.line_bytes(value),
        "--listeners" => limits.listeners(value),
        _ => panic!("no such option: {name}"),
    }
}
