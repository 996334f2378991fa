//! Prints the results as a table of Markdown.

use crate::{attack::Report, process::Figures};

/// Prints the head of the table.
pub(crate) fn head() {
    println!(
        "| attack | s | MiB before, peak, after | descriptors | threads | others: served, refused, \
         failed | slowest | longest gap | notes |\n|---|---|---|---|---|---|---|---|---|"
    );
}

/// Prints the row of an attack, and its problems to stderr.
pub(crate) fn row(report: &Report) {
    let Report { name, took, before, largest, after, others, notes, problems } = report;
    let mib = |figures: &Figures| figures.rss >> 10;
    let others = others.as_ref().map_or("| | ".to_owned(), |others| {
        format!(
            "{}, {}, {} | {} ms | {:.1} s",
            others.served,
            others.refused,
            others.failed,
            others.slowest.as_millis(),
            others.gap.as_secs_f32()
        )
    });
    println!(
        "| {name} | {:.1} | {}, {}, {} | {} | {} | {others} | {} |",
        took.as_secs_f32(),
        mib(before),
        largest.peak >> 10,
        mib(after),
        largest.descriptors,
        largest.threads,
        notes.join("; ")
    );
    for problem in problems {
        eprintln!("FAILED {name}: {problem}");
    }
}
