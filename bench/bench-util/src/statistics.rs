//! Asking the server what it has counted.

use std::io::{Read, Write};

use crate::{Arguments, Caller, Target};

/// The server's counters: over HTTP beside the client under test, on a stream through it.
pub(crate) async fn statistics(arguments: &Arguments, client: &impl Caller) -> String {
    match &arguments.target {
        Target::Http(url) => {
            let url = url.clone();
            let asked = tokio::task::spawn_blocking(move || statistics_over_http(&url)).await;
            asked.ok().and_then(Result::ok).unwrap_or_default()
        }
        Target::Stdio(_) => client.stats().await.unwrap_or_default(),
    }
}

fn statistics_over_http(url: &str) -> std::io::Result<String> {
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let mut stream = std::net::TcpStream::connect(host)?;
    write!(stream, "GET /stats HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
