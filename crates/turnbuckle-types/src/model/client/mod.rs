//! Requests that a server sends to a client: elicitation, sampling and roots.

pub(crate) mod elicitation;
pub(crate) mod input;
pub(crate) mod roots;
pub(crate) mod sampling;
