//! Processor time, memory and processor affinity, as Linux tells them.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

/// Processor time of a whole process, in milliseconds with the clock's own resolution. NaN when
/// there is no such process.
pub fn cpu_ms(pid: u32) -> f64 {
    clock_getcpuclockid(Pid::from_raw(pid as i32))
        .and_then(ClockId::now)
        .map_or(f64::NAN, |time| time.tv_sec() as f64 * 1e3 + time.tv_nsec() as f64 / 1e6)
}

/// Resident memory of a process, in KiB. NaN when there is no such process.
pub fn resident_kib(pid: u32) -> f64 {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
            line.split_whitespace().nth(1)?.parse().ok()
        })
        .unwrap_or(f64::NAN)
}

/// Keeps this thread, and what it starts from now on, on one processor. A machine that does not
/// have it measures without.
pub fn pin_to(cpu: usize) {
    let mut set = CpuSet::new();
    if set.set(cpu).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Busy time of all processors together, in milliseconds (10 ms steps), and how many there are.
fn machine() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let mut lines = text.lines();
    let ticks: Vec<f64> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal, in hundredths of a second
    let busy: f64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|field| ticks.get(*field)).sum();
    let processors = lines.take_while(|line| line.starts_with("cpu")).count();
    (busy * 10.0, processors as f64)
}

/// A server and the processes that it has started, of which a bridge has one.
#[derive(Clone, Debug)]
pub struct Family(Vec<u32>);

impl Family {
    /// As it is now.
    pub fn of(server: u32) -> Self {
        let mut members = vec![server];
        let tasks = std::fs::read_dir(format!("/proc/{server}/task")).into_iter().flatten();
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            members.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        Self(members)
    }

    /// Processor time of all of them, in milliseconds.
    pub fn cpu_ms(&self) -> f64 {
        self.0.iter().copied().map(cpu_ms).sum()
    }
}

/// Watches how much of the machine is used by anybody but the server, what it has started, and
/// this process.
#[derive(Debug)]
pub struct Noise {
    busy: f64,
    ours: f64,
    server: Family,
    started: std::time::Instant,
}

impl Noise {
    pub fn start(server: u32) -> Self {
        let server = Family::of(server);
        let ours = cpu_ms(std::process::id()) + server.cpu_ms();
        Self { busy: machine().0, ours, server, started: std::time::Instant::now() }
    }

    /// The others' share in percent. Small negative values are rounding.
    pub fn percent(&self) -> f64 {
        let (busy, processors) = machine();
        let wall = self.started.elapsed().as_secs_f64() * 1e3 * processors;
        let ours = cpu_ms(std::process::id()) + self.server.cpu_ms() - self.ours;
        (busy - self.busy - ours) / wall * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_time_and_memory() {
        let own = std::process::id();
        let before = cpu_ms(own);
        assert!((0..200_000u64).map(std::hint::black_box).sum::<u64>() > 0);
        assert!(cpu_ms(own) > before);
        assert!(resident_kib(own) > 100.0);
    }

    #[test]
    fn what_a_server_has_started_belongs_to_it() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(Family::of(std::process::id()).0.contains(&child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!Family::of(std::process::id()).0.contains(&child.id()));
    }

    #[test]
    fn a_process_that_is_gone_has_neither() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(cpu_ms(pid).is_nan());
        assert!(resident_kib(pid).is_nan());
    }
}
