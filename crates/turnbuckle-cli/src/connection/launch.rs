//! The start of a server that gets SIGTERM when this process ends, even by SIGKILL. Linux only.
//!
//! Linux sends a process a signal when the thread that started it ends, if the process asks for it.
//! Between fork and exec only `unsafe` code could ask. Instead this program starts itself, asks, and
//! replaces itself with the server. Servers are started on the main thread, which lives as long as
//! the process.

use std::{
    env::split_paths,
    ffi::OsString,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::{Command, exit},
};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use turnbuckle::transport::child_process::Spawn;

/// The first argument of a process that is about to become a server.
const WORD: &str = "--become-server";
/// This program, even if its file has been replaced.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// The exit status of shells for a program that can't be run.
const NOT_STARTED: i32 = 127;

/// Starts the server by way of this program. The environment of `spawn` must not be inherited.
pub(crate) fn by_this_program(spawn: Spawn) -> Spawn {
    spawn.before_spawn(|command| {
        // The error for a program that does not exist is that of the direct start.
        if Path::new(THIS_PROGRAM).exists() && is_executable(command) {
            *command = launcher(command);
        }
    })
}

fn launcher(command: &Command) -> Command {
    let mut launcher = Command::new(THIS_PROGRAM);
    launcher.args([WORD, &std::process::id().to_string()]);
    launcher.arg(command.get_program()).args(command.get_args());
    launcher.env_clear();
    launcher.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        launcher.current_dir(directory);
    }
    launcher
}

/// Returns whether the program of a command exists and may be run, as far as its file tells.
fn is_executable(command: &Command) -> bool {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let directory = command.get_current_dir().unwrap_or(Path::new("."));
    let program = Path::new(command.get_program());
    if program.components().count() > 1 || program.is_absolute() {
        return directory.is_dir() && is_program(&directory.join(program));
    }
    let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
    directory.is_dir()
        && path.is_some_and(|path| {
            split_paths(path).any(|folder| is_program(&directory.join(folder).join(program)))
        })
}

/// Becomes a server, if this process was started for that.
pub(crate) fn become_server() {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_none_or(|word| word != WORD) {
        return;
    }
    let parent = words.next().and_then(|word| word.to_str()?.parse::<u32>().ok());
    let Some(program) = words.next() else { exit(NOT_STARTED) };
    // Where this is not allowed, the server is started all the same.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    // The parent may have ended before that.
    let is_parent_alive = getppid().map(|id| id.as_raw_pid().unsigned_abs()) == parent;
    if is_parent_alive {
        let error = Command::new(&program).args(words.collect::<Vec<OsString>>()).exec();
        eprintln!("`{}` was not started: {error}", program.to_string_lossy());
    }
    exit(NOT_STARTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &str, directory: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", "/nowhere:/bin").current_dir(directory);
        command
    }

    #[test]
    fn only_programs_that_can_be_run_are_started_by_this_program() {
        for (program, directory) in
            [("sh", "/"), ("/bin/sh", "/"), ("./sh", "/bin"), ("bin/sh", "/")]
        {
            assert!(is_executable(&command(program, directory)), "{program} in {directory}");
        }
        for (program, directory) in [
            ("no-such-program", "/"),
            ("./sh", "/"),
            ("/etc/passwd", "/"),
            ("/bin", "/"),
            ("sh", "/nowhere"),
        ] {
            assert!(!is_executable(&command(program, directory)), "{program} in {directory}");
        }
    }

    #[test]
    fn a_launcher_keeps_arguments_variables_and_directory() {
        let mut command = command("sh", "/tmp");
        command.args(["-c", "a b"]).env_remove("HOME");
        let launcher = launcher(&command);
        let words: Vec<_> = launcher.get_args().skip(2).collect();
        assert_eq!(words, ["sh", "-c", "a b"]);
        let variables: Vec<_> = launcher.get_envs().collect();
        assert_eq!(variables, [("PATH".as_ref(), Some("/nowhere:/bin".as_ref()))]);
        assert_eq!(launcher.get_current_dir(), Some(Path::new("/tmp")));
    }
}
