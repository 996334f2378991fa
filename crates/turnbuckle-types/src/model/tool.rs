//! Tools: their description, listing and calling.

use crate::{
    CacheScope, ContentBlock, Icon, Meta, Named, Raw, ResultType, TaskMetadata,
    wire::{legacy, modern},
};

model! {
    /// A tool, as a server describes it.
    ///
    /// ```
    /// use serde_json::json;
    /// use turnbuckle_types::Tool;
    /// let mut tool = Tool::new("add", json!({"type": "object"}));
    /// tool.description = Some("Add two integers.".into());
    /// ```
    pub struct Tool {
        required {
            /// The name it is called by.
            name("name"): String,
            /// The JSON Schema of its arguments, whose root is an object.
            input_schema("inputSchema"): Raw,
        }
        optional {
            /// The name that people read.
            #[since(V2025_06_18)]
            title("title"): Option<String>,
            /// What it does, for the model.
            description("description"): Option<String>,
            /// The JSON Schema of `structuredContent`. Until 2025-11-25 its root must be
            /// an object; for those, any other is left out.
            #[since(V2025_06_18)]
            #[when(legacy::is_object_schema)]
            output_schema("outputSchema"): Option<Raw>,
            /// How it behaves.
            #[since(V2025_03_26)]
            annotations("annotations"): Option<ToolAnnotations>,
            /// How it can be run.
            #[since(V2025_11_25)]
            #[until(V2025_11_25)]
            execution("execution"): Option<ToolExecution>,
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
    /// How a tool behaves, by its own account.
    ///
    /// ```
    /// use turnbuckle_types::{Tool, ToolAnnotations};
    /// let mut tool = Tool::new("stat", serde_json::json!({"type": "object"}));
    /// let mut annotations = ToolAnnotations::new();
    /// annotations.read_only_hint = Some(true);
    /// tool.annotations = Some(annotations);
    /// ```
    pub struct ToolAnnotations {
        optional {
            /// The name that people read.
            title("title"): Option<String>,
            /// It changes nothing.
            read_only_hint("readOnlyHint"): Option<bool>,
            /// It may destroy something.
            destructive_hint("destructiveHint"): Option<bool>,
            /// The same call twice does no more than once.
            idempotent_hint("idempotentHint"): Option<bool>,
            /// It reaches beyond the server's own world.
            open_world_hint("openWorldHint"): Option<bool>,
        }
    }
}

model! {
    /// How a tool can be run, in 2025-11-25.
    pub struct ToolExecution {
        optional {
            /// Whether it runs as a task.
            task_support("taskSupport"): Option<TaskSupport>,
        }
    }
}

keywords! {
    /// Whether a tool runs as a task, in 2025-11-25.
    pub enum TaskSupport {
        /// Never. This is what absent means.
        Forbidden = "forbidden",
        /// If the caller likes.
        Optional = "optional",
        /// Always.
        Required = "required",
    }
}

model! {
    /// The params of `tools/list`.
    pub struct ListTools {
        optional {
            /// Where the page before ended.
            cursor("cursor"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `tools/list`.
    ///
    /// ```
    /// use turnbuckle_types::{ListToolsResult, Raw, Revision};
    /// let none = Raw::at(&ListToolsResult::new([]), Revision::V2026_07_28);
    /// let text = r#"{"tools":[],"ttlMs":0,"cacheScope":"private","resultType":"complete"}"#;
    /// assert_eq!(none.as_str(), text);
    /// ```
    pub struct ListToolsResult {
        required {
            /// One page of tools.
            tools("tools"): Vec<Tool>,
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
    /// The params of `tools/call`.
    ///
    /// ```
    /// use serde_json::json;
    /// use turnbuckle_types::CallTool;
    /// let mut call = CallTool::new("add");
    /// call.arguments = Some(json!({"a": 1, "b": 2}).into());
    /// assert_eq!(serde_json::to_value(&call).unwrap(), json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
    /// ```
    pub struct CallTool {
        required {
            /// The tool's name.
            name("name"): String,
        }
        optional {
            /// An object.
            arguments("arguments"): Option<Raw>,
            /// What an earlier attempt asked for, by its names.
            #[since(V2026_07_28)]
            input_responses("inputResponses"): Option<Named<Raw>>,
            /// What an earlier attempt wants back.
            #[since(V2026_07_28)]
            request_state("requestState"): Option<String>,
            /// Asks that the call becomes a task.
            #[since(V2025_11_25)]
            #[until(V2025_11_25)]
            task("task"): Option<TaskMetadata>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `tools/call`.
    ///
    /// ```
    /// use turnbuckle_types::CallToolResult;
    /// let result = CallToolResult::error("no such city");
    /// assert_eq!(result.is_error, Some(true));
    /// ```
    pub struct CallToolResult {
        required {
            /// What the model reads.
            content("content"): Vec<ContentBlock>,
        }
        optional {
            /// What programs read. Until 2025-11-25 it must be an object; for those, any
            /// other value is left out.
            #[since(V2025_06_18)]
            #[when(legacy::is_object)]
            structured_content("structuredContent"): Option<Raw>,
            /// The tool failed, and `content` says why.
            is_error("isError"): Option<bool>,
            /// What kind of result this is.
            #[since(V2026_07_28)]
            #[require(modern::complete)]
            result_type("resultType"): Option<ResultType>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

impl CallToolResult {
    /// One block of text.
    pub fn text(text: impl Into<String>) -> CallToolResult {
        CallToolResult::new([ContentBlock::text(text)])
    }

    /// The text of all text blocks, one a line.
    ///
    /// ```
    /// use turnbuckle_types::CallToolResult;
    /// assert_eq!(CallToolResult::text("3").to_text(), "3");
    /// ```
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for block in &self.content {
            if let ContentBlock::Text(block) = block {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&block.text);
            }
        }
        text
    }

    /// A failure that the model can read.
    pub fn error(text: impl Into<String>) -> CallToolResult {
        CallToolResult { is_error: Some(true), ..CallToolResult::text(text) }
    }
}
