//! Many subscriptions over HTTP, and how long an event takes to reach all of them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bench_util::percentile;
use bench_util::process::{Noise, cpu_ms, resident_kib};
use memchr::memmem;
use tokio::task::JoinHandle;

use super::connection::Connection;
use super::{AT_ONCE, Client, Server};
use crate::message::{Era, post, request};
use crate::options::Options;
use crate::{Metrics, Outcome};

const EVENTS: usize = 6;

/// What the listeners saw.
#[derive(Default)]
struct Seen {
    acknowledged: usize,
    /// When each event arrived, since the last was sent.
    arrivals: Vec<Instant>,
    failure: Option<String>,
}

pub(crate) async fn run(count: usize, server: &Server, options: &Options) -> Outcome<Metrics> {
    if options.era == Era::Legacy {
        return Err("only the modern era can listen".into());
    }
    tokio::task::LocalSet::new().run_until(measure(count, server, options)).await
}

async fn measure(count: usize, server: &Server, options: &Options) -> Outcome<Metrics> {
    let mut control = Client::new(&server.endpoint, options.era).await?;
    control.counter("started").await?;
    let noise = Noise::start(server.pid);
    let idle = resident_kib(server.pid);
    let opening = Instant::now();
    let seen = Rc::new(RefCell::new(Seen::default()));
    let listeners = open(count, server, &seen).await?;
    let opened = opening.elapsed();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let listening = resident_kib(server.pid);
    let (mut all, mut half, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..EVENTS {
        seen.borrow_mut().arrivals.clear();
        let (started, cpu_before) = (Instant::now(), cpu_ms(server.pid));
        control.tool("emit", "").await?;
        wait_for(count, &seen, |seen| seen.arrivals.len()).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut times: Vec<u64> = seen
            .borrow()
            .arrivals
            .iter()
            .map(|arrival| arrival.saturating_duration_since(started).as_nanos() as u64)
            .collect();
        all.push(percentile(&mut times, 1.0) as u64);
        half.push(percentile(&mut times, 0.5) as u64);
        cpu.push(((cpu_ms(server.pid) - cpu_before) * 1e6) as u64);
    }
    let closing = Instant::now();
    for listener in listeners {
        listener.abort();
    }
    let mut left = control.counter("listeners").await?;
    while left > 0 && closing.elapsed() < AT_ONCE {
        left = control.counter("listeners").await?;
    }
    Ok(vec![
        ("deliver_all_ms", percentile(&mut all, 0.5) / 1e6),
        ("deliver_median_ms", percentile(&mut half, 0.5) / 1e6),
        ("cpu_ms_per_event_fanout", percentile(&mut cpu, 0.5) / 1e6),
        ("kib_per_listener", (listening - idle) / count as f64),
        ("open_all_ms", opened.as_secs_f64() * 1e3),
        ("close_all_ms", closing.elapsed().as_secs_f64() * 1e3),
        ("left_after_close", left as f64),
        ("other_pct", noise.percent()),
    ])
}

async fn open(
    count: usize,
    server: &Server,
    seen: &Rc<RefCell<Seen>>,
) -> Outcome<Vec<JoinHandle<()>>> {
    let mut listeners = Vec::with_capacity(count);
    for id in 5000..5000 + count as u64 {
        let mut connection = Connection::open(&server.endpoint).await?;
        let method = "subscriptions/listen";
        let params = r#""notifications":{"toolsListChanged":true}"#;
        let body = request(Era::Modern, id, method, params, "");
        let request = post(&server.endpoint, Era::Modern, None, method, None, &body);
        connection.send(&request).await?;
        listeners.push(tokio::task::spawn_local(listen(connection, seen.clone())));
    }
    wait_for(count, seen, |seen| seen.acknowledged).await?;
    Ok(listeners)
}

async fn listen(mut connection: Connection, seen: Rc<RefCell<Seen>>) {
    const EVENT: &[u8] = b"notifications/tools/list_changed";
    let (mut text, mut searched, mut is_acknowledged) = (Vec::with_capacity(1024), 0, false);
    let mut ended = connection.read_head().await;
    while ended.is_ok() {
        match connection.read_data(&mut text).await {
            Ok(true) => {}
            Ok(false) => ended = Err(std::io::ErrorKind::UnexpectedEof.into()),
            Err(error) => ended = Err(error),
        }
        let mut seen = seen.borrow_mut();
        if !is_acknowledged && memmem::find(&text, b"subscriptions/acknowledged").is_some() {
            is_acknowledged = true;
            seen.acknowledged += 1;
        }
        while let Some(at) = memmem::find(&text[searched..], EVENT) {
            searched += at + EVENT.len();
            seen.arrivals.push(Instant::now());
        }
    }
    let text = String::from_utf8_lossy(&text);
    seen.borrow_mut().failure = Some(format!("{ended:?} {} {text}", connection.head.status));
}

async fn wait_for(
    count: usize,
    seen: &Rc<RefCell<Seen>>,
    reached: fn(&Seen) -> usize,
) -> Outcome<()> {
    let waiting = Instant::now();
    while reached(&seen.borrow()) < count {
        if waiting.elapsed() > AT_ONCE {
            let seen = seen.borrow();
            let failure = seen.failure.as_deref().unwrap_or("no stream ended");
            return Err(format!("{} of {count} listeners: {failure}", reached(&seen)).into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
