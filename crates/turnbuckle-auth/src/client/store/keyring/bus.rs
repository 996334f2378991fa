//! A bus and a real secret service on it, apart from the user's own.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// A bus, and a keyring on it; both end with the test.
pub(crate) struct Service {
    pub(crate) place: PathBuf,
    pub(crate) address: String,
    running: Vec<Child>,
}

impl Service {
    pub(crate) fn start() -> Service {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnbuckle-keyring-{}-{number}", std::process::id());
        let place = env::temp_dir().join(name);
        fs::create_dir_all(place.join("run")).unwrap();
        let mut service = Service { place, address: String::new(), running: Vec::new() };
        let bus = ["--session", "--print-address", "--nofork"];
        let mut said = service.spawn("dbus-daemon", &bus);
        said.read_line(&mut service.address).unwrap();
        service.address = service.address.trim().to_owned();
        assert!(!service.address.is_empty(), "dbus-daemon ended before it said where it is");
        let keyring = ["--foreground", "--unlock", "--components=secrets"];
        // It closes its output when it has begun.
        let mut said = service.spawn("gnome-keyring-daemon", &keyring);
        said.read_to_string(&mut String::new()).unwrap();
        assert!((0..1_000).any(|_| service.is_there()), "gnome-keyring-daemon is not on the bus");
        service
    }

    fn spawn(&mut self, program: &str, arguments: &[&str]) -> BufReader<ChildStdout> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        let mut child =
            private(&mut command, &self.place, &self.address).spawn().unwrap_or_else(|error| {
                panic!("{program}: {error}; `apt-get install dbus gnome-keyring` installs it")
            });
        // The keyring's password: an empty line. Without one it would make no keyring.
        let _ = child.stdin.take().unwrap().write_all(b"\n");
        let said = child.stdout.take().unwrap();
        self.running.push(child);
        BufReader::new(said)
    }

    /// Whether someone on the bus is the secret service.
    fn is_there(&self) -> bool {
        let mut command = Command::new("dbus-send");
        command.args(["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/"]);
        command.args(["org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"]);
        let output = private(&mut command, &self.place, &self.address).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("boolean true")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for child in self.running.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// Nothing of the user's own: neither home, nor bus, nor display.
pub(crate) fn private<'a>(
    command: &'a mut Command,
    place: &Path,
    address: &str,
) -> &'a mut Command {
    for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
        command.env(name, place);
    }
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command.env("XDG_RUNTIME_DIR", place.join("run"));
    match address {
        "" => command.env_remove("DBUS_SESSION_BUS_ADDRESS"),
        address => command.env("DBUS_SESSION_BUS_ADDRESS", address),
    }
}
