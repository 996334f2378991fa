//! The contract of the dispatcher, as behaviour that anyone could observe.

mod a_dispatch;
mod b_abandon;
mod calls;
mod child;
mod client_hears;
mod client_sends;
mod e_server;
mod laws;
mod memory;
mod negotiate;
mod raw;
mod rig;
mod server_eras;
mod server_hears;
mod server_leaves;
mod server_pressure;
mod server_stops;
