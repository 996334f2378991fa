//! Notifications of changes to clients: subscriptions, listen streams and the bus between servers.

pub(crate) mod bus;
pub(crate) mod changes;
pub(crate) mod listen;
pub(crate) mod listeners;
pub(crate) mod roots;
pub(crate) mod subscriptions;
