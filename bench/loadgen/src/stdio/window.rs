//! The closed loop with a fixed number of requests in flight.

use std::time::{Duration, Instant};

use bench_util::percentile;
use bench_util::process::{Noise, cpu_ms, resident_kib};

use super::pipe::{Pipe, id_of};
use crate::message::{Era, Load};
use crate::options::Options;
use crate::{Metrics, Outcome};

const FIRST_ID: u64 = 1000;
/// Memory is read after so many answers.
const MEMORY_EVERY: usize = 512;

pub(crate) async fn run(
    load: &Load,
    width: usize,
    pipe: &mut Pipe,
    options: &Options,
) -> Outcome<Metrics> {
    let idle = resident_kib(pipe.pid);
    let begin = Instant::now() + Duration::from_secs_f64(options.warm_up);
    let end = begin + Duration::from_secs_f64(options.seconds);
    let mut window = Window::new(load, pipe.era, begin, end);
    for _ in 0..width {
        window.send();
    }
    let (mut measured, mut resident) = (None, 0.0f64);
    loop {
        while let Some(line) = pipe.buffered() {
            window.take(pipe.text(line));
        }
        let now = Instant::now();
        if now >= begin && measured.is_none() {
            measured = Some((cpu_ms(pipe.pid), Noise::start(pipe.pid)));
        }
        if now >= end {
            break;
        }
        if window.latencies.len().is_multiple_of(MEMORY_EVERY) {
            resident = resident.max(resident_kib(pipe.pid));
        }
        let written = pipe.write_or_read(&window.pending[window.written..]).await?;
        window.wrote(written);
    }
    let (cpu, noise) = measured.ok_or("the server was silent for the whole time")?;
    let cpu = cpu_ms(pipe.pid) - cpu;
    let resident = resident.max(resident_kib(pipe.pid));
    let count = window.latencies.len() as f64;
    if count == 0.0 {
        return Err("there was no right answer".into());
    }
    Ok(vec![
        ("rps", count / options.seconds),
        ("p50_us", percentile(&mut window.latencies, 0.5) / 1e3),
        ("p99_us", percentile(&mut window.latencies, 0.99) / 1e3),
        ("cpu_ms_per_1k", cpu / count * 1e3),
        ("MB_s", window.bytes as f64 / options.seconds / 1e6),
        ("bytes_per_answer", window.bytes as f64 / count),
        ("rss_idle_mib", idle / 1024.0),
        ("rss_load_mib", resident / 1024.0),
        ("bad", f64::from(window.bad)),
        ("other_pct", noise.percent()),
    ])
}

struct Window<'a> {
    load: &'a Load,
    era: Era,
    begin: Instant,
    end: Instant,
    /// When each request was sent, by its id.
    sent: Vec<Instant>,
    /// In nanoseconds, of the right answers to requests of the measured time.
    latencies: Vec<u64>,
    bytes: usize,
    bad: u32,
    /// Requests that wait to be written, of which `written` bytes are.
    pending: Vec<u8>,
    written: usize,
}

impl<'a> Window<'a> {
    fn new(load: &'a Load, era: Era, begin: Instant, end: Instant) -> Self {
        Self {
            load,
            era,
            begin,
            end,
            sent: Vec::with_capacity(1 << 20),
            latencies: Vec::with_capacity(1 << 20),
            bytes: 0,
            bad: 0,
            pending: Vec::new(),
            written: 0,
        }
    }

    fn send(&mut self) {
        let id = FIRST_ID + self.sent.len() as u64;
        self.pending.extend_from_slice(self.load.request(self.era, id).as_bytes());
        self.pending.push(b'\n');
        self.sent.push(Instant::now());
    }

    fn wrote(&mut self, count: usize) {
        self.written += count;
        if self.written == self.pending.len() {
            self.pending.clear();
            self.written = 0;
        }
    }

    /// Accounts for a line from the server, and sends the next request for an answered one.
    fn take(&mut self, line: &[u8]) {
        let now = Instant::now();
        let Some(id) = id_of(line) else { return };
        let Some(index) = id.checked_sub(FIRST_ID) else { return };
        let Some(sent) = self.sent.get(index as usize).copied() else { return };
        if !self.load.is_answered(id, line) {
            if self.bad == 0 {
                let shown = &line[..line.len().min(300)];
                eprintln!("    a wrong answer: {}", String::from_utf8_lossy(shown));
            }
            self.bad += 1;
        } else if sent >= self.begin && now <= self.end {
            self.latencies.push((now - sent).as_nanos() as u64);
            self.bytes += line.len();
        }
        if now < self.end {
            self.send();
        }
    }
}
