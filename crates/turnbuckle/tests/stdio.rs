//! Taking over standard input and output, in a process of its own.
//!
//! The test program starts itself again as [`server`]. The test harness prints to
//! descriptor 1 before any test runs, so the second process begins with its standard
//! output at standard error and the wire at descriptor 3, and puts the wire in its
//! place before it does what a server does.

#![cfg(all(unix, feature = "server"))]

use std::{
    env,
    fs::{self, File},
    io,
    io::{BufRead, BufReader, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{self, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    stdio::{dup2_stderr, dup2_stdout, stdin},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt},
    runtime::Builder,
};
use turnbuckle::transport::stdio::{Writer, take_stdio};

const NOISE: &[&str] = &["noise from println", "noise from a child", "noise from eprintln"];

// req: transport:stdio:stream-purity
#[test]
fn over_pipes_only_frames_reach_the_wire() {
    let mut server = start("pipe", Stdio::piped(), Stdio::piped());
    let mut stdin = server.stdin.take().unwrap();
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    assert_eq!(line(&mut stdout), "taken twice: AlreadyExists");
    stdin.write_all(b"one\ntw").unwrap();
    assert_eq!(line(&mut stdout), "frame: one");
    stdin.write_all(b"o\n").unwrap();
    assert_eq!(line(&mut stdout), "frame: two");
    drop(stdin);
    assert_eq!(rest(stdout), "eof\n");
    let (status, stderr) = end(server);
    assert!(status.success());
    assert_noise(&stderr);
}

#[test]
fn files_work_as_input_and_output() {
    let directory = env::temp_dir().join(format!("turnbuckle-stdio-{}", process::id()));
    // What a run that was killed left behind, if its process id comes again.
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir(&directory).unwrap();
    let (input, output) = (directory.join("in"), directory.join("out"));
    // More than is read or buffered at once.
    let long = "x".repeat(300_000);
    fs::write(&input, format!("one\n{long}\ntwo")).unwrap();
    let (input, sink) = (File::open(&input).unwrap(), File::create(&output).unwrap());
    let (status, stderr) = end(start("pipe", input.into(), sink.into()));
    assert!(status.success());
    assert_noise(&stderr);
    let expected =
        format!("taken twice: AlreadyExists\nframe: one\nframe: {long}\nframe: two\neof\n");
    assert!(fs::read_to_string(&output).unwrap() == expected);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_socket_can_be_both() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = start("socket", OwnedFd::from(theirs).into(), Stdio::null());
    let mut reader = BufReader::new(ours.try_clone().unwrap());
    assert_eq!(line(&mut reader), "taken twice: AlreadyExists");
    (&ours).write_all(b"one\n").unwrap();
    assert_eq!(line(&mut reader), "frame: one");
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(rest(reader), "eof\n");
    let (status, stderr) = end(server);
    assert!(status.success());
    assert_noise(&stderr);
}

#[test]
fn a_tcp_socket_can_be_both() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    let server = start("socket", OwnedFd::from(theirs).into(), Stdio::null());
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(rest(&ours), "taken twice: AlreadyExists\neof\n");
    assert!(end(server).0.success());
}

#[test]
fn stderr_on_the_same_pipe_cannot_reach_the_wire() {
    let mut server = start("both", Stdio::piped(), Stdio::piped());
    drop(server.stdin.take());
    let stdout = server.stdout.take().unwrap();
    assert_eq!(rest(stdout), "taken twice: AlreadyExists\neof\n");
    let (status, stderr) = end(server);
    assert!(status.success());
    for noise in NOISE {
        assert!(!stderr.contains(noise), "{stderr}");
    }
}

#[test]
fn a_terminal_works_and_stays_as_it_was() {
    let (mut keyboard, terminal) = terminal();
    let mut server = start("pipe", terminal.try_clone().unwrap().into(), Stdio::piped());
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    assert_eq!(line(&mut stdout), "taken twice: AlreadyExists");
    keyboard.write_all(b"one\n").unwrap();
    assert_eq!(line(&mut stdout), "frame: one");
    // End of transmission: what a user types to end the input.
    keyboard.write_all(b"\x04").unwrap();
    assert_eq!(rest(stdout), "eof\n");
    assert!(end(server).0.success());
    let flags = rustix::fs::fcntl_getfl(&terminal).unwrap();
    assert!(!flags.contains(OFlags::NONBLOCK), "the shell would suffer from it");
}

#[test]
fn a_read_that_hangs_on_a_terminal_does_not_keep_the_process() {
    let (_keyboard, terminal) = terminal();
    let mut server = start("leave", terminal.into(), Stdio::piped());
    let stdout = server.stdout.take().unwrap();
    assert_eq!(rest(stdout), "taken twice: AlreadyExists\nleaving\n");
    assert!(end(server).0.success());
}

