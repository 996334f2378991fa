//! The published schemas and examples of the protocol, as an oracle for the model.
//!
//! They are not part of this repository. `TURNBUCKLE_SPEC` names the directory that
//! holds them; without it, `shared/spec` beside the checkout is tried. On CI, and where
//! the variable is set, a missing directory fails the test; elsewhere it is only said.

mod examples;
mod methods;
mod samples;
mod spec;
mod table;
mod walk;
