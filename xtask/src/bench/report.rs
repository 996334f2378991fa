//! The page `docs/benchmarks.md`, of which each task writes its own section.

use super::{
    OURS,
    results::Results,
    rows::{self, Reach, Row, Standing},
    wire::{WIRES, Wire},
};
use crate::workspace;

const PAGE: &str = "docs/benchmarks.md";

/// The page before anything was measured.
const EMPTY_PAGE: &str = "\
# Benchmarks

The load generator, the bare limits, rmcp 3.8 and the contract that all of them fulfil are in
[`bench/`](../bench/README.md). Processor time and counts are compared inside one run, as ratios
to what the machine allows without an SDK; absolute times are those of the machine that ran them.

- *limit*: over stdio one task over the pipes (`limit-pipe`), over HTTP bare hyper
  (`limit-hyper`), both with borrowed types; for a client a map of waiters, and a pooled hyper
  client.
- *rmcp tuned*: rmcp 3.8 with its router built once; over HTTP with `TCP_NODELAY` and JSON
  answers too (`rmcp-json-nd`; events where progress is measured), its client with a pool and
  1,024 requests at a time. *README*: set up as its README shows.

## Times and sizes

<!-- times: begin -->
<!-- times: end -->

## Instructions and allocations

<!-- counts: begin -->
<!-- counts: end -->

## Build cost

<!-- builds: begin -->
<!-- builds: end -->
";

/// Puts a section into the page on disk.
pub(crate) fn write_section(name: &str, section: &str) -> Result<(), String> {
    let path = workspace::root().join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|_| EMPTY_PAGE.to_owned());
    let page = replace_section(&page, name, section)?;
    std::fs::write(&path, page).map_err(|error| format!("{PAGE} cannot be written: {error}"))?;
    println!("{section}\nwritten to {PAGE}");
    Ok(())
}

fn replace_section(page: &str, name: &str, section: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
    let lost = || format!("{PAGE} has lost its marks for {name}");
    let (before, rest) = page.split_once(&begin).ok_or_else(lost)?;
    let (_, after) = rest.split_once(&end).ok_or_else(lost)?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", section.trim()))
}

/// The section of `cargo xtask bench`.
pub(crate) fn times(results: &Results, rounds: usize) -> String {
    let turns = if rounds == 1 { "one round".to_owned() } else { format!("{rounds} rounds") };
    let about = format!(
        "`cargo xtask bench`, {turns}, medians; {} processors, the server on one and the load \
         generator on the other; modern era; HTTP/1.1 over loopback without TLS.",
        processors()
    );
    let mut parts = vec![about];
    for wire in WIRES {
        parts.push(format!("### Over {}", wire.name));
        parts.push(table(wire, wire.times, results));
        parts.push("The same in numbers:".to_owned());
        parts.push(details(wire, results));
    }
    format!("{}{}", parts.join("\n\n"), failures(results))
}

/// The section of `cargo xtask bench --count`.
pub(crate) fn counts(results: &Results) -> String {
    let about = "`cargo xtask bench --count`: callgrind and memcheck, the difference of two run \
                 lengths, two worker threads. Over stdio 64 requests at a time, over HTTP one on \
                 each of 32 connections; 1 MiB one at a time, lists 8. A row in × is a ratio \
                 to the row before it, of the same candidate. Clients speak to the bare \
                 limit, which is not counted, and have everything on that is on by default.";
    let mut parts = vec![about.to_owned()];
    for wire in WIRES {
        parts.push(format!("### Over {}", wire.name));
        parts.push(table(wire, wire.counts, results));
    }
    format!("{}{}", parts.join("\n\n"), failures(results))
}

