//! Owns: what is to be reached over pipes. Does not own: how it is measured.

use super::{LIST_INSTRUCTIONS, Reach, Row, row};

/// Rows that a clock or a scale decides. Milliseconds for a thousand are microseconds for one.
pub(crate) const TIMES: &[Row] = &[
    row(
        "64 in flight, CPU per request",
        "stdio-echo:64",
        "cpu_ms_per_1k",
        "µs",
        Reach::TimesLimit(2.5),
    ),
    row("64 in flight, requests/s", "stdio-echo:64", "rps", "/s", Reach::TimesRmcp(8.0)),
    row("1 in flight, p50", "stdio-echo:1", "p50_us", "µs", Reach::TimesLimit(1.2)),
    row(
        "1,000 progress notifications in a call, CPU each",
        "stdio-progress:1000",
        "cpu_ms_per_1k_notif",
        "µs",
        Reach::TimesLimit(5.0),
    ),
    row(
        "1,000 calls in flight cancelled, until every handler is gone",
        "stdio-cancel:1000",
        "release_ms_p50",
        "ms",
        Reach::TimesLimit(3.0),
    ),
    row(
        "memory per call in flight",
        "stdio-cancel:1000",
        "kib_per_inflight",
        "KiB",
        Reach::AtMost(2.0),
    ),
    row(
        "1 MiB argument echoed, CPU",
        "stdio-large:1",
        "cpu_ms_per_1k",
        "µs",
        Reach::TimesLimit(1.2),
    ),
    row("1,000 tools listed, CPU", "stdio-list:8", "cpu_ms_per_1k", "µs", Reach::TimesLimit(2.0)),
    row("1,000 tools listed, size", "stdio-list:8", "bytes_per_answer", "B", Reach::Report),
    row(
        "client, 64 concurrent calls, CPU per call",
        "client-calls:64",
        "cpu_ms_per_1k",
        "µs",
        Reach::TimesLimit(1.6),
    ),
    row(
        "client, cached list of 8 tools read, p50",
        "client-cached",
        "read_p50_us",
        "µs",
        Reach::AtMost(2.0),
    ),
    row(
        "client, requests that 20,000 such reads make",
        "client-cached",
        "asked",
        "",
        Reach::AtMost(0.0),
    ),
    row(
        "client, 1,000 calls at once: how many run",
        "client-cancel:1000",
        "started",
        "",
        Reach::AtLeast(1000.0),
    ),
    row(
        "client, those 1,000 dropped: cancels that the server saw",
        "client-cancel:1000",
        "by_notification",
        "",
        Reach::AtLeast(1000.0),
    ),
    row(
        "client, those 1,000 dropped, until the server let go",
        "client-cancel:1000",
        "server_released_ms",
        "ms",
        Reach::Report,
    ),
    row(
        "client, legacy, 1,000 calls at once: how many run",
        "client-legacy-cancel:1000",
        "started",
        "",
        Reach::AtLeast(1000.0),
    ),
    row(
        "client, legacy, those 1,000 dropped: cancels that the server saw",
        "client-legacy-cancel:1000",
        "by_notification",
        "",
        Reach::AtLeast(1000.0),
    ),
    row(
        "client, legacy, those 1,000 dropped, until the server let go",
        "client-legacy-cancel:1000",
        "server_released_ms",
        "ms",
        Reach::Report,
    ),
    row(
        "start to first tool result",
        "stdio-cold:10",
        "first_tool_result_ms",
        "ms",
        Reach::AtMost(2.1),
    ),
    BINARY,
    CRATES,
    row(
        "crates of a stdio-only server with `validate`",
        "sizes",
        "crates_with_validate",
        "",
        Reach::Report,
    ),
];

pub(super) const BINARY: Row =
    row("stripped binary of a stdio-only server", "sizes", "binary_mb", "MB", Reach::AtMost(3.0));
pub(super) const CRATES: Row = row(
    "crates of a stdio-only server without `validate`",
    "sizes",
    "crates",
    "",
    Reach::AtMost(45.0),
);

/// Rows that valgrind counts.
pub(crate) const COUNTS: &[Row] = &[
    row("instructions per request", "echo", "instructions", "", Reach::AtMost(25_000.0)),
    row("allocations per request", "echo", "allocations", "", Reach::AtMost(15.0)),
    row("bytes allocated per request", "echo", "bytes", "B", Reach::Report),
    row("1 MiB argument echoed, instructions", "large", "instructions", "", Reach::Report),
    row("1 MiB argument echoed, allocations", "large", "allocations", "", Reach::Report),
    row("1 MiB argument echoed, bytes allocated", "large", "bytes", "B", Reach::AtMost(4.5e6)),
    row(
        "1,000 tools listed, instructions",
        "list",
        "instructions",
        "",
        Reach::AtMost(LIST_INSTRUCTIONS),
    ),
    row(
        "call on a server with 1 tool, instructions",
        "one-tool",
        "instructions",
        "",
        Reach::Report,
    ),
    row("the same with 1,000 tools", "many-tools", "times", "×", Reach::AtMost(1.05)),
    row("call of a raw handler, instructions", "raw-handler", "instructions", "", Reach::Report),
    row(
        "the same through `#[tool]`, with validation and extractors",
        "typed-handler",
        "times",
        "×",
        Reach::AtMost(1.3),
    ),
    row("plain call, instructions", "plain-call", "instructions", "", Reach::Report),
    row(
        "the same when it has to `ask` first: both rounds",
        "conversation",
        "times",
        "×",
        Reach::AtMost(3.0),
    ),
    row(
        "client, 64 at a time, instructions per call",
        "client-echo",
        "instructions",
        "",
        Reach::AtMost(CALL_INSTRUCTIONS),
    ),
    row("client, allocations per call", "client-echo", "allocations", "", Reach::Report),
    row(
        "client, cached list of 8 tools read, instructions",
        "client-cached",
        "instructions",
        "",
        Reach::AtMost(CACHED_INSTRUCTIONS),
    ),
];

/// What a call takes, a little rounded: it is not to grow unseen.
const CALL_INSTRUCTIONS: f64 = 18_700.0;

/// What it takes, a little rounded: it is not to grow unseen.
const CACHED_INSTRUCTIONS: f64 = 9_500.0;
