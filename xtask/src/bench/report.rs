//! The page `docs/benchmarks.md`, of which each task writes its own section.

use super::{
    OURS,
    results::Results,
    rows::{self, Reach, Row, Rows, Standing},
    wire::{WIRES, Wire},
};
use crate::{common::page, workspace};

const PAGE: &str = "docs/benchmarks.md";

/// Puts a section into the page on disk.
pub(crate) fn write_section(name: &str, section: &str) -> Result<(), String> {
    let marks = ["begin", "end"].map(|mark| format!("<!-- {name}: {mark} -->"));
    page::update(&workspace::root().join(PAGE), &marks, &format!("{}\n", section.trim()))?;
    println!("{section}\nwritten to {PAGE}");
    Ok(())
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
        parts.push(table(wire, &Rows::of(wire).times, results));
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
        parts.push(table(wire, &Rows::of(wire).counts, results));
    }
    format!("{}{}", parts.join("\n\n"), failures(results))
}

/// The output of `--gate`.
pub(crate) fn gated(results: &Results) -> String {
    rows::gated()
        .map(|row| {
            let ours = results.median(&row.scenario, OURS, &row.metric);
            let Row { name, scenario, .. } = row;
            format!("{name} ({scenario}): {} (reach {})", value(ours, &row.unit), reach(row))
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn table(wire: &Wire, rows: &[Row], results: &Results) -> String {
    let line = |row: &Row| {
        let standing = Standing::of(row, wire, results);
        let verdict = match standing.is_reached(row.reach) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let rmcp = [standing.tuned, standing.readme].map(|rmcp| against(row, rmcp, &standing));
        vec![
            row.name.clone(),
            reach(row),
            against(row, standing.ours, &standing),
            verdict.to_owned(),
            value(standing.limit, &row.unit),
            if rmcp[0] == rmcp[1] { rmcp[0].clone() } else { rmcp.join(" / ") },
        ]
    };
    let head = ["row", "reach", "reached", "", "limit", "rmcp tuned / README"];
    page::table(&head, rows.iter().map(line)).trim_end().to_owned()
}

/// The value of every candidate, in a column each.
fn details(wire: &Wire, results: &Results) -> String {
    let head: Vec<&str> = ["row"].into_iter().chain(wire.candidates.iter().copied()).collect();
    let line = |row: &Row| {
        let median = |candidate: &&str| results.median(&row.scenario, candidate, &row.metric);
        let cells = wire.candidates.iter().map(|candidate| value(median(candidate), &row.unit));
        [row.name.clone()].into_iter().chain(cells).collect()
    };
    page::table(&head, Rows::of(wire).times.iter().map(line)).trim_end().to_owned()
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
        Reach::AtMost(most) => format!("≤ {}", value(Some(most), &row.unit)),
        Reach::AtLeast(least) => format!("≥ {}", value(Some(least), &row.unit)),
        Reach::Report => String::new(),
    }
}

/// A value, with its ratio if the target is one.
fn against(row: &Row, measured: Option<f64>, standing: &Standing) -> String {
    let shown = value(measured, &row.unit);
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

/// Formats three significant digits, thousands with commas, without trailing zeros.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let mut number = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        if index > 0 && left.is_multiple_of(3) && digit.is_ascii_digit() {
            number.push(',');
        }
        number.push(digit);
    }
    match rest.trim_end_matches('0') {
        "" => number,
        rest => format!("{number}.{rest}"),
    }
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
    fn a_row_shows_ratio_verdict_and_both_rmcp() {
        let mut results = Results::default();
        for (candidate, value) in
            [("limit-pipe", 2.0), (OURS, 4.0), ("rmcp-arc-nd", 80.0), ("rmcp-readme", 100.0)]
        {
            results.add("stdio-echo:64", candidate, "cpu_ms_per_1k", value);
        }
        let table = table(&STDIO, &Rows::of(&STDIO).times[..1], &results);
        let cells: Vec<&str> = table.lines().last().unwrap().split('|').map(str::trim).collect();
        assert_eq!(cells[1..4], ["64 in flight, CPU per request", "≤ 2.5 × limit", "2 × (4 µs)"]);
        assert_eq!(cells[4..7], ["yes", "2 µs", "40 × (80 µs) / 50 × (100 µs)"]);
    }
}
