//! The completion of arguments.

use crate::{Meta, Named, ResultType, wire::modern};

model! {
    /// The params of `completion/complete`.
    ///
    /// ```
    /// use turnbuckle_types::{Complete, CompletionArgument, PromptReference};
    /// let typed = CompletionArgument::new("language", "py");
    /// let request = Complete::new(PromptReference::new("review"), typed);
    /// assert_eq!(request.argument.value, "py");
    /// ```
    pub struct Complete {
        required {
            /// What is being filled in.
            reference("ref"): CompletionReference,
            /// The argument that is being typed.
            argument("argument"): CompletionArgument,
        }
        optional {
            /// What is known already.
            #[since(V2025_06_18)]
            context("context"): Option<CompletionContext>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

tagged! {
    /// What is being filled in.
    ///
    /// ```
    /// use turnbuckle_types::{CompletionReference, ResourceTemplateReference};
    /// let notes = CompletionReference::from(ResourceTemplateReference::new("note://{id}"));
    /// assert!(matches!(notes, CompletionReference::Resource(_)));
    /// ```
    pub enum CompletionReference by "type" {
        /// A prompt.
        Prompt(PromptReference) = "ref/prompt",
        /// A resource template.
        Resource(ResourceTemplateReference) = "ref/resource",
    }
}

impl From<PromptReference> for CompletionReference {
    fn from(reference: PromptReference) -> CompletionReference {
        CompletionReference::Prompt(reference)
    }
}

impl From<ResourceTemplateReference> for CompletionReference {
    fn from(reference: ResourceTemplateReference) -> CompletionReference {
        CompletionReference::Resource(reference)
    }
}

model! {
    /// A prompt, by its name.
    pub struct PromptReference {
        tag("type") = "ref/prompt";
        required {
            /// Its name.
            name("name"): String,
        }
        optional {
            /// The name that people read.
            #[since(V2025_06_18)]
            title("title"): Option<String>,
        }
    }
}

model! {
    /// A resource template, by its URI or the template itself.
    pub struct ResourceTemplateReference {
        tag("type") = "ref/resource";
        required {
            /// The URI or template.
            uri("uri"): String,
        }
        optional {}
    }
}

model! {
    /// An argument that is being typed.
    pub struct CompletionArgument {
        required {
            /// Its name.
            name("name"): String,
            /// What has been typed.
            value("value"): String,
        }
        optional {}
    }
}

model! {
    /// What is known while an argument is being typed.
    pub struct CompletionContext {
        optional {
            /// Arguments that are complete.
            arguments("arguments"): Option<Named<String>>,
        }
    }
}

model! {
    /// The result of `completion/complete`.
    ///
    /// ```
    /// use turnbuckle_types::{CompleteResult, Completion};
    /// let result = CompleteResult::new(Completion::new(["python".into(), "perl".into()]));
    /// assert_eq!(result.completion.values.len(), 2);
    /// ```
    pub struct CompleteResult {
        required {
            /// The suggestions.
            completion("completion"): Completion,
        }
        optional {
            /// What kind of result this is.
            #[since(V2026_07_28)]
            #[require(modern::complete)]
            result_type("resultType"): Option<ResultType>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// Suggestions for an argument.
    pub struct Completion {
        required {
            /// At most 100 of them.
            values("values"): Vec<String>,
        }
        optional {
            /// How many there are in all.
            total("total"): Option<u64>,
            /// Whether there are more.
            has_more("hasMore"): Option<bool>,
        }
    }
}
