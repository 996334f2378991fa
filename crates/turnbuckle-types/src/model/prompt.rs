//! Prompts: their description, listing and rendering.

use crate::{CacheScope, ContentBlock, Icon, Meta, Named, Raw, ResultType, Role, wire::modern};

model! {
    /// A prompt, as a server describes it.
    ///
    /// ```
    /// use turnbuckle_types::{Prompt, PromptArgument};
    /// let mut review = Prompt::new("review");
    /// review.arguments = Some(vec![PromptArgument::new("code")]);
    /// ```
    pub struct Prompt {
        required {
            /// The name it is asked for by.
            name("name"): String,
        }
        optional {
            /// The name that people read.
            #[since(V2025_06_18)]
            title("title"): Option<String>,
            /// What it is for.
            description("description"): Option<String>,
            /// What it is filled with.
            arguments("arguments"): Option<Vec<PromptArgument>>,
            /// Pictures of it.
            #[since(V2025_11_25)]
            icons("icons"): Option<Vec<Icon>>,
            /// Metadata.
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// What a prompt is filled with.
    pub struct PromptArgument {
        required {
            /// The name that programs use.
            name("name"): String,
        }
        optional {
            /// The name that people read.
            #[since(V2025_06_18)]
            title("title"): Option<String>,
            /// What it is.
            description("description"): Option<String>,
            /// Whether the prompt needs it.
            required("required"): Option<bool>,
        }
    }
}

model! {
    /// A message of a prompt.
    pub struct PromptMessage {
        required {
            /// Who says it.
            role("role"): Role,
            /// What is said.
            content("content"): ContentBlock,
        }
        optional {}
    }
}

impl PromptMessage {
    /// Something that the user says.
    pub fn user(text: impl Into<String>) -> PromptMessage {
        PromptMessage::new(Role::User, ContentBlock::text(text))
    }

    /// Something that the assistant says.
    pub fn assistant(text: impl Into<String>) -> PromptMessage {
        PromptMessage::new(Role::Assistant, ContentBlock::text(text))
    }
}

model! {
    /// The params of `prompts/list`.
    pub struct ListPrompts {
        optional {
            /// Where the page before ended.
            cursor("cursor"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `prompts/list`.
    pub struct ListPromptsResult {
        required {
            /// One page of prompts.
            prompts("prompts"): Vec<Prompt>,
        }
        optional {
            /// Where this page ended, if there is more.
            next_cursor("nextCursor"): Option<String>,
            /// For how many milliseconds it may be cached.
            #[since(V2026_07_28)]
            #[require(modern::stale)]
            ttl_ms("ttlMs"): Option<u64>,
            /// Who may share it.
            #[since(V2026_07_28)]
            #[require(modern::private)]
            cache_scope("cacheScope"): Option<CacheScope>,
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
    /// The params of `prompts/get`.
    ///
    /// ```
    /// use turnbuckle_types::GetPrompt;
    /// let mut request = GetPrompt::new("review");
    /// request.arguments = Some([("code", "fn main() {}")].into());
    /// ```
    pub struct GetPrompt {
        required {
            /// The prompt's name.
            name("name"): String,
        }
        optional {
            /// What it is filled with.
            arguments("arguments"): Option<Named<String>>,
            /// What an earlier attempt asked for, by its names.
            #[since(V2026_07_28)]
            input_responses("inputResponses"): Option<Named<Raw>>,
            /// What an earlier attempt wants back.
            #[since(V2026_07_28)]
            request_state("requestState"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `prompts/get`.
    ///
    /// ```
    /// use turnbuckle_types::{ContentBlock, GetPromptResult, PromptMessage, Role};
    /// let ask = PromptMessage::new(Role::User, ContentBlock::text("Review this."));
    /// assert_eq!(GetPromptResult::new([ask]).messages.len(), 1);
    /// ```
    pub struct GetPromptResult {
        required {
            /// The messages.
            messages("messages"): Vec<PromptMessage>,
        }
        optional {
            /// What the prompt is for.
            description("description"): Option<String>,
            /// What kind of result this is.
            #[since(V2026_07_28)]
            #[require(modern::complete)]
            result_type("resultType"): Option<ResultType>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}
