//! Finds the line of a process's stderr that says why the process ended.

use std::borrow::Cow;

/// Returns the line that carries the error, or the last line that says anything.
///
/// Traces of Python, Node.js, Rust and Go are known. The text that other programs print last, such as
/// a version or a frame of a stack, is passed over.
pub(super) fn reason(lines: &[String]) -> Option<Cow<'_, str>> {
    let bodies: Vec<&str> = lines.iter().map(|line| without_gutter(line)).collect();
    let said = || bodies.iter().copied().filter(|line| !is_noise(line));
    let found = after_traceback(&bodies)
        .or_else(|| said().rfind(|line| names_exception(line)))
        .or_else(|| said().find(|line| mentions_error(line)))
        .or_else(|| said().next_back());
    let line = found.map(str::trim);
    panicked(&bodies).or(line.map(Cow::Borrowed)).or(Some(Cow::Borrowed(lines.last()?)))
}

/// Returns the line without the bars that Python draws beside an exception group.
fn without_gutter(line: &str) -> &str {
    match line.trim_start().strip_prefix('|') {
        Some(rest) => rest.strip_prefix(' ').unwrap_or(rest),
        None => line,
    }
}

/// Returns the exception that ends the last traceback of Python: the first line after the frames,
/// which are indented.
fn after_traceback<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let start =
        lines.iter().rposition(|line| line.contains("Traceback (most recent call last)"))?;
    lines[start + 1..].iter().copied().find(|line| {
        let is_drawn = line.trim_start().starts_with('+');
        !line.is_empty() && !line.starts_with(char::is_whitespace) && !is_drawn
    })
}

/// Returns the place and the message of a Rust panic, which are on two lines.
fn panicked<'a>(lines: &[&'a str]) -> Option<Cow<'a, str>> {
    let at = lines
        .iter()
        .rposition(|line| line.starts_with("thread '") && line.contains(" panicked at "))?;
    Some(match lines.get(at + 1).filter(|_| lines[at].ends_with(':')) {
        Some(message) => Cow::Owned(format!("{} {}", lines[at], message.trim())),
        None => Cow::Borrowed(lines[at]),
    })
}

/// Whether the line begins as `TypeError: …`, `pkg.SomeException: …` or `Error [ERR_CODE]: …` do.
fn names_exception(line: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    let end = line.find(|letter| !plain(letter)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let is_name = name.ends_with("Error") || name.ends_with("Exception");
    is_name && (rest.is_empty() || rest.starts_with(": ") || rest.starts_with(" ["))
}

fn mentions_error(line: &str) -> bool {
    let words = line.split(|letter: char| !letter.is_ascii_alphanumeric());
    let said = ["error", "fatal", "panic"];
    words.into_iter().any(|word| said.iter().any(|said| word.eq_ignore_ascii_case(said)))
}

/// Whether the line never says why: frames, marks, versions, hints of a runtime.
fn is_noise(line: &str) -> bool {
    let line = line.trim();
    !line.contains(char::is_alphabetic)
        || ["at ", "File \"", "Node.js v", "note: run with `RUST_BACKTRACE", "goroutine "]
            .iter()
            .any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        reason(&lines).unwrap_or_default().into_owned()
    }

    #[test]
    fn of_node_the_error_is_shown_and_not_its_version() {
        let missing = "node:internal/modules/cjs/loader:1148\n  throw err;\n  ^\n\n\
            Error: Cannot find module '/srv/notes.js'\n    \
            at Module._resolveFilename (node:internal/modules/cjs/loader:1145:15)\n    \
            at node:internal/main/run_main_module:28:49 {\n  code: 'MODULE_NOT_FOUND',\n  \
            requireStack: []\n}\n\nNode.js v20.11.0";
        assert_eq!(said(missing), "Error: Cannot find module '/srv/notes.js'");
        let coded = "file:///srv/notes.js:3\nthrow new TypeError('x')\n      ^\n\n\
            TypeError [ERR_INVALID_ARG_TYPE]: The \"path\" argument must be a string\n    \
            at main (file:///srv/notes.js:3:7) {\n  code: 'ERR_INVALID_ARG_TYPE',\n  \
            [cause]: Error: connect ECONNREFUSED\n}\n\nNode.js v20.11.0";
        let expected = "TypeError [ERR_INVALID_ARG_TYPE]: The \"path\" argument must be a string";
        assert_eq!(said(coded), expected);
        let npm = "npm error code E404\n\
            npm error 404 Not Found - GET https://registry.npmjs.org/no-such - Not found\n\
            npm error A complete log of this run can be found in: /home/ada/.npm/_logs/x.log";
        assert_eq!(said(npm), "npm error code E404");
    }

    #[test]
    fn of_python_the_exception_is_shown() {
        let plain = "starting\nTraceback (most recent call last):\n  File \"/srv/notes.py\", line 1, in <module>\n    \
            import nothing\nModuleNotFoundError: No module named 'nothing'";
        assert_eq!(said(plain), "ModuleNotFoundError: No module named 'nothing'");
        let own = "Traceback (most recent call last):\n  File \"notes.py\", line 3, in <module>\n    \
            raise Missing('x')\n    ^^^^^^^^^^^^^^^^^^\nnotes.Missing: x\nbye";
        assert_eq!(said(own), "notes.Missing: x");
        let chained = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n\
            KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n\
            Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n\
            ValueError: no x";
        assert_eq!(said(chained), "ValueError: no x");
        let group = "  + Exception Group Traceback (most recent call last):\n  \
            |   File \"/srv/notes.py\", line 9, in <module>\n  |     sys.exit(main())\n  \
            | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  \
            +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    \
            |   File \"/srv/notes.py\", line 4, in run\n    \
            | ValueError: the token is missing\n    +------------------------------------";
        assert_eq!(said(group), "ValueError: the token is missing");
        let usage = "usage: notes [-h] --path PATH\n\
            notes: error: the following arguments are required: --path";
        assert_eq!(said(usage), "notes: error: the following arguments are required: --path");
    }

    #[test]
    fn of_rust_the_panic_is_shown_with_its_message() {
        let panic = "thread 'main' panicked at src/main.rs:4:10:\n\
            called `Option::unwrap()` on a `None` value\n\
            note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
        let expected = "thread 'main' panicked at src/main.rs:4:10: \
            called `Option::unwrap()` on a `None` value";
        assert_eq!(said(panic), expected);
        let error = "Error: the notes can't be opened\n\nCaused by:\n    No such file or directory";
        assert_eq!(said(error), "Error: the notes can't be opened");
        let clap = "error: unexpected argument '--x' found\n\nUsage: notes [OPTIONS]\n\n\
            For more information, try '--help'.";
        assert_eq!(said(clap), "error: unexpected argument '--x' found");
    }

    #[test]
    fn of_go_the_panic_is_shown() {
        let panic = "panic: runtime error: index out of range [3] with length 3\n\ngoroutine 1 [running]:\n\
            main.main()\n\t/srv/main.go:7 +0x1d\nexit status 2";
        assert_eq!(said(panic), "panic: runtime error: index out of range [3] with length 3");
    }

    #[test]
    fn of_anything_the_last_line_that_says_something_is_shown() {
        assert_eq!(
            said("starting\nno token in NOTES_TOKEN\n\n+-------+\n"),
            "no token in NOTES_TOKEN"
        );
        assert_eq!(said("boom"), "boom");
        assert_eq!(said("***"), "***");
        assert_eq!(reason(&[]), None);
    }
}
