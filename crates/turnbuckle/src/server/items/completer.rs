//! Completion of the arguments of prompts and templates.

use std::sync::Arc;

use turnbuckle_types::Completion;

use super::{Member, Registration};
use crate::server::handler::function::HandlerFn;

/// The completers of one prompt or template, by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers {
    /// The names of all arguments.
    arguments: Vec<String>,
    completers: Vec<(String, Completer)>,
}

/// Completes one argument.
#[derive(Clone)]
pub(crate) enum Completer {
    /// From a list of values.
    Values(Arc<[String]>),
    /// By a handler.
    Handler(Arc<Registration<Completion>>),
}

impl Completers {
    /// Returns the completers that follow from the types of the arguments.
    pub(super) fn of(members: &[(String, Member, bool)]) -> Completers {
        let mut completers = Completers::default();
        for (name, member, _) in members {
            completers.arguments.push(name.clone());
            if let Some(choices) = member.choices() {
                completers.insert(name, Completer::Values(choices.into()));
            }
        }
        completers
    }

    /// Adds the name of an argument.
    pub(super) fn add_argument(&mut self, argument: &str) {
        if !self.knows(argument) {
            self.arguments.push(argument.to_owned());
        }
    }

    pub(super) fn add<M: 'static, F: HandlerFn<Completion, M>>(&mut self, name: &str, function: F) {
        let (registration, _) = Registration::asynchronous(function);
        self.insert(name, Completer::Handler(Arc::new(registration)));
    }

    pub(super) fn add_values(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = impl Into<String>>,
    ) {
        let values: Vec<String> = values.into_iter().map(Into::into).collect();
        self.insert(name, Completer::Values(values.into()));
    }

    fn insert(&mut self, name: &str, completer: Completer) {
        self.completers.retain(|(known, _)| known != name);
        self.completers.push((name.to_owned(), completer));
    }

    /// Returns one sentence for each completer of an argument that does not exist.
    pub(crate) fn problems(&self) -> impl Iterator<Item = String> {
        let strange = self.completers.iter().filter(|(name, _)| !self.knows(name));
        strange.map(|(name, _)| format!("there is no argument `{name}` to complete"))
    }

    /// Returns whether there is such an argument.
    pub(crate) fn knows(&self, argument: &str) -> bool {
        self.arguments.iter().any(|known| known == argument)
    }

    pub(crate) fn find(&self, argument: &str) -> Option<&Completer> {
        self.completers.iter().find(|(name, _)| name == argument).map(|(_, completer)| completer)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.completers.is_empty()
    }

    /// Returns the registrations of all handlers.
    pub(crate) fn handlers(&self) -> impl Iterator<Item = &Registration<Completion>> {
        self.completers.iter().filter_map(|(_, completer)| match completer {
            Completer::Handler(registration) => Some(&**registration),
            Completer::Values(_) => None,
        })
    }
}

/// Implements the setters of completers.
macro_rules! completed {
    ($kind:ident) => {
        impl $kind {
            /// Completes an argument with a handler: an `async fn` that takes the
            /// [`Typed`](crate::server::Typed) text, and extractors as any handler does.
            #[must_use]
            pub fn complete<M: 'static, F>(mut self, argument: &str, completer: F) -> $kind
            where
                F: crate::server::HandlerFn<turnbuckle_types::Completion, M>,
            {
                self.completers.add(argument, completer);
                self
            }

            /// Completes an argument from a list of values. An enum in [`Args`](crate::Args)
            /// needs no list: it is one.
            #[must_use]
            pub fn complete_values(
                mut self,
                argument: &str,
                values: impl IntoIterator<Item = impl Into<String>>,
            ) -> $kind {
                self.completers.add_values(argument, values);
                self
            }
        }
    };
}

pub(super) use completed;
