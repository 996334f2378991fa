//! Asking the client, in both eras, from one handler.
//!
//! Owns: what can be asked and what counts as an answer, what a request that waits for answers
//! leaves with the client, and how it goes on. Does not own: wires, and what the client does.

mod canonical;
mod context;
mod error;
mod extract;
mod input_required;
pub(crate) mod progress;
pub(crate) mod question;
mod round;
mod run;
mod settings;
mod state;
mod store;

pub use crate::server::elicit::{
    input_required::InputRequired,
    question::{
        fields::form_of,
        form::{
            Action, ElicitFields, ElicitPage, Elicitation, Elicited, elicit, elicit_form,
            elicit_url,
        },
        roots::{Roots, roots},
        sampling::{Sampling, sample},
    },
};
pub use error::AskError;
pub use extract::{Answered, Askable};
pub use question::Question;
pub use settings::Asking;
pub use store::{MemoryStates, StateStore};

pub(super) use round::ElicitRound;
pub(super) use run::{ElicitingRun, run};
