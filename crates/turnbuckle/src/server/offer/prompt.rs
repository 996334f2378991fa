//! Owns what a prompt is. Does not own how a request reaches one.

use std::sync::Arc;

use turnbuckle_types::{GetPromptResult, Icon, PromptArgument, Raw};

use super::{Completers, Member, Offer, completer::completed, members, name_problem, offered};
use crate::server::{
    extract::Description,
    handler::{BlockingFn, HandlerFn},
    schema::Checks,
};

/// A prompt, to be given to [`Server::prompt`](crate::Server::prompt).
#[derive(Clone)]
pub struct Prompt {
    pub(crate) spec: turnbuckle_types::Prompt,
    pub(crate) offer: Offer<GetPromptResult>,
    pub(crate) completers: Completers,
    /// What its arguments are checked for beside decoding them.
    pub(crate) checks: Option<Arc<Checks>>,
}

/// Makes a prompt from an `async fn` whose arguments are extractors. What the prompt is filled
/// with is its [`Args`](crate::Args): text, read as the types of the fields want it.
///
/// ```
/// use turnbuckle::{Args, Server, prompt};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// What is to be reviewed.
///     code: String,
///     /// How many remarks at most.
///     remarks: Option<u32>,
/// }
/// async fn review(Args(review): Args<Review>) -> String {
///     format!("Review this, in {} remarks:\n{}", review.remarks.unwrap_or(5), review.code)
/// }
/// let server = Server::new("demo", "1.0")
///     .prompt(prompt("review", review).description("Asks for a code review."));
/// # let _ = server;
/// ```
pub fn prompt<M: 'static, F>(name: impl Into<String>, handler: F) -> Prompt
where
    F: HandlerFn<GetPromptResult, M>,
{
    Prompt::new(name.into(), Offer::asynchronous(handler))
}

/// Makes a prompt from a sync function, which runs on a thread where it may block.
pub fn blocking_prompt<M: 'static, F>(name: impl Into<String>, handler: F) -> Prompt
where
    F: BlockingFn<GetPromptResult, M>,
{
    Prompt::new(name.into(), Offer::blocking(handler))
}

/// What [`Server::prompt`](crate::Server::prompt) takes: a [`Prompt`], or a function that carries
/// `#[prompt]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt",
    label = "not a prompt",
    note = "put `#[prompt]` on the function, or wrap it: `prompt(\"name\", function)`"
)]
pub trait IntoPrompt {
    /// Makes the prompt.
    fn into_prompt(self) -> Prompt;
}

impl IntoPrompt for Prompt {
    fn into_prompt(self) -> Prompt {
        self
    }
}

impl Prompt {
    fn new(
        name: String,
        (mut offer, description): (Offer<GetPromptResult>, Description),
    ) -> Prompt {
        offer.problems.extend(name_problem("prompt", &name));
        let (schema, checks) = match offer.sound(description.input) {
            Some(input) => (input.schema, Some(Arc::new(input.checks.of_texts()))),
            None => (Raw::empty_object(), None),
        };
        let members = members(&schema);
        let mut spec = turnbuckle_types::Prompt::new(name);
        if !members.is_empty() {
            spec.arguments = Some(members.iter().map(argument).collect());
        }
        Prompt { spec, offer, completers: Completers::of(&members), checks }
    }

    /// What the prompt is for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Prompt {
        self.spec.description = Some(description.into());
        self
    }

    /// The name that people read.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Prompt {
        self.spec.title = Some(title.into());
        self
    }

    /// Adds a picture of it.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Prompt {
        self.spec.icons.get_or_insert_default().push(icon);
        self
    }

    /// Describes an argument by hand, for a handler that takes [`RawArgs`](crate::RawArgs).
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> Prompt {
        self.completers.know(&argument.name);
        let arguments = self.spec.arguments.get_or_insert_default();
        arguments.retain(|known| known.name != argument.name);
        arguments.push(argument);
        self
    }

    /// The prompt's name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }
}

offered!(Prompt);
completed!(Prompt);

fn argument((name, member, required): &(String, Member, bool)) -> PromptArgument {
    let mut argument = PromptArgument::new(name);
    argument.title.clone_from(&member.title);
    argument.description.clone_from(&member.description);
    argument.required = Some(*required);
    argument
}
