//! Children that never outlive us, nor their time.

use std::{
    fs::File,
    io,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// Runs the program that follows, and ends the whole group when nobody holds our end of the pipe any
/// more: however we end ourselves, nothing stays behind.
#[cfg(unix)]
const GUARDED: &str = "exec 3<&0
    (cat <&3; kill -9 0) > /dev/null 2>&1 &
    \"$0\" \"$@\" < /dev/null 3<&-";

/// A command for [`Family::start`].
pub(crate) fn command(program: &Path) -> Command {
    #[cfg(unix)]
    let command = {
        let mut command = Command::new("sh");
        command.args(["-c", GUARDED]).arg(program);
        // The group that is ended must be nobody else's.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    };
    #[cfg(not(unix))]
    let command = Command::new(program);
    command
}

/// Whether this is the command line of what [`command`] puts around a program.
pub(crate) fn is_guard(words: &[&[u8]]) -> bool {
    #[cfg(unix)]
    return words.contains(&GUARDED.as_bytes());
    #[cfg(not(unix))]
    return words.is_empty();
}

/// A child with everything it started; dropping it kills them all.
#[derive(Debug)]
pub(crate) struct Family(Child);

impl Family {
    /// Starts what [`command`] made.
    pub(crate) fn start(command: &mut Command) -> Result<Family, String> {
        let child = command.stdin(Stdio::piped()).spawn();
        child.map(Family).map_err(|error| format!("a child could not be started: {error}"))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Waits for the end, but not past `deadline`.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // Whoever the child left behind is still in its group, even if the child has ended.
        #[cfg(unix)]
        if let Some(group) =
            i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Which files a child writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output<'a> {
    /// One for everything.
    Together(&'a Path),
    Apart {
        stdout: &'a Path,
        stderr: &'a Path,
    },
}

/// Runs a command whose output goes to files, until `deadline`; `None` when it took too long.
pub(crate) fn run_until(
    command: &mut Command,
    output: Output<'_>,
    deadline: Instant,
) -> Result<Option<ExitStatus>, String> {
    let (stdout, stderr) = match output {
        Output::Together(path) => {
            let file = file(path)?;
            let again = file.try_clone().map_err(|error| not_written(path, &error))?;
            (file, again)
        }
        Output::Apart { stdout, stderr } => (file(stdout)?, file(stderr)?),
    };
    let mut family = Family::start(command.stdout(stdout).stderr(stderr))?;
    family.wait_until(deadline).map_err(|error| format!("a child is lost: {error}"))
}

/// A new file for a child to write.
pub(crate) fn file(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| not_written(path, &error))
}

fn not_written(path: &Path, error: &io::Error) -> String {
    format!("{} is not written: {error}", path.display())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = command(Path::new("sh"));
        command.args(["-c", script]);
        command
    }

    fn soon(milliseconds: u64) -> Instant {
        Instant::now() + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_child_that_ends_has_a_status_and_an_output() {
        let output = std::env::temp_dir().join(format!("xtask-output-{}", std::process::id()));
        let mut command = shell("echo told; echo complained >&2; exit 3");
        let status = run_until(&mut command, Output::Together(&output), soon(60_000)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(3));
        assert_eq!(std::fs::read_to_string(&output).unwrap(), "told\ncomplained\n");
        std::fs::remove_file(&output).unwrap();
    }

    /// A family whose grandchild holds the pipe that is returned, and would do so for ever.
    fn with_grandchild() -> (Family, std::process::ChildStdout) {
        let mut command = shell("cat /dev/zero > /dev/null & echo started; wait");
        let mut family = Family::start(command.stdout(Stdio::piped())).unwrap();
        let mut pipe = family.child().stdout.take().unwrap();
        let mut started = [0; 8];
        io::Read::read_exact(&mut pipe, &mut started).unwrap();
        assert_eq!(family.wait_until(soon(0)).unwrap(), None);
        (family, pipe)
    }

    /// The pipe ends only when nobody can write any more.
    fn ends(mut pipe: std::process::ChildStdout) -> bool {
        io::Read::read(&mut pipe, &mut [0; 8]).unwrap() == 0
    }

    #[test]
    fn a_grandchild_goes_with_its_family() {
        let (family, pipe) = with_grandchild();
        drop(family);
        assert!(ends(pipe));
    }

    #[test]
    fn the_family_goes_when_we_are_killed() {
        let (mut family, pipe) = with_grandchild();
        // All that is left of a process that was killed: its pipes are closed.
        drop(family.child().stdin.take());
        assert!(ends(pipe));
        drop(family);
    }
}