/// What `--gate` shows.
pub(crate) fn gated(results: &Results) -> String {
    rows::gated()
        .map(|row| {
            let ours = results.median(row.scenario, OURS, row.metric);
            let (name, scenario) = (row.name, row.scenario);
            format!("{name} ({scenario}): {} (reach {})", value(ours, row.unit), reach(row))
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn table(wire: &Wire, rows: &[Row], results: &Results) -> String {
    let mut lines = vec![
        "| row | reach | reached | | limit | rmcp tuned / README |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for row in rows {
        let standing = Standing::of(row, wire, results);
        let verdict = match standing.is_reached(row.reach) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let rmcp = [standing.tuned, standing.readme].map(|rmcp| against(row, rmcp, &standing));
        lines.push(format!(
            "| {} | {} | {} | {verdict} | {} | {} |",
            row.name,
            reach(row),
            against(row, standing.ours, &standing),
            value(standing.limit, row.unit),
            if rmcp[0] == rmcp[1] { rmcp[0].clone() } else { rmcp.join(" / ") },
        ));
    }
    lines.join("\n")
}

/// Every candidate's own number, in a column each.
fn details(wire: &Wire, results: &Results) -> String {
    let mut lines = vec![
        format!("| row | {} |", wire.candidates.join(" | ")),
        format!("|---|{}", "---:|".repeat(wire.candidates.len())),
    ];
    for row in wire.times {
        let cells: Vec<String> = wire
            .candidates
            .iter()
            .map(|candidate| value(results.median(row.scenario, candidate, row.metric), row.unit))
            .collect();
        lines.push(format!("| {} | {} |", row.name, cells.join(" | ")));
    }
    lines.join("\n")
}

fn failures(results: &Results) -> String {
    if results.failures.is_empty() {
        return String::new();
    }
    format!("\n\nFailed:\n\n- {}", results.failures.join("\n- "))
}

fn reach(row: &Row) -> String {
    match row.reach {
        Reach::TimesLimit(times) => format!("≤ {} × limit", number(times)),
        Reach::TimesRmcp(times) => format!("≥ {} × rmcp", number(times)),
        Reach::AtMost(most) => format!("≤ {}", value(Some(most), row.unit)),
        Reach::AtLeast(least) => format!("≥ {}", value(Some(least), row.unit)),
        Reach::Report => String::new(),
    }
}

/// A value in the terms of its row: as a ratio where the row asks for one.
fn against(row: &Row, measured: Option<f64>, standing: &Standing) -> String {
    let shown = value(measured, row.unit);
    let reference = match row.reach {
        Reach::TimesLimit(_) => standing.limit,
        Reach::TimesRmcp(_) if measured == standing.ours => standing.best_rmcp(),
        _ => None,
    };
    match (measured, reference) {
        (Some(measured), Some(reference)) if reference > 0.0 => {
            format!("{} × ({shown})", number(measured / reference))
        }
        _ => shown,
    }
}

pub(crate) fn value(measured: Option<f64>, unit: &str) -> String {
    match measured {
        None => "–".to_owned(),
        Some(measured) if unit == "B" && measured >= 1e6 => {
            format!("{} MB", number(measured / 1e6))
        }
        Some(measured) if unit.is_empty() => number(measured),
        Some(measured) => format!("{} {unit}", number(measured)),
    }
}

/// Three digits that count, thousands with commas, no empty decimals.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    let (whole, rest) = text.split_once('.').map_or((text, None), |(a, b)| (a, Some(b)));
    let grouped = group(whole);
    rest.map_or(grouped.clone(), |rest| format!("{grouped}.{rest}"))
}

fn group(digits: &str) -> String {
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len() - index;
        if index > 0 && left.is_multiple_of(3) && digit.is_ascii_digit() {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::{super::wire::STDIO, *};

    #[test]
    fn numbers_read_easily() {
        let shown = [0.2, 2.5, 3.0, 45.0, 99.94, 183_211.0, 1_000_000.0, 0.0].map(number);
        assert_eq!(shown, ["0.2", "2.5", "3", "45", "99.9", "183,211", "1,000,000", "0"]);
        assert_eq!(value(Some(4.5e6), "B"), "4.5 MB");
        assert_eq!(value(Some(899.0), "B"), "899 B");
        assert_eq!(value(None, "µs"), "–");
    }

    #[test]
    fn a_section_is_replaced_and_the_rest_stays() {
        let once = replace_section(EMPTY_PAGE, "times", "first").unwrap();
        let twice = replace_section(&once, "times", "second").unwrap();
        assert!(twice.contains("second") && !twice.contains("first"));
        assert_eq!(replace_section(&once, "times", "first").unwrap(), once);
        assert!(twice.contains("## Instructions and allocations"));
        assert!(replace_section("no marks", "times", "text").is_err());
    }

    #[test]
    fn a_row_shows_ratio_verdict_and_both_rmcp() {
        let mut results = Results::default();
        for (candidate, value) in
            [("limit-pipe", 2.0), (OURS, 4.0), ("rmcp-arc-nd", 80.0), ("rmcp-readme", 100.0)]
        {
            results.add("stdio-echo:64", candidate, "cpu_ms_per_1k", value);
        }
        let table = table(&STDIO, &STDIO.times[..1], &results);
        let line = table.lines().last().unwrap();
        assert_eq!(
            line,
            "| 64 in flight, CPU per request | ≤ 2.5 × limit | 2 × (4 µs) | yes | 2 µs \
             | 40 × (80 µs) / 50 × (100 µs) |"
        );
    }
}