#[test]
fn shutting_down_closes_the_wire_though_children_of_the_server_live() {
    let fifo = env::temp_dir().join(format!("turnbuckle-wire-{}", process::id()));
    let _ = fs::remove_file(&fifo);
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut server = start(&format!("fifo {}", fifo.display()), Stdio::piped(), Stdio::null());
    // Comes to its end while the server runs: its own input has not ended.
    assert_eq!(fs::read_to_string(&fifo).unwrap(), "taken twice: AlreadyExists\nend\n");
    assert!(server.try_wait().unwrap().is_none());
    drop(server.stdin.take());
    assert!(end(server).0.success());
    fs::remove_file(&fifo).unwrap();
}

#[test]
fn an_output_that_is_gone_is_an_error() {
    let mut server = start("pipe", Stdio::piped(), Stdio::piped());
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    assert_eq!(line(&mut stdout), "taken twice: AlreadyExists");
    drop(stdout);
    // Again and again: another test that is just starting a process may hold a copy of
    // the reading end for a moment.
    let mut stdin = server.stdin.take().unwrap();
    while stdin.write_all(b"one\n").is_ok() {}
    assert_eq!(end(server).0.code(), Some(3));
}

#[test]
fn without_a_runtime_nothing_is_taken() {
    let error = take_stdio().unwrap_err();
    let sentence = "standard input and output must be taken over inside a Tokio runtime";
    assert_eq!(error.to_string(), sentence);
}

/// The second process. Does nothing in an ordinary run.
#[test]
fn server() {
    let Ok(mode) = env::var("TURNBUCKLE_TEST_SERVER") else { return };
    let wire = mode.strip_prefix("fifo ").unwrap_or("/dev/fd/3");
    let wire = || File::options().write(true).open(wire).unwrap();
    match mode.as_str() {
        "socket" => dup2_stdout(stdin()).unwrap(),
        "both" => {
            let wire = wire();
            dup2_stdout(&wire).unwrap();
            dup2_stderr(&wire).unwrap();
        }
        _ => dup2_stdout(wire()).unwrap(),
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let outcome = runtime.block_on(serve(&mode));
    // Waits for blocking tasks, if there are any.
    drop(runtime);
    match outcome {
        Ok(()) => process::exit(0),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => process::exit(3),
        Err(error) => panic!("{error}"),
    }
}

async fn serve(mode: &str) -> io::Result<()> {
    let (reader, mut writer) = take_stdio()?;
    println!("noise from println");
    eprintln!("noise from eprintln");
    // Were its input the wire, `cat` would eat the frames, and the wire would show them.
    let status = Command::new("sh").args(["-c", "echo noise from a child; cat"]).status();
    assert!(status.is_ok());
    let again = take_stdio().unwrap_err();
    say(&mut writer, &format!("taken twice: {:?}", again.kind())).await?;

    let mut lines = tokio::io::BufReader::new(reader).lines();
    if mode == "leave" {
        // Polled, so that the read is on its way.
        let waiting = tokio::time::timeout(Duration::ZERO, lines.next_line()).await;
        assert!(waiting.is_err());
        say(&mut writer, "leaving").await?;
        return writer.shutdown().await;
    }
    if mode.starts_with("fifo") {
        let mut child = Command::new("tail").args(["-f", "/dev/null"]).spawn()?;
        say(&mut writer, "end").await?;
        writer.shutdown().await?;
        assert_eq!(lines.next_line().await?, None);
        child.kill()?;
        child.wait()?;
        return Ok(());
    }
    while let Some(line) = lines.next_line().await? {
        say(&mut writer, &format!("frame: {line}")).await?;
    }
    say(&mut writer, "eof").await?;
    writer.shutdown().await
}

async fn say(writer: &mut Writer, line: &str) -> io::Result<()> {
    writer.write_all(line.as_bytes()).await?;
    writer.write_all(b"\n").await?;
    writer.flush().await
}

fn start(mode: &str, stdin: Stdio, stdout: Stdio) -> process::Child {
    Command::new("sh")
        .args(["-c", "exec \"$0\" --exact server --nocapture 3>&1 1>&2"])
        .arg(env::current_exe().unwrap())
        .env("TURNBUCKLE_TEST_SERVER", mode)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end of the server, and makes a hang a failure.
fn end(server: process::Child) -> (ExitStatus, String) {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(server.wait_with_output().unwrap()));
    let output = receive.recv_timeout(Duration::from_secs(30)).expect("it hangs");
    (output.status, String::from_utf8(output.stderr).unwrap())
}

fn assert_noise(stderr: &str) {
    for noise in NOISE {
        assert!(stderr.contains(noise), "{stderr}");
    }
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn rest(mut reader: impl Read) -> String {
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    rest
}

/// The end that a user types at, and the end that a program reads.
fn terminal() -> (File, File) {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let path = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
    (keyboard.into(), File::options().read(true).write(true).open(path).unwrap())
}
