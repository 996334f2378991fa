//! Functions as handlers: what they take, what they return, how they run.

pub(crate) mod context;
pub(crate) mod extract;
pub(crate) mod function;
pub(crate) mod notifications;
pub(crate) mod reply;
pub(crate) mod resources;
pub(crate) mod run;
