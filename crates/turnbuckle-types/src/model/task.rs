//! The tasks that 2025-11-25 has in its core.

use crate::Meta;

model! {
    /// A task. Also the result of `tasks/get` and `tasks/cancel`, and the params of
    /// `notifications/tasks/status`, which are a task and its `_meta`.
    ///
    /// ```
    /// use turnbuckle_types::{Task, TaskStatus};
    /// let text = r#"{"taskId":"7","status":"working","createdAt":"2025-11-25T10:00:00Z",
    ///     "lastUpdatedAt":"2025-11-25T10:00:00Z","ttl":null}"#;
    /// let task: Task = serde_json::from_str(text).unwrap();
    /// assert_eq!((task.status, task.ttl), (TaskStatus::Working, None));
    /// ```
    pub struct Task {
        required {
            /// Which one.
            task_id("taskId"): String,
            /// How far it is.
            status("status"): TaskStatus,
            /// When it was created, in ISO 8601.
            created_at("createdAt"): String,
            /// When its status last changed, in ISO 8601.
            last_updated_at("lastUpdatedAt"): String,
            /// For how many milliseconds it is kept; `None` is for ever.
            #[by(value)]
            ttl("ttl"): Option<u64>,
        }
        optional {
            /// What people read about its status.
            status_message("statusMessage"): Option<String>,
            /// How many milliseconds to wait between two looks at it.
            poll_interval("pollInterval"): Option<u64>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

keywords! {
    /// How far a task is.
    pub enum TaskStatus {
        /// It runs.
        Working = "working",
        /// It waits for input.
        InputRequired = "input_required",
        /// It is done.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

model! {
    /// Asks that a request becomes a task.
    pub struct TaskMetadata {
        optional {
            /// For how many milliseconds it should be kept.
            ttl("ttl"): Option<u64>,
        }
    }
}

model! {
    /// The task that a message belongs to, in its `_meta`.
    pub struct RelatedTask {
        required {
            /// Which one.
            task_id("taskId"): String,
        }
        optional {}
    }
}

model! {
    /// The result of a request that became a task.
    pub struct CreateTaskResult {
        required {
            /// The task.
            task("task"): Task,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `tasks/get`.
    pub struct GetTask {
        required {
            /// Which one.
            task_id("taskId"): String,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `tasks/result`, whose result is that of the request itself.
    pub struct GetTaskPayload {
        required {
            /// Which one.
            task_id("taskId"): String,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `tasks/cancel`.
    pub struct CancelTask {
        required {
            /// Which one.
            task_id("taskId"): String,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `tasks/list`.
    pub struct ListTasks {
        optional {
            /// Where the page before ended.
            cursor("cursor"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `tasks/list`.
    pub struct ListTasksResult {
        required {
            /// One page of tasks.
            tasks("tasks"): Vec<Task>,
        }
        optional {
            /// Where this page ended, if there is more.
            next_cursor("nextCursor"): Option<String>,
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}
