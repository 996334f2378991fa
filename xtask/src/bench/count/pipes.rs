//! Counts a server over stdio.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use super::{
    message::{discover, greet_again, request, request_state},
    workload::{Sends, Workload},
};

/// Sends `length` requests and waits for their answers; at the end of input the server ends.
pub(super) fn drive(
    mut command: Command,
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
    let mut talk = || -> Result<(), String> {
        exchange(&mut input, &mut output, &(discover() + "\n"), 1)?;
        let ids: Vec<usize> = (1..=length).collect();
        for window in ids.chunks(workload.window) {
            let lines: String =
                window.iter().map(|id| request(workload.sends, *id) + "\n").collect();
            let results = exchange(&mut input, &mut output, &lines, window.len())?;
            if matches!(workload.sends, Sends::Conversation) {
                let lines = answers(&results, window)?;
                exchange(&mut input, &mut output, &lines, window.len())?;
            }
        }
        Ok(())
    };
    let talked = talk();
    drop(input);
    let ended = child.wait().is_ok_and(|status| status.success());
    talked?;
    if ended { Ok(()) } else { Err("the server did not end well at the end of input".to_owned()) }
}

/// The second round of calls, with the answers that the server asked for and new ids.
fn answers(results: &[String], window: &[usize]) -> Result<String, String> {
    const SECOND_ROUND: usize = 1_000_000;
    let mut lines = String::new();
    for (result, id) in results.iter().zip(window) {
        let state = request_state(result)
            .ok_or_else(|| format!("the server asked nothing: {}", result.trim_end()))?;
        lines += &greet_again(SECOND_ROUND + id, &state);
        lines.push('\n');
    }
    Ok(lines)
}

/// Writes the lines and reads as many results. A server may answer before it has read everything,
/// so a thread writes at the same time.
fn exchange(
    input: &mut (impl Write + Send),
    output: &mut impl BufRead,
    lines: &str,
    answers: usize,
) -> Result<Vec<String>, String> {
    std::thread::scope(|scope| {
        let written =
            scope.spawn(|| input.write_all(lines.as_bytes()).and_then(|()| input.flush()));
        let mut results = Vec::with_capacity(answers);
        while results.len() < answers {
            let mut line = String::new();
            let count = output.read_line(&mut line).map_err(|error| error.to_string())?;
            if count == 0 {
                return Err("the server closed its output".to_owned());
            }
            if line.contains("\"error\"") {
                return Err(format!("the server refused: {}", line.trim_end()));
            }
            if line.contains("\"result\"") {
                results.push(line);
            }
        }
        match written.join() {
            Ok(Ok(())) => Ok(results),
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
        let results = talk("{\"result\":1}\n{\"method\":2}\n{\"result\":3}\n").unwrap();
        assert_eq!(results, ["{\"result\":1}\n", "{\"result\":3}\n"]);
        assert!(talk("{\"result\":1}\n").unwrap_err().contains("closed"));
        assert!(talk("{\"error\":1}\n").unwrap_err().contains("refused"));
    }

    #[test]
    fn the_second_round_gives_back_what_the_first_was_given() {
        let asked = r#"{"result":{"resultType":"input_required","requestState":"kept"}}"#;
        let lines = answers(&[asked.to_owned()], &[7]).unwrap();
        assert!(lines.contains(r#""requestState":"kept""#) && lines.ends_with("}\n"));
        let ended = r#"{"result":{"resultType":"complete"}}"#.to_owned();
        assert!(answers(&[ended], &[7]).unwrap_err().contains("asked nothing"));
    }
}
