//! Malicious clients.

mod connections;
mod floods;
mod framing;
mod memory;
mod sessions;
mod slow;
mod stdio;

use std::sync::Arc;

use crate::{
    attack::{Attack, BOUNDS, BUDGET, Bounds, Extent, Kind, Others, Running, Trial},
    process::Socket,
};

type Function = fn(Arc<Trial>) -> Running;

fn attack(name: &'static str, kind: Kind) -> Attack {
    Attack { name, extent: Extent::Quick, kind }
}

fn tcp(name: &'static str, bounds: Bounds, run: Function) -> Attack {
    attack(name, Kind::Http { socket: Socket::Tcp, bounds, run: Box::new(run) })
}

fn unix(name: &'static str, bounds: Bounds, run: Function) -> Attack {
    attack(name, Kind::Http { socket: Socket::Unix, bounds, run: Box::new(run) })
}

fn stdio(name: &'static str, bounds: Bounds, run: Function) -> Attack {
    attack(name, Kind::Process { bounds, run: Box::new(run) })
}

/// An attack that only a full run makes.
fn slow(attack: Attack) -> Attack {
    Attack { extent: Extent::Full, ..attack }
}

const FULL: Bounds = Bounds { others: Others::MayBeRefused, ..BUDGET };

/// All attacks of clients.
pub(crate) fn attacks() -> Vec<Attack> {
    // Each connection takes 17 to 25 KiB, which the allocator keeps.
    let waiting =
        Bounds { peak: 320, after: 320, descriptors: 10_100, others: Others::MayWait, ..BOUNDS };
    vec![
        tcp("calls-in-flight", FULL, |it| Box::pin(memory::calls_in_flight(it))),
        slow(unix("calls-in-flight-unix", FULL, |it| Box::pin(memory::calls_in_flight(it)))),
        tcp("calls-in-flight-legacy", FULL, |it| Box::pin(memory::legacy_calls_in_flight(it))),
        tcp("calls-in-flight-http2", BUDGET, |it| Box::pin(memory::http2_calls_in_flight(it))),
        stdio("calls-in-flight-stdio", FULL, |it| Box::pin(stdio::calls_in_flight(it))),
        stdio("calls-in-flight-stdio-legacy", FULL, |it| {
            Box::pin(stdio::legacy_calls_in_flight(it))
        }),
        tcp("unread-answers", FULL, |it| Box::pin(memory::unread_answers(it))),
        slow(unix("unread-answers-unix", FULL, |it| Box::pin(memory::unread_answers(it)))),
        tcp("unread-answers-legacy", FULL, |it| Box::pin(memory::legacy_unread_answers(it))),
        tcp("window-of-zero", BUDGET, |it| Box::pin(memory::window_of_zero(it))),
        tcp("unfinished-bodies", FULL, |it| Box::pin(memory::unfinished_bodies(it))),
        tcp("long-ids", BOUNDS, |it| Box::pin(memory::long_ids(it))),
        tcp("pings-of-one-address", BOUNDS, |it| Box::pin(connections::one_address(it))),
        slow(tcp("pings-of-ten-addresses", waiting, |it| Box::pin(connections::ten_addresses(it)))),
        tcp("abandoned-calls", BOUNDS, |it| Box::pin(sessions::abandoned_calls(it))),
        tcp("ended-session", BOUNDS, |it| Box::pin(sessions::ended_session(it))),
        tcp("rapid-reset", BOUNDS, |it| Box::pin(floods::rapid_reset(it))),
        tcp("endless-header-block", BOUNDS, |it| Box::pin(floods::continuation(it))),
        tcp("unread-replies", BOUNDS, |it| Box::pin(floods::replies(it))),
        tcp("empty-frames", BOUNDS, |it| Box::pin(floods::nothing(it))),
        tcp("header-table", BOUNDS, |it| Box::pin(floods::header_table(it))),
        tcp("open-streams", BOUNDS, |it| Box::pin(floods::open_streams(it))),
        tcp("noise", BOUNDS, |it| Box::pin(floods::noise(it))),
        tcp("http2-conformance", BOUNDS, |it| Box::pin(crate::conformance::run(it))),
        tcp("smuggling", BOUNDS, |it| Box::pin(framing::smuggling(it))),
        tcp("pipelining", BOUNDS, |it| Box::pin(framing::pipelining(it))),
        tcp("json", BOUNDS, |it| Box::pin(framing::json(it))),
        tcp("slow-heads", BOUNDS, |it| Box::pin(slow::heads(it))),
        tcp("slow-long-heads", BOUNDS, |it| Box::pin(slow::long_heads(it))),
        tcp("slow-bodies", BOUNDS, |it| Box::pin(slow::bodies(it))),
        tcp("unread-events", BUDGET, |it| Box::pin(slow::unread_events(it))),
        tcp("listeners", BOUNDS, |it| Box::pin(slow::listeners(it))),
        tcp("departures", BOUNDS, |it| Box::pin(slow::departures(it))),
        unix("departures-unix", BOUNDS, |it| Box::pin(slow::departures(it))),
    ]
}
