//! The contract of the dispatcher, as behaviour that anyone could observe.

mod a_dispatch;
mod b_abandon;
mod e_server;
mod raw;
mod rig;
