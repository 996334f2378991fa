//! The contract of the dispatcher, as behaviour that anyone could observe, on every wire and in
//! both eras.
//!
//! A test carries the number of the line that it stands for: `a03` is the third line of "The
//! dispatcher contract", `b13` of "Abandoning a request", `e32` of "Server side, every wire",
//! `law05` the fifth law of the architecture. What follows a module's name in a test's path is
//! the wire and the era.
//!
//! | module | who is real, who is a script | lines |
//! |---|---|---|
//! | `a_dispatch`, `b_abandon`, `e_server`, `laws` | client and fixture, over memory, stdio, a Unix socket, in process, HTTP, HTTP+SSE | A, B, E, laws |
//! | `memory`, `stress` | the same, in great numbers and on many threads | 34, 16, law 1 |
//! | `client_sends`, `client_hears`, `client_lists`, `negotiate`, `calls`, `questions` | a client; its server is a script | A, B, 35 |
//! | `server_hears`, `server_stops`, `server_leaves`, `server_eras`, `server_pressure` | a fixture; its client is a script | A, B, E, laws |
//! | `client_input` | a client; its server is a script that asks before it answers; then both, over every wire | |
//! | `clocks` | a client; its server is a script that asks: whose clocks stand still | |
//! | `sampled` | a client with a model; its server is a script of either era | |
//! | `call_events` | a client; its server is a script; then both, over every wire | |
//! | `client_calls` | both, over every wire; then a client, its server is a script | |
//! | `listening` | both, then a client; its server is a script | 22, 35 |
//! | `caching`, `caching_stores` | both, then a client; its server is a script: answers that are kept | |
//! | `listening`, `live_lists` | both, then a client; its server is a script | 22, 35 |
//! | `listening_legacy`, `listening_again`, `root_set` | a client; its server is a script, or a process that is killed; then both, over every wire | |
//! | `schemas` | both: what a person wrote | |
//! | `offers_tools`, `offers_resources`, `offers_prompts`, `offers_completion`, `offers_logging`, `offers_callers` | both: what a server can offer | |
//! | `words` | both, and what the legacy era must not hear | |
//! | `child`, `restarts` | a client; its server is a process | laws 6 and 9 |
//! | `joints` | a client; its server is a script: where calls, kept answers and connections meet | 13 |
//! | `reconnects`, `restored`, `unreachable` | a client that loses its server: a script, then a fixture or a script that speaks HTTP | |
//! | `c_client`, `c_client_ids`, `http_answers`, `http_sends`, `http_ways`, `http_negotiate` | a client; its server is a script that speaks HTTP/1.1 and records bytes | C, A over HTTP, 35 |
//! | `d_client`, `legacy_client`, `legacy_anew`, `legacy_hears`, `legacy_strain`, `sse_2024_client` | a client; its server is a script of the legacy era | D, 24 to 28 |
//! | `c_http2` | a client; its server is a script that speaks HTTP/2 | C |
//! | `c_server` | a fixture; its client is a socket that speaks HTTP/1.1 or HTTP/2 | C, 11, 12, 35 |
//! | `d_server` | a fixture; its client is a socket that has a session | D, 5, 11, 18, 35 |
//! | `hosted` | both, over HTTP in every way that it is served | |
//! | `meets` | both: what they know of each other, what passes as it is | |
//! | `matrix` | both: every pair of eras that a client and a server may speak | |
//! | `linked` | both, and a way between them that fails as it is told to | laws 1, 6, 7 |
//! | `catalogue`, `live` | both, and servers of their own: lists, what is hidden, what changes | |
//! | `many` | a group of clients; their servers are processes and addresses | |
//! | `faults` | both, and a server that is killed; a socket that opens sessions and forgets them | 34, law 6 |
//!
//! `rig`, `offered`, `raw`, `web`, `session` and `secure` are what the others stand on.
//!
//! Not here: resumption hints (2, 15), because streams are taken up again without any; a call
//! that became a task (36), because there are no tasks yet.

mod a_dispatch;
mod b_abandon;
mod broken_by_probe;
mod c_client;
mod c_client_ids;
mod c_http2;
mod c_server;
mod caching;
mod caching_stores;
mod call_events;
mod calls;
mod catalogue;
mod child;
mod client_calls;
mod client_hears;
mod client_input;
mod client_lists;
mod client_sends;
mod clocks;
mod d_client;
mod d_server;
mod e_server;
mod faults;
#[path = "../../../crates/turnbuckle/tests/common/heard.rs"]
mod heard;
mod hosted;
mod http_answers;
mod http_negotiate;
mod http_sends;
mod http_ways;
mod joints;
mod laws;
mod legacy_anew;
mod legacy_client;
mod legacy_hears;
mod legacy_strain;
mod linked;
mod listening;
mod listening_again;
mod listening_legacy;
mod live;
mod live_lists;
mod many;
mod matrix;
mod meets;
mod memory;
mod negotiate;
mod offered;
mod offers_callers;
mod offers_completion;
mod offers_logging;
mod offers_prompts;
mod offers_resources;
mod offers_tools;
mod questions;
mod raw;
mod reconnects;
mod restarts;
mod restored;
mod rig;
mod root_set;
mod sampled;
mod schemas;
mod secure;
mod server_eras;
mod server_hears;
mod server_leaves;
mod server_pressure;
mod server_stops;
mod session;
mod sse_2024_client;
mod stress;
mod unreachable;
mod web;
mod words;
