//! Why a child could not be started.
//!
//! Owns: turning the operating system's bare "no such file" into what was missing.
//! Does not own: starting.

use std::{fmt, io, path::Path, process::Command};

/// Why a child process could not be started.
///
/// ```
/// use std::process::Command;
/// use turnbuckle::transport::child_process::{Spawn, SpawnErrorKind};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let error = Spawn::new(Command::new("no-such-program")).spawn().unwrap_err();
/// assert_eq!(error.kind(), SpawnErrorKind::ProgramNotFound);
/// assert_eq!(error.to_string(), "`no-such-program` was not found in PATH");
/// # });
/// ```
#[derive(Debug)]
pub struct SpawnError {
    program: String,
    kind: SpawnErrorKind,
    sentence: String,
    source: io::Error,
}

impl SpawnError {
    /// The program as it was given.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// What went wrong, for code.
    pub fn kind(&self) -> SpawnErrorKind {
        self.kind
    }

    /// Explains why starting this command failed.
    pub(super) fn explain(command: &Command, source: io::Error) -> Self {
        let program = command.get_program().to_string_lossy().into_owned();
        let (kind, sentence) = diagnose(command, &program, &source);
        Self { program, kind, sentence, source }
    }

    pub(super) fn no_runtime(command: &Command) -> Self {
        let program = command.get_program().to_string_lossy().into_owned();
        Self {
            kind: SpawnErrorKind::NoRuntime,
            sentence: format!("`{program}` must be started inside a Tokio runtime"),
            source: io::Error::other("there is no Tokio runtime on this thread"),
            program,
        }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<SpawnError> for io::Error {
    fn from(error: SpawnError) -> Self {
        Self::new(error.source.kind(), error)
    }
}

/// What kept a child process from being started.
///
/// ```
/// use turnbuckle::transport::child_process::SpawnErrorKind;
/// assert_ne!(SpawnErrorKind::ProgramNotFound, SpawnErrorKind::DirectoryNotFound);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// The program is not in PATH, or not at the path that was given.
    ProgramNotFound,
    /// The program is there and may not be run.
    NotExecutable,
    /// The working directory does not exist.
    DirectoryNotFound,
    /// Pipes need a Tokio runtime, and there is none on this thread.
    NoRuntime,
    /// Anything else: the source says what.
    Other,
}

fn diagnose(command: &Command, program: &str, source: &io::Error) -> (SpawnErrorKind, String) {
    let directory = command.get_current_dir();
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let directory = directory.display();
        return (
            SpawnErrorKind::DirectoryNotFound,
            format!(
                "`{program}` was not started: its working directory `{directory}` does not exist"
            ),
        );
    }
    let path = Path::new(command.get_program());
    let is_bare_name = path.components().count() == 1 && path.file_name().is_some();
    let (kind, rest) = match source.kind() {
        io::ErrorKind::NotFound if is_bare_name => {
            (SpawnErrorKind::ProgramNotFound, "was not found in PATH")
        }
        io::ErrorKind::NotFound if path.exists() => {
            (SpawnErrorKind::NotExecutable, "exists but its interpreter does not")
        }
        io::ErrorKind::NotFound => (SpawnErrorKind::ProgramNotFound, "does not exist"),
        io::ErrorKind::PermissionDenied => (SpawnErrorKind::NotExecutable, "may not be executed"),
        _ => (SpawnErrorKind::Other, "could not be started"),
    };
    (kind, format!("`{program}` {rest}"))
}
