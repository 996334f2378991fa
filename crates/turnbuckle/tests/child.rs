//! Child processes, with real ones.
//!
//! The children are small shell scripts. `tail -f /dev/null` is a program that never
//! ends by itself and takes no notice of its standard input; it does end when its
//! standard output is a pipe without a reader, so that is kept or is another.

#![cfg(all(unix, feature = "client"))]

use std::{
    env, fs,
    future::Future,
    process::{Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    runtime::{Builder, Runtime},
};
use turnbuckle::transport::child_process::{
    self, Child, ChildStdout, ExitMethod, Settled, Spawn, SpawnErrorKind,
};

/// Never waited for: a test that needs it has failed.
const LONG: Duration = Duration::from_secs(60);
/// Waited for, so short.
const SHORT: Duration = Duration::from_millis(20);

// req: transport:stdio:clean-shutdown
#[tokio::test]
async fn a_child_that_obeys_exits_at_the_end_of_its_input() {
    let child = patient("exec cat").spawn().unwrap();
    drop(child.stdin);
    let report = within(child.handle.shutdown()).await;
    assert_eq!(report.how, ExitMethod::Exited);
    assert_eq!(report.to_string(), "exited with status 0");
    assert_not_there(child.handle.id());
}

#[tokio::test]
async fn shutting_the_input_down_is_its_end_too() {
    let mut child = patient("exec cat").spawn().unwrap();
    child.stdin.write_all(b"last words").await.unwrap();
    within(child.stdin.shutdown()).await.unwrap();
    let mut said = String::new();
    within(child.stdout.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "last words");
    assert!(within(child.handle.exited()).await.is_success());
    let error = child.stdin.write_all(b"more").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

// req: transport:stdio:shutdown-escalation
#[tokio::test]
async fn a_child_that_ignores_the_end_of_its_input_is_terminated() {
    let child =
        script("exec tail -f /dev/null").close_grace(SHORT).terminate_grace(LONG).spawn().unwrap();
    drop(child.stdin);
    let report = within(child.handle.shutdown()).await;
    assert_eq!(report.how, ExitMethod::Terminated);
    let sentence = "was ended by SIGTERM after ignoring the end of its input";
    assert_eq!(report.to_string(), sentence);
    assert_not_there(child.handle.id());
}

// req: transport:stdio:shutdown-escalation
#[tokio::test]
async fn a_child_that_ignores_sigterm_too_is_killed() {
    let child = impatient("trap '' TERM; echo ready; exec tail -f /dev/null").spawn().unwrap();
    let mut stdout = lines(child.stdout);
    assert_eq!(next_line(&mut stdout).await, "ready");
    drop(child.stdin);
    let report = within(child.handle.shutdown()).await;
    assert_eq!(report.how, ExitMethod::Killed);
    assert_eq!(report.to_string(), "was killed by SIGKILL after ignoring SIGTERM");
    assert_not_there(child.handle.id());
}

#[tokio::test]
async fn a_child_may_take_its_time_after_sigterm() {
    let body = "trap 'echo bye >&2; exit 4' TERM; echo ready; tail -f /dev/null & wait";
    let child = terminated(body).spawn().unwrap();
    let mut stdout = lines(child.stdout);
    assert_eq!(next_line(&mut stdout).await, "ready");
    drop(child.stdin);
    let report = within(child.handle.shutdown()).await;
    assert_eq!(report.to_string(), "exited with status 4 after SIGTERM");
    assert_eq!(report.last_stderr, ["bye"]);
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_goes_with_its_parent() {
    // The child obeys; the one it left in the background does not read its input.
    let child = patient("tail -f /dev/null & echo $!; exec cat").spawn().unwrap();
    let mut stdout = lines(child.stdout);
    let grandchild: u32 = next_line(&mut stdout).await.parse().unwrap();
    assert!(runs(grandchild));
    drop(child.stdin);
    let report = within(child.handle.shutdown()).await;
    assert_eq!(report.how, ExitMethod::Exited, "only the child itself counts");
    assert!(!runs(grandchild));
    // The grandchild held the other end.
    assert_eq!(within(stdout.next_line()).await.unwrap(), None);
    assert_not_there(child.handle.id());
}

#[tokio::test]
async fn a_grandchild_that_ignores_sigterm_is_killed() {
    let body = "(trap '' TERM; echo ready; exec tail -f /dev/null) & echo $!; exec cat";
    let child = script(body).close_grace(LONG).terminate_grace(SHORT).spawn().unwrap();
    let mut stdout = lines(child.stdout);
    let mut said = [next_line(&mut stdout).await, next_line(&mut stdout).await];
    said.sort();
    let [grandchild, ready] = said;
    assert_eq!(ready, "ready");
    drop(child.stdin);
    assert_eq!(within(child.handle.shutdown()).await.how, ExitMethod::Exited);
    assert!(!runs(grandchild.parse().unwrap()));
    assert_eq!(within(stdout.next_line()).await.unwrap(), None);
}

#[tokio::test]
async fn an_exit_is_seen_while_a_grandchild_holds_the_pipes() {
    let body = "(trap '' TERM; echo ready; exec tail -f /dev/null) & read line; exit 3";
    let mut child = script(body).terminate_grace(LONG).spawn().unwrap();
    let mut stdout = lines(child.stdout);
    assert_eq!(next_line(&mut stdout).await, "ready");
    child.stdin.write_all(b"go\n").await.unwrap();
    assert_eq!(within(child.handle.exited()).await.status, Some(3));
    assert_not_there(child.handle.id());
    // The grandchild has its grace, and the pipe stays open with it.
    let mut eof = std::pin::pin!(stdout.next_line());
    assert!(tokio::time::timeout(Duration::ZERO, eof.as_mut()).await.is_err());
    signal(child.handle.id(), "-KILL");
    assert_eq!(within(eof).await.unwrap(), None);
    within(child.handle.observer().gone()).await;
}

#[tokio::test]
async fn a_crash_is_reported_with_its_status_and_last_lines() {
    let child = patient("echo one >&2; echo two >&2; printf three >&2; exit 3").spawn().unwrap();
    let report = within(child.handle.exited()).await;
    assert_eq!((report.status, report.signal, report.how), (Some(3), None, ExitMethod::Exited));
    assert_eq!(report.to_string(), "exited with status 3");
    assert_eq!(report.last_stderr, ["one", "two", "three"]);
    assert_eq!(child.handle.last_stderr(), ["one", "two", "three"]);
    assert_eq!(child.handle.try_exit(), Some(report));
    assert_not_there(child.handle.id());
}

#[tokio::test]
async fn a_signal_of_its_own_is_named() {
    let child = patient("kill -SEGV $$").spawn().unwrap();
    let report = within(child.handle.exited()).await;
    assert_eq!(report.to_string(), "was killed by SIGSEGV");
    assert_eq!(report.status, None);
}

#[tokio::test]
async fn a_flood_of_stderr_blocks_nobody() {
    let body = "head -c 10485760 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo end >&2; \
                echo done; exec cat";
    let child = patient(body).spawn().unwrap();
    assert_eq!(next_line(&mut lines(child.stdout)).await, "done");
    drop(child.stdin);
    let report = within(child.handle.shutdown()).await;
    let cut = format!("{} …", "x".repeat(4096));
    assert_eq!(report.last_stderr, [cut.as_str(), "end"]);
}

// req: transport:stdio:stderr-passthrough
#[tokio::test]
async fn the_last_lines_of_stderr_are_kept_and_each_is_told() {
    let body = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo line $i >&2; done";
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    let child = patient(body)
        .stderr_lines(2)
        .on_stderr(move |line| listener.lock().unwrap().push(line.to_owned()))
        .spawn()
        .unwrap();
    let report = within(child.handle.exited()).await;
    assert_eq!(report.last_stderr, ["line 99", "line 100"]);
    let expected: Vec<String> = (1..=100).map(|i| format!("line {i}")).collect();
    assert_eq!(*told.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_callback_that_blocks_delays_neither_exit_nor_end() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let child = patient("echo one >&2; echo two >&2; exit 3")
        .on_stderr(move |_| assert!(gate.lock().unwrap().recv().is_err()))
        .spawn()
        .unwrap();
    assert_eq!(within(child.handle.shutdown()).await.status, Some(3));
    assert_eq!(child.handle.last_stderr()[0], "one");
    drop(open);
}

// req: transport:stdio:default-env-safelist
#[tokio::test]
async fn only_listed_variables_reach_the_child() {
    // The build tool sets this one for every test.
    let ours = "CARGO_MANIFEST_DIR";
    assert!(env::var_os(ours).is_some(), "this test is run by cargo");
    let shown = |spawn: fn(Spawn) -> Spawn| {
        let mut command = sh("env");
        command.env("MINE", "1").env_remove("HOME");
        output_of(spawn(Spawn::new(command)))
    };
    let has = |text: &str, name: &str| text.lines().any(|l| l.starts_with(&format!("{name}=")));

    let listed = shown(|spawn| spawn).await;
    assert!(has(&listed, "PATH") && has(&listed, "MINE"), "{listed}");
    assert!(!has(&listed, ours) && !has(&listed, "HOME"), "{listed}");
    let added = shown(|spawn| spawn.allow_env("CARGO_MANIFEST_DIR")).await;
    assert!(has(&added, ours), "{added}");
    let inherited = shown(Spawn::inherit_env).await;
    assert!(has(&inherited, ours) && has(&inherited, "MINE"), "{inherited}");
    assert!(!has(&inherited, "HOME"), "{inherited}");
}

#[tokio::test]
async fn the_hook_has_the_last_word_on_the_command() {
    let hook = |command: &mut Command| {
        command.env("MINE", "hooked").current_dir("/");
    };
    let mut command = sh("echo $MINE; pwd");
    command.env("MINE", "1");
    assert_eq!(output_of(Spawn::new(command).before_spawn(hook)).await, "hooked\n/\n");
}

#[tokio::test]
async fn one_spawn_starts_several_children() {
    let mut spawn = script("echo $MINE").before_spawn(|command| {
        command.env("MINE", "set");
    });
    for _ in 0..2 {
        let child = spawn.spawn().unwrap();
        assert_eq!(next_line(&mut lines(child.stdout)).await, "set");
    }
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let error = |command: Command| Spawn::new(command).spawn().unwrap_err();

    let missing = error(Command::new("surely-no-such-program"));
    assert_eq!(missing.kind(), SpawnErrorKind::ProgramNotFound);
    assert_eq!(missing.program(), "surely-no-such-program");
    assert_eq!(missing.to_string(), "`surely-no-such-program` was not found in PATH");

    let path = error(Command::new("/no/such/program"));
    assert_eq!(path.to_string(), "`/no/such/program` does not exist");

    let mut command = Command::new("cat");
    command.current_dir("/no/such/directory");
    let directory = error(command);
    assert_eq!(directory.kind(), SpawnErrorKind::DirectoryNotFound);
    let sentence =
        "`cat` was not started: its working directory `/no/such/directory` does not exist";
    assert_eq!(directory.to_string(), sentence);

    let denied = error(Command::new("/dev/null"));
    assert_eq!(denied.kind(), SpawnErrorKind::NotExecutable);
    assert_eq!(denied.to_string(), "`/dev/null` may not be executed");
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_child() {
    let error = patient("exec cat").spawn().unwrap_err();
    assert_eq!(error.kind(), SpawnErrorKind::NoRuntime);
    assert_eq!(error.to_string(), "`sh` must be started inside a Tokio runtime");
}

#[tokio::test]
async fn dropping_a_child_ends_it() {
    let child = patient("exec cat").spawn().unwrap();
    let observer = child.handle.observer();
    drop(child);
    assert!(within(observer.gone()).await.is_success());
    assert_not_there(observer.id());
}

#[test]
fn a_child_ends_when_it_is_dropped_after_its_runtime() {
    let stubborn = "trap '' TERM; tail -f /dev/null >/dev/null & exec tail -f /dev/null >/dev/null";
    for body in ["exec cat", stubborn] {
        let runtime = runtime();
        let child = runtime.block_on(async { impatient(body).spawn().unwrap() });
        drop(runtime);
        let observer = child.handle.observer();
        drop(child);
        block_on(observer.gone());
        assert_not_there(observer.id());
    }
}

#[test]
fn a_child_ends_when_its_runtime_drops_it() {
    let runtime = runtime();
    let (send, observers) = mpsc::channel();
    runtime.spawn(async move {
        let child = patient("exec cat").spawn().unwrap();
        send.send(child.handle.observer()).unwrap();
        std::future::pending::<()>().await;
        drop(child);
    });
    let observer = observers.recv().unwrap();
    drop(runtime);
    assert!(block_on(observer.gone()).is_success());
}

#[test]
fn a_handle_can_be_dropped_on_any_thread() {
    let runtime = runtime();
    let Child { stdin, stdout, handle, .. } =
        runtime.block_on(async { terminated("exec tail -f /dev/null").spawn().unwrap() });
    let observer = handle.observer();
    thread::spawn(move || drop(handle)).join().unwrap();
    // Nobody has closed its input: it gets SIGTERM all the same.
    assert_eq!(block_on(observer.gone()).how, ExitMethod::Terminated);
    drop((stdin, stdout));
}

#[tokio::test]
async fn an_abandoned_shutdown_goes_on() {
    let child = terminated("exec tail -f /dev/null").spawn().unwrap();
    drop(child.handle.shutdown());
    assert_eq!(within(child.handle.exited()).await.how, ExitMethod::Terminated);
}

#[tokio::test]
async fn many_children_end_at_once() {
    let children: Vec<Child> = (0..50)
        .map(|i| if i % 2 == 0 { "exec cat" } else { "exec tail -f /dev/null >/dev/null" })
        .map(|body| impatient(body).spawn().unwrap())
        .collect();
    let observers: Vec<_> = children.iter().map(|child| child.handle.observer()).collect();
    drop(children);
    for observer in observers {
        within(observer.gone()).await;
        assert_not_there(observer.id());
    }
}

#[test]
fn a_child_ends_with_the_program_that_started_it() {
    let fifo = Fifo::new("ends-with-program");
    let program = again("program_that_ends", "cat", &fifo).spawn().unwrap();
    fifo.wait_until_nobody_holds_it();
    assert!(program.wait_with_output().unwrap().status.success());
}

#[test]
fn a_program_can_wait_for_its_children_to_be_gone() {
    let fifo = Fifo::new("settles");
    let program =
        again("program_that_settles", "tail -f /dev/null >/dev/null", &fifo).spawn().unwrap();
    fifo.wait_until_nobody_holds_it();
    assert!(program.wait_with_output().unwrap().status.success());
}

/// Does nothing in an ordinary run; see [`again`].
#[test]
fn program_that_ends() {
    if let Some(child) = child_of_the_program(LONG) {
        drop(child);
        std::process::exit(0);
    }
}

/// Does nothing in an ordinary run; see [`again`].
#[test]
fn program_that_settles() {
    if let Some(child) = child_of_the_program(SHORT) {
        drop(child);
        std::process::exit(if child_process::settle(LONG) == Settled::AllGone { 0 } else { 1 });
    }
}

/// Starts this test program again, to be a program that ends.
fn again(test: &str, body: &str, fifo: &Fifo) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test]).env("BODY", body).env("FIFO", &fifo.0).stdout(Stdio::null());
    command
}

fn child_of_the_program(grace: Duration) -> Option<Child> {
    let (body, fifo) = (env::var("BODY").ok()?, env::var("FIFO").ok()?);
    let body = format!("exec 9>{fifo}; echo ready; exec {body}");
    runtime().block_on(async {
        let mut child = script(&body).close_grace(grace).spawn().unwrap();
        let mut ready = [0; 6];
        child.stdout.read_exact(&mut ready).await.unwrap();
        Some(child)
    })
}

/// A named pipe that a process of any depth can hold.
struct Fifo(String);

impl Fifo {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("turnbuckle-{name}-{}", std::process::id()));
        let path = path.to_str().unwrap().to_owned();
        // What a run that was killed left behind, if its process id comes again.
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self(path)
    }

    fn wait_until_nobody_holds_it(&self) {
        assert_eq!(fs::read(&self.0).unwrap(), b"");
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

fn sh(body: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", body]);
    command
}

fn script(body: &str) -> Spawn {
    Spawn::new(sh(body))
}

/// No stage of the staged end is reached by waiting.
fn patient(body: &str) -> Spawn {
    script(body).close_grace(LONG).terminate_grace(LONG)
}

/// SIGTERM is reached soon, and SIGKILL is not.
fn terminated(body: &str) -> Spawn {
    script(body).close_grace(SHORT).terminate_grace(LONG)
}

/// Every stage of the staged end is reached soon.
fn impatient(body: &str) -> Spawn {
    script(body).close_grace(SHORT).terminate_grace(SHORT)
}

async fn output_of(mut spawn: Spawn) -> String {
    let mut child = spawn.spawn().unwrap();
    let mut output = String::new();
    within(child.stdout.read_to_string(&mut output)).await.unwrap();
    output
}

fn lines(stdout: ChildStdout) -> Lines<BufReader<ChildStdout>> {
    BufReader::new(stdout).lines()
}

async fn next_line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    within(lines.next_line()).await.unwrap().unwrap()
}

/// Makes a hang a failure.
async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("it hangs")
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// On a runtime of its own, where the child's is gone.
fn block_on<F: Future>(future: F) -> F::Output {
    runtime().block_on(within(future))
}

fn signal(group: u32, name: &str) {
    let target = format!("-{group}");
    assert!(Command::new("kill").args([name, "--", &target]).status().unwrap().success());
}

/// Not even a zombie is left.
fn assert_not_there(process: u32) {
    assert_eq!(state(process), None, "process {process} is there");
}

/// A zombie does not count: whoever inherited the process has yet to reap it.
fn runs(process: u32) -> bool {
    state(process).is_some_and(|state| state != 'Z' && state != 'X')
}

/// The letter that `ps` shows for a process, if there is one.
fn state(process: u32) -> Option<char> {
    let id = process.to_string();
    let output = Command::new("ps").args(["-o", "stat=", "-p", &id]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().chars().next()
}
