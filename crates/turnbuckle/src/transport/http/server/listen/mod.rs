//! Accepts connections and serves HTTP on them.

pub(crate) mod accept;
pub(crate) mod activity;
pub(crate) mod address;
pub(crate) mod detect;
pub(crate) mod idle;
pub(crate) mod peers;
pub(crate) mod serve;
