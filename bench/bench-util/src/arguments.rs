//! The command line that all client drivers take.

const USAGE: &str = "usage: DRIVER [--era modern|legacy] [--mode calls|counted|cached|cancel|unwritten] \
                     [--conc CALLERS] [--n CALLS] [--secs SECONDS] (--http URL | --stdio COMMAND…)";

/// Which handshake the client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Modern,
    Legacy,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `echo` in a closed loop.
    Calls,
    /// `echo`, so many times and no more, so that two lengths of it can be compared.
    Counted,
    /// The list of tools, which the server lets its clients keep, read again and again.
    Cached,
    /// `slow`, many at once, then all of them abandoned.
    Cancel,
    /// `slow`, begun and abandoned before anything can be written.
    Unwritten,
}

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Http(String),
    /// The command line of a child that speaks over its pipes.
    Stdio(Vec<String>),
}

/// A driver's arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    pub era: Era,
    pub mode: Mode,
    /// Callers at once, in [`Mode::Calls`] and [`Mode::Counted`].
    pub callers: usize,
    /// Calls in all, or reads of the list; those of [`Mode::Calls`] are not counted.
    pub calls: usize,
    pub seconds: f64,
    pub target: Target,
}

impl Arguments {
    /// Reads the process's arguments; wrong usage ends the process with status 2.
    pub fn from_env() -> Self {
        Self::parse(std::env::args().skip(1)).unwrap_or_else(|sentence| {
            eprintln!("{sentence}\n{USAGE}");
            std::process::exit(2)
        })
    }

    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut era, mut mode, mut target) = (Era::Modern, Mode::Calls, None);
        let (mut callers, mut calls, mut seconds) = (1, 1000, 3.0);
        while let Some(option) = words.next() {
            if option == "--stdio" {
                target = Some(Target::Stdio(words.by_ref().collect()));
                break;
            }
            let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
            let wrong = || format!("{option} cannot be {value}");
            match option.as_str() {
                "--era" if value == "modern" => era = Era::Modern,
                "--era" if value == "legacy" => era = Era::Legacy,
                "--mode" if value == "calls" => mode = Mode::Calls,
                "--mode" if value == "counted" => mode = Mode::Counted,
                "--mode" if value == "cached" => mode = Mode::Cached,
                "--mode" if value == "cancel" => mode = Mode::Cancel,
                "--mode" if value == "unwritten" => mode = Mode::Unwritten,
                "--conc" => callers = value.parse().map_err(|_| wrong())?,
                "--n" => calls = value.parse().map_err(|_| wrong())?,
                "--secs" => seconds = value.parse().map_err(|_| wrong())?,
                "--http" => target = Some(Target::Http(value)),
                _ => return Err(wrong()),
            }
        }
        let target = target.ok_or("--http or --stdio is missing")?;
        if matches!(&target, Target::Stdio(command) if command.is_empty()) {
            return Err("--stdio needs a command".to_owned());
        }
        Ok(Self { era, mode, callers, calls, seconds, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn everything_after_stdio_is_the_command() {
        let arguments = parse("--era legacy --mode cancel --n 5 --stdio server --n 7").unwrap();
        assert_eq!(arguments.era, Era::Legacy);
        assert_eq!(arguments.mode, Mode::Cancel);
        assert_eq!(arguments.calls, 5);
        let command = ["server", "--n", "7"].map(str::to_owned).to_vec();
        assert_eq!(arguments.target, Target::Stdio(command));
    }

    #[test]
    fn wrong_usage_is_named() {
        assert_eq!(parse("--conc many --stdio s").unwrap_err(), "--conc cannot be many");
        assert_eq!(parse("--conc").unwrap_err(), "--conc needs a value");
        assert_eq!(parse("--era modern").unwrap_err(), "--http or --stdio is missing");
        assert_eq!(parse("--stdio").unwrap_err(), "--stdio needs a command");
    }
}
