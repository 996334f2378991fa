//! Prompts.

use std::sync::Arc;

use turnbuckle_types::{GetPromptResult, Icon, PromptArgument, Raw};

use super::{
    Completers, Member, Registration, completer::completed, members, name_problem,
    registration_methods,
};
use crate::server::{
    handler::{
        extract::Description,
        function::{BlockingFn, HandlerFn},
    },
    schema::Checks,
};

/// A prompt and its handler, for [`Server::prompt`](crate::Server::prompt).
#[derive(Clone)]
pub struct PromptDef {
    pub(crate) spec: turnbuckle_types::Prompt,
    pub(crate) registration: Registration<GetPromptResult>,
    pub(crate) completers: Completers,
    /// Constraints on the arguments that decoding does not check.
    pub(crate) checks: Option<Arc<Checks>>,
}

/// Creates a prompt from an `async fn` whose arguments are extractors. The arguments of the prompt
/// are its [`Args`](crate::Args), decoded from text into the types of the fields.
///
/// ```
/// use turnbuckle::{Args, Server, prompt};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// The code to review.
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
pub fn prompt<M: 'static, F>(name: impl Into<String>, handler: F) -> PromptDef
where
    F: HandlerFn<GetPromptResult, M>,
{
    PromptDef::new(name.into(), Registration::asynchronous(handler))
}

/// Creates a prompt from a sync function, which runs on a thread where it may block.
pub fn blocking_prompt<M: 'static, F>(name: impl Into<String>, handler: F) -> PromptDef
where
    F: BlockingFn<GetPromptResult, M>,
{
    PromptDef::new(name.into(), Registration::blocking(handler))
}

/// A value that [`Server::prompt`](crate::Server::prompt) takes: a [`PromptDef`], or a function with
/// `#[prompt]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt",
    label = "not a prompt",
    note = "put `#[prompt]` on the function, or wrap it: `prompt(\"name\", function)`"
)]
pub trait IntoPrompt {
    /// Returns the prompt.
    fn into_prompt(self) -> PromptDef;
}

impl IntoPrompt for PromptDef {
    fn into_prompt(self) -> PromptDef {
        self
    }
}

impl PromptDef {
    fn new(
        name: String,
        (mut registration, description): (Registration<GetPromptResult>, Description),
    ) -> PromptDef {
        registration.problems.extend(name_problem("prompt", &name));
        let (schema, checks) = match registration.sound(description.input) {
            Some(input) => (input.schema, Some(Arc::new(input.checks.of_texts()))),
            None => (Raw::empty_object(), None),
        };
        let members = members(&schema);
        let mut spec = turnbuckle_types::Prompt::new(name);
        if !members.is_empty() {
            spec.arguments = Some(members.iter().map(argument).collect());
        }
        PromptDef { spec, registration, completers: Completers::of(&members), checks }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> PromptDef {
        self.spec.description = Some(description.into());
        self
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> PromptDef {
        self.spec.title = Some(title.into());
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> PromptDef {
        self.spec.icons.get_or_insert_default().push(icon);
        self
    }

    /// Describes an argument by hand, for a handler that takes [`RawArgs`](crate::server::RawArgs).
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> PromptDef {
        self.completers.add_argument(&argument.name);
        let arguments = self.spec.arguments.get_or_insert_default();
        arguments.retain(|known| known.name != argument.name);
        arguments.push(argument);
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }
}

registration_methods!(PromptDef);
completed!(PromptDef);

fn argument((name, member, required): &(String, Member, bool)) -> PromptArgument {
    let mut argument = PromptArgument::new(name);
    argument.title.clone_from(&member.title);
    argument.description.clone_from(&member.description);
    argument.required = Some(*required);
    argument
}
