//! Owns: what is to be reached over Streamable HTTP. Does not own: how it is measured.

use super::{LIST_INSTRUCTIONS, Reach, Row, row};

/// Rows that a clock or a scale decides. Milliseconds for a thousand are microseconds for one.
pub(crate) const TIMES: &[Row] = &[
    row(
        "32 connections, CPU per request",
        "http-echo:32",
        "cpu_ms_per_1k",
        "µs",
        Reach::TimesLimit(1.8),
    ),
    row("32 connections, requests/s", "http-echo:32", "rps", "/s", Reach::Report),
    row(
        "1 connection, p50 until the body has ended",
        "http-echo:1",
        "p50_us",
        "µs",
        Reach::TimesLimit(1.3),
    ),
    row("256 connections, p99", "http-echo:256", "p99_us", "µs", Reach::TimesLimit(2.0)),
    row(
        "1,000 progress notifications in a call, CPU each",
        "http-progress:1000",
        "cpu_ms_per_1k_notif",
        "µs",
        Reach::TimesLimit(3.0),
    ),
    row(
        "1,000 calls in flight, all connections closed, until every handler is gone",
        "http-cancel:1000",
        "release_ms_p50",
        "ms",
        Reach::TimesLimit(1.5),
    ),
    row(
        "memory per call in flight",
        "http-cancel:1000",
        "kib_per_inflight",
        "KiB",
        Reach::AtMost(20.0),
    ),
    row(
        "memory per call that the process keeps when those are gone, for the next",
        "http-cancel:1000",
        "rss_kept_kib_per_call",
        "KiB",
        Reach::Report,
    ),
    row(
        "memory per idle listener",
        "http-listen:1000",
        "kib_per_listener",
        "KiB",
        Reach::AtMost(18.0),
    ),
    row(
        "1,000 listeners, one event, until all have it",
        "http-listen:1000",
        "deliver_all_ms",
        "ms",
        Reach::TimesLimit(1.5),
    ),
    row("1,000 tools listed, CPU", "http-list:8", "cpu_ms_per_1k", "µs", Reach::TimesLimit(2.0)),
    row("1,000 tools listed, size", "http-list:8", "bytes_per_answer", "B", Reach::Report),
    row(
        "client, 1 call at a time, CPU per call",
        "http-client-calls:1",
        "cpu_ms_per_1k",
        "µs",
        Reach::TimesLimit(1.5),
    ),
    row(
        "client, 64 concurrent calls, CPU per call",
        "http-client-calls:64",
        "cpu_ms_per_1k",
        "µs",
        Reach::TimesLimit(1.5),
    ),
    row(
        "client, 1,000 calls at once: how many run",
        "http-client-cancel:1000",
        "started",
        "",
        Reach::AtLeast(1000.0),
    ),
    row(
        "client, those 1,000 dropped: closes that the server saw",
        "http-client-cancel:1000",
        "by_close",
        "",
        Reach::AtLeast(1000.0),
    ),
    row(
        "client, those 1,000 dropped, until the server let go",
        "http-client-cancel:1000",
        "server_released_ms",
        "ms",
        Reach::TimesLimit(1.5),
    ),
    row(
        "client, 1,000 calls dropped before they were written: how many arrive",
        "http-client-unwritten:1000",
        "arrived",
        "",
        Reach::AtMost(0.0),
    ),
    row(
        "stripped binary of a server for stdio and HTTP",
        "http-sizes",
        "binary_mb",
        "MB",
        Reach::AtMost(3.0),
    ),
    row(
        "crates of a server for stdio and HTTP without `validate`",
        "http-sizes",
        "crates",
        "",
        Reach::AtMost(60.0),
    ),
];

/// Rows that valgrind counts.
pub(crate) const COUNTS: &[Row] = &[
    row("instructions per request", "http-echo", "instructions", "", Reach::AtMost(55_000.0)),
    row("allocations per request", "http-echo", "allocations", "", Reach::AtMost(45.0)),
    row("bytes allocated per request", "http-echo", "bytes", "B", Reach::Report),
    row("1 MiB argument echoed, instructions", "http-large", "instructions", "", Reach::Report),
    row("1 MiB argument echoed, allocations", "http-large", "allocations", "", Reach::Report),
    row("1 MiB argument echoed, bytes allocated", "http-large", "bytes", "B", Reach::AtMost(4.5e6)),
    row(
        "1,000 tools listed, instructions",
        "http-list",
        "instructions",
        "",
        Reach::AtMost(LIST_INSTRUCTIONS),
    ),
    row(
        "call closed in flight, bytes that stay allocated",
        "http-closed",
        "kept_bytes",
        "B",
        Reach::AtMost(16.0),
    ),
];
