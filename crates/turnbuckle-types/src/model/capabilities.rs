//! Owns what clients and servers say they can do.
//! Does not own what follows from it: the kernel and the negotiation decide that.

use crate::{Named, Raw, wire::legacy};

model! {
    /// What a client can do.
    ///
    /// ```
    /// use turnbuckle_types::{ClientCapabilities, RootsCapability};
    /// let mut capabilities = ClientCapabilities::new();
    /// capabilities.roots = Some(RootsCapability::new());
    /// assert_eq!(serde_json::to_string(&capabilities).unwrap(), r#"{"roots":{}}"#);
    /// ```
    pub struct ClientCapabilities {
        optional {
            /// What no specification knows: objects by name.
            experimental("experimental"): Option<Named<Raw>>,
            /// It has roots.
            roots("roots"): Option<RootsCapability>,
            /// It has a model.
            sampling("sampling"): Option<SamplingCapability>,
            /// It can ask the user. 2025-06-18 means forms by that; for it, a client
            /// that has none has no such capability.
            #[since(V2025_06_18)]
            #[when(legacy::has_forms)]
            elicitation("elicitation"): Option<ElicitationCapability>,
            /// It runs requests as tasks.
            #[since(V2025_11_25)]
            #[until(V2025_11_25)]
            tasks("tasks"): Option<ClientTasks>,
            /// Extensions by name, each with its settings, an object.
            #[since(V2026_07_28)]
            extensions("extensions"): Option<Named<Raw>>,
        }
    }
}

model! {
    /// A client has roots.
    pub struct RootsCapability {
        optional {
            /// It tells when they change.
            #[until(V2025_11_25)]
            list_changed("listChanged"): Option<bool>,
        }
    }
}

model! {
    /// A client has a model.
    pub struct SamplingCapability {
        optional {
            /// Other servers' context can be included: an object.
            #[since(V2025_11_25)]
            context("context"): Option<Raw>,
            /// The model can use tools: an object.
            #[since(V2025_11_25)]
            tools("tools"): Option<Raw>,
        }
    }
}

model! {
    /// A client can ask the user. With neither member it can show forms.
    pub struct ElicitationCapability {
        optional {
            /// It can show forms: an object.
            #[since(V2025_11_25)]
            form("form"): Option<Raw>,
            /// It can send the user to a page: an object.
            #[since(V2025_11_25)]
            url("url"): Option<Raw>,
        }
    }
}

model! {
    /// What a client runs as tasks, in 2025-11-25.
    pub struct ClientTasks {
        optional {
            /// `tasks/list`: an object.
            list("list"): Option<Raw>,
            /// `tasks/cancel`: an object.
            cancel("cancel"): Option<Raw>,
            /// Requests that can become tasks.
            requests("requests"): Option<ClientTaskRequests>,
        }
    }
}

model! {
    /// The requests that a client runs as tasks, in 2025-11-25.
    pub struct ClientTaskRequests {
        optional {
            /// Sampling.
            sampling("sampling"): Option<SamplingTasks>,
            /// Elicitation.
            elicitation("elicitation"): Option<ElicitationTasks>,
        }
    }
}

model! {
    /// Sampling that runs as a task, in 2025-11-25.
    pub struct SamplingTasks {
        optional {
            /// `sampling/createMessage`: an object.
            create_message("createMessage"): Option<Raw>,
        }
    }
}

model! {
    /// Elicitation that runs as a task, in 2025-11-25.
    pub struct ElicitationTasks {
        optional {
            /// `elicitation/create`: an object.
            create("create"): Option<Raw>,
        }
    }
}

model! {
    /// What a server can do.
    ///
    /// ```
    /// use turnbuckle_types::{Raw, Revision, ServerCapabilities, ToolsCapability};
    /// let mut capabilities = ServerCapabilities::new();
    /// capabilities.tools = Some(ToolsCapability::new());
    /// capabilities.completions = Some(Raw::empty_object());
    /// let old = Raw::at(&capabilities, Revision::V2024_11_05);
    /// assert_eq!(old.as_str(), r#"{"tools":{}}"#);
    /// ```
    pub struct ServerCapabilities {
        optional {
            /// What no specification knows: objects by name.
            experimental("experimental"): Option<Named<Raw>>,
            /// It sends log messages: an object.
            logging("logging"): Option<Raw>,
            /// It completes arguments: an object.
            #[since(V2025_03_26)]
            completions("completions"): Option<Raw>,
            /// It has prompts.
            prompts("prompts"): Option<PromptsCapability>,
            /// It has resources.
            resources("resources"): Option<ResourcesCapability>,
            /// It has tools.
            tools("tools"): Option<ToolsCapability>,
            /// It runs requests as tasks.
            #[since(V2025_11_25)]
            #[until(V2025_11_25)]
            tasks("tasks"): Option<ServerTasks>,
            /// Extensions by name, each with its settings, an object.
            #[since(V2026_07_28)]
            extensions("extensions"): Option<Named<Raw>>,
        }
    }
}

model! {
    /// A server has prompts.
    pub struct PromptsCapability {
        optional {
            /// It tells when their list changes.
            list_changed("listChanged"): Option<bool>,
        }
    }
}

model! {
    /// A server has resources.
    pub struct ResourcesCapability {
        optional {
            /// It tells when one changes.
            subscribe("subscribe"): Option<bool>,
            /// It tells when their list changes.
            list_changed("listChanged"): Option<bool>,
        }
    }
}

model! {
    /// A server has tools.
    pub struct ToolsCapability {
        optional {
            /// It tells when their list changes.
            list_changed("listChanged"): Option<bool>,
        }
    }
}

model! {
    /// What a server runs as tasks, in 2025-11-25.
    pub struct ServerTasks {
        optional {
            /// `tasks/list`: an object.
            list("list"): Option<Raw>,
            /// `tasks/cancel`: an object.
            cancel("cancel"): Option<Raw>,
            /// Requests that can become tasks.
            requests("requests"): Option<ServerTaskRequests>,
        }
    }
}

model! {
    /// The requests that a server runs as tasks, in 2025-11-25.
    pub struct ServerTaskRequests {
        optional {
            /// Tools.
            tools("tools"): Option<ToolTasks>,
        }
    }
}

model! {
    /// Tools that run as tasks, in 2025-11-25.
    pub struct ToolTasks {
        optional {
            /// `tools/call`: an object.
            call("call"): Option<Raw>,
        }
    }
}
