//! The one line on a terminal that shows how far a call is.

use std::{
    io::{IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use turnbuckle::types::Progress;

use crate::output::{complain, one_line, printable};

/// How many cells the bar itself has.
const CELLS: usize = 24;
/// A call that is faster than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(400);
/// After this it is worth saying who does not answer.
const LONG: Duration = Duration::from_secs(3);
/// How often the seconds are brought up to date.
const TICK: Duration = Duration::from_millis(200);
/// Back to the start of the line, and everything after it erased.
const ERASE: &str = "\r\u{1b}[K";

/// The progress line on stderr; nothing at all where stderr is no terminal.
#[derive(Clone, Debug)]
pub(crate) struct Line(Place);

#[derive(Clone, Debug)]
enum Place {
    Terminal(Arc<Mutex<Drawn>>),
    /// A terminal on which nothing can be erased.
    Dumb,
    Elsewhere,
}

#[derive(Debug, Default)]
struct Drawn {
    /// What is on the terminal now; empty for nothing.
    text: String,
    last: Option<Progress>,
    /// Something else is on the terminal, and nothing is drawn over it.
    is_held: bool,
}

/// Keeps the line away for as long as it lives.
#[derive(Debug)]
pub(crate) struct Held(Line);

impl Held {
    /// Whether what the line gave way to is still the last thing on the terminal.
    pub(crate) fn is_last(&self) -> bool {
        self.0.lock().is_none_or(|drawn| drawn.is_held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(mut drawn) = self.0.lock() {
            drawn.is_held = false;
        }
    }
}

impl Line {
    pub(crate) fn on_stderr() -> Line {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Line(match (std::io::stderr().is_terminal(), is_dumb) {
            (true, false) => Place::Terminal(Arc::default()),
            (true, true) => Place::Dumb,
            (false, _) => Place::Elsewhere,
        })
    }

    pub(crate) fn is_shown(&self) -> bool {
        matches!(self.0, Place::Terminal(_))
    }

    /// Shows a report.
    pub(crate) fn report(&self, progress: Progress) {
        let Some(mut drawn) = self.lock() else { return };
        drawn.draw(render(&progress, width()));
        drawn.last = Some(progress);
    }

    /// Takes the line away until what is returned is dropped.
    pub(crate) fn hold(&self) -> Held {
        if let Some(mut drawn) = self.lock() {
            drawn.draw(String::new());
            drawn.is_held = true;
        }
        Held(self.clone())
    }

    /// Writes a line of text to stderr, above the progress.
    pub(crate) fn say(&self, line: &str) {
        match self.lock() {
            // Below what is there: it is not to be erased.
            Some(drawn) if drawn.is_held => complain(&format!("\n{}", printable(line))),
            Some(mut drawn) => {
                let below = std::mem::take(&mut drawn.text);
                complain(&format!("{ERASE}{}", printable(line)));
                if !below.is_empty() {
                    drawn.draw(below);
                }
            }
            None => complain(&printable(line)),
        }
    }

    /// Takes the line away. What it gave way to stays, and what follows begins below it.
    pub(crate) fn clear(&self) {
        if let Some(mut drawn) = self.lock() {
            if std::mem::take(&mut drawn.is_held) {
                complain("");
            }
            drawn.draw(String::new());
            drawn.last = None;
        }
    }

    /// Waits for `work`, and shows that it is waited for while it reports nothing.
    pub(crate) async fn watch<T>(&self, name: &str, work: impl Future<Output = T>) -> T {
        match self.0 {
            Place::Terminal(_) => self.draw_while([name; 2], work).await,
            Place::Dumb | Place::Elsewhere => work.await,
        }
    }

    /// [`watch`](Line::watch) that shows the second name when it gets long. A terminal on which
    /// nothing can be erased then has that as a line of its own.
    pub(crate) async fn watch_long<T>(&self, names: [&str; 2], work: impl Future<Output = T>) -> T {
        match self.0 {
            Place::Terminal(_) => self.draw_while(names, work).await,
            Place::Dumb => {
                let mut work = std::pin::pin!(work);
                match timeout(LONG, &mut work).await {
                    Ok(done) => done,
                    Err(_) => {
                        self.say(&one_line(&format!("{} … (Ctrl-C cancels)", names[1])));
                        work.await
                    }
                }
            }
            Place::Elsewhere => work.await,
        }
    }

    async fn draw_while<T>(&self, [first, long]: [&str; 2], work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let mut ticks = interval_at(began + PATIENCE, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    self.clear();
                    return done;
                }
                _ = ticks.tick() => {
                    let elapsed = began.elapsed();
                    self.wait(if elapsed < LONG { first } else { long }, elapsed);
                }
            }
        }
    }

    fn wait(&self, name: &str, elapsed: Duration) {
        if let Some(mut drawn) = self.lock()
            && drawn.last.is_none()
        {
            let text = format!("{name} … {} s (Ctrl-C cancels)", elapsed.as_secs());
            drawn.draw(fit(&one_line(&text), width()));
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Drawn>> {
        // What is drawn may be half right after a panic, and is drawn over.
        match &self.0 {
            Place::Terminal(drawn) => Some(drawn.lock().unwrap_or_else(PoisonError::into_inner)),
            Place::Dumb | Place::Elsewhere => None,
        }
    }
}

impl Drawn {
    fn draw(&mut self, text: String) {
        if !self.is_held && self.text != text {
            let mut stderr = std::io::stderr().lock();
            // A terminal that is gone needs no progress.
            let _ = write!(stderr, "{ERASE}{text}").and_then(|()| stderr.flush());
            self.text = text;
        }
    }
}

/// `[########----------------] 3/9 copying`, at most `width` columns wide.
pub(crate) fn render(progress: &Progress, width: usize) -> String {
    let done = progress.progress;
    let mut text = match progress.total {
        Some(total) if total > 0.0 => {
            let filled = (done / total * CELLS as f64).clamp(0.0, CELLS as f64) as usize;
            format!("[{}{}] {done}/{total}", "#".repeat(filled), "-".repeat(CELLS - filled))
        }
        _ => format!("[{}] {done}", "~".repeat(CELLS)),
    };
    if let Some(message) = &progress.message {
        text.push(' ');
        text.push_str(&one_line(message));
    }
    fit(&text, width)
}

/// The text, or its first columns and an ellipsis.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    let start = fit(text, width);
    if start.len() < text.len() { start + "…" } else { start }
}

/// Cuts text to `width` columns.
fn fit(text: &str, width: usize) -> String {
    // How wide a letter beyond ASCII is depends on the terminal; none is wider than two.
    let columns = |letter: char| if letter.is_ascii() { 1 } else { 2 };
    let mut used = 0;
    text.chars()
        .take_while(|letter| {
            used += columns(*letter);
            used <= width
        })
        .collect()
}

/// How many columns a line on this terminal may have so that it does not wrap.
pub(crate) fn width() -> usize {
    let columns = terminal_size::terminal_size_of(std::io::stderr());
    columns.map_or(80, |(columns, _)| usize::from(columns.0)).saturating_sub(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(done: f64, total: Option<f64>, message: Option<&str>) -> Progress {
        let mut progress = Progress::new(1, done);
        progress.total = total;
        progress.message = message.map(str::to_owned);
        progress
    }

    #[test]
    fn the_bar_fills_up() {
        let bar = |done, total| render(&progress(done, total, None), 80);
        assert_eq!(bar(0.0, Some(4.0)), format!("[{}] 0/4", "-".repeat(24)));
        assert_eq!(bar(1.0, Some(4.0)), format!("[{}{}] 1/4", "#".repeat(6), "-".repeat(18)));
        assert_eq!(bar(4.0, Some(4.0)), format!("[{}] 4/4", "#".repeat(24)));
        assert_eq!(bar(9.5, Some(4.0)), format!("[{}] 9.5/4", "#".repeat(24)));
        assert_eq!(bar(-1.0, Some(4.0)), format!("[{}] -1/4", "-".repeat(24)));
        assert_eq!(bar(7.0, None), format!("[{}] 7", "~".repeat(24)));
        assert_eq!(bar(7.0, Some(0.0)), format!("[{}] 7", "~".repeat(24)));
    }

    #[test]
    fn a_message_stays_on_the_line_and_within_it() {
        let long = progress(1.0, Some(2.0), Some("two\nlines \u{1b}[31mand a lot more text"));
        let line = render(&long, 60);
        assert!(line.contains("1/2 two lines \\u{1b}[31mand"), "{line}");
        assert_eq!(line.chars().count(), 60);
        assert_eq!(fit("日本語", 5), "日本");
    }
}
