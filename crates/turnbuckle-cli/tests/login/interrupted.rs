//! Ctrl-C while someone logs in or out: what is said of it is true.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use turnbuckle_auth::testing::{Endpoint, Fault};

use super::{log_in, run, said, world::World};

fn start(world: &World, arguments: &[&str]) -> Child {
    let mut command = world.command(arguments);
    // Someone is there who does not answer.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// What Ctrl-C does.
pub(super) fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[test]
fn a_login_that_is_interrupted_says_whether_anyone_is_logged_in() {
    let world = World::new("interrupted-login");
    for (before, expected) in [(4, "nobody is logged in"), (0, "a login is kept")] {
        assert_eq!(run(&world, &["tools", &world.url]).0, before);
        let mut login = start(&world, &["login", &world.url, "--no-browser"]);
        let mut lines = BufReader::new(login.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().starts_with("log in with any browser: "));
        interrupt(&login);
        let last = lines.last().unwrap();
        assert!(last.starts_with(&format!("error: interrupted: {expected}")), "{last}");
        assert_eq!(said(login.wait_with_output().unwrap()).0, 130);
        assert_eq!(run(&world, &["tools", &world.url]).0, before);
        if before == 4 {
            log_in(&world);
        }
    }
}

#[test]
fn a_logout_that_is_interrupted_says_what_is_gone() {
    let world = World::new("interrupted-logout");
    log_in(&world);
    world.provider.fail(Endpoint::Revoke, Fault::Held);
    let logout = start(&world, &["logout", &world.url]);
    world.requested(Endpoint::Revoke, 1);
    interrupt(&logout);
    let (status, stdout, stderr) = said(logout.wait_with_output().unwrap());
    assert_eq!((status, &*stdout), (130, ""), "{stderr}");
    let expected = "error: interrupted: nothing is kept here any more; whether tokens were taken \
                    back is not known\n";
    assert_eq!(stderr, expected);
    assert_eq!(run(&world, &["tools", &world.url]).0, 4);
}
