//! Kinds of items that a server must declare before a command asks for them.

use turnbuckle::{Client, Revision, types::ServerCapabilities};

use crate::exit::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Tools,
    Resources,
    Prompts,
    Completions,
}

/// Fails if the server says that it does not offer this. A server that was not asked may offer all.
pub(crate) fn require(client: &Client, offer: Offer) -> Result<(), Failure> {
    let declared = client.server_capabilities();
    match declared.is_none_or(|declared| is_declared(offer, &declared, client.revision())) {
        true => Ok(()),
        false => Err(Failure::failed(format!(
            "the server offers no {}; `turnbuckle info TARGET` shows what it offers",
            noun(offer)
        ))),
    }
}

fn is_declared(offer: Offer, declared: &ServerCapabilities, revision: Revision) -> bool {
    match offer {
        Offer::Tools => declared.tools.is_some(),
        Offer::Resources => declared.resources.is_some(),
        Offer::Prompts => declared.prompts.is_some(),
        // Older revisions have completions and no word for them.
        Offer::Completions => declared.completions.is_some() || revision < Revision::V2025_03_26,
    }
}

fn noun(offer: Offer) -> &'static str {
    match offer {
        Offer::Tools => "tools",
        Offer::Resources => "resources",
        Offer::Prompts => "prompts",
        Offer::Completions => "completions",
    }
}
