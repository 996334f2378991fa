//! Owns: speaking to a server over its pipes while it is counted. Does not own: the messages.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use super::message::{discover, echo};
use super::{PATIENCE, Workload};
use crate::bench::child::Watched;

/// Sends `length` requests and waits for their answers; at the end of input the server ends.
pub(super) fn drive(
    command: &mut Command,
    workload: &Workload,
    length: usize,
) -> Result<(), String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("valgrind could not be started: {error}"))?;
    let mut input = child.stdin.take().ok_or("no stdin")?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let watched = Watched::new(child, PATIENCE);
    let mut talk = || -> Result<(), String> {
        exchange(&mut input, &mut output, &(discover() + "\n"), 1)?;
        let ids: Vec<usize> = (1..=length).collect();
        for window in ids.chunks(workload.window) {
            let lines: String = window.iter().map(|id| echo(*id, workload.text) + "\n").collect();
            exchange(&mut input, &mut output, &lines, window.len())?;
        }
        Ok(())
    };
    let talked = talk();
    drop(input);
    let ended = watched.finish();
    talked?;
    if ended { Ok(()) } else { Err("the server did not end well at the end of input".to_owned()) }
}

/// Writes the lines and reads as many results. A server may answer before it has read everything,
/// so a thread writes meanwhile.
fn exchange(
    input: &mut (impl Write + Send),
    output: &mut impl BufRead,
    lines: &str,
    answers: usize,
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let written =
            scope.spawn(|| input.write_all(lines.as_bytes()).and_then(|()| input.flush()));
        let mut seen = 0;
        let mut line = String::new();
        while seen < answers {
            line.clear();
            let count = output.read_line(&mut line).map_err(|error| error.to_string())?;
            if count == 0 {
                return Err("the server closed its output".to_owned());
            }
            if line.contains("\"error\"") {
                return Err(format!("the server refused: {}", line.trim_end()));
            }
            seen += usize::from(line.contains("\"result\""));
        }
        match written.join() {
            Ok(Ok(())) => Ok(()),
            _ => Err("the server closed its input".to_owned()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_waits_for_its_results_and_sees_refusals() {
        let talk =
            |answers: &str| exchange(&mut Vec::new(), &mut answers.as_bytes(), "a line\n", 2);
        assert_eq!(talk("{\"result\":1}\n{\"method\":2}\n{\"result\":3}\n"), Ok(()));
        assert!(talk("{\"result\":1}\n").unwrap_err().contains("closed"));
        assert!(talk("{\"error\":1}\n").unwrap_err().contains("refused"));
    }
}
