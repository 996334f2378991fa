//! Asking the client, in both eras, from one handler.
//!
//! Owns: what can be asked and what counts as an answer, what a request that waits for answers
//! leaves with the client, and how it goes on. Does not own: wires, and what the client does.

mod by_hand;
mod canonical;
mod context;
mod course;
mod elicit;
mod error;
mod extract;
mod fields;
pub(crate) mod progress;
mod question;
mod roots;
mod round;
mod sample;
mod settings;
mod state;
mod store;

pub use by_hand::InputRequired;
pub use elicit::{
    Action, ElicitFields, ElicitPage, Elicitation, Elicited, elicit, elicit_form, elicit_url,
};
pub use error::AskError;
pub use extract::{Ask, Asked};
pub use fields::form_of;
pub use question::Question;
pub use roots::{Roots, roots};
pub use sample::{Sampling, sample};
pub use settings::Asking;
pub use store::{MemoryStates, StateStore};

#[cfg(feature = "client")]
pub(super) use course::{Course, run};
pub(super) use round::Round;
