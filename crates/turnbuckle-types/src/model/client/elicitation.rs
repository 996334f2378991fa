//! Elicitation: what a server asks the user, and what comes back.

use serde::{Deserialize, Deserializer, de::Error};

use crate::{
    At, ElicitSchema, Encode, Meta, Raw, TaskMetadata,
    wire::{legacy, read::Word},
};

/// The params of `elicitation/create`: a form, or since 2025-11-25 a page to visit.
///
/// 2025-06-18 knows forms only; for it a page is written as a form without fields whose
/// message names the page.
///
/// ```
/// use turnbuckle_types::{Elicit, ElicitForm, ElicitSchema, StringSchema};
/// let schema = ElicitSchema::new([("name", StringSchema::new())]);
/// let ask = Elicit::from(ElicitForm::new("Who are you?", schema));
/// assert_eq!(ask.message(), "Who are you?");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Elicit {
    /// The user fills in a form.
    Form(ElicitForm),
    /// The user visits a page, and the client does not see what happens there.
    Url(ElicitUrl),
}

impl Elicit {
    /// What the user is told.
    pub fn message(&self) -> &str {
        match self {
            Elicit::Form(form) => &form.message,
            Elicit::Url(page) => &page.message,
        }
    }
}

impl From<ElicitForm> for Elicit {
    fn from(form: ElicitForm) -> Elicit {
        Elicit::Form(form)
    }
}

impl From<ElicitUrl> for Elicit {
    fn from(page: ElicitUrl) -> Elicit {
        Elicit::Url(page)
    }
}

impl Encode for Elicit {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        match self {
            Elicit::Form(form) => form.write(at, out),
            Elicit::Url(page) => legacy::write_page(page, at, out),
        }
    }
}

serialize!(Elicit);

impl<'de> Deserialize<'de> for Elicit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Elicit, D::Error> {
        #[derive(Deserialize)]
        struct Mode<'a> {
            #[serde(borrow)]
            mode: Option<Word<'a>>,
        }
        // An absent mode is a form, so the end must be seen before anything is decided.
        let raw = Raw::deserialize(deserializer)?;
        let mode = raw.decode_borrowed::<Mode<'_>>().map_err(D::Error::custom)?.mode;
        match mode.as_ref().map_or("form", Word::as_str) {
            "form" => raw.decode().map(Elicit::Form).map_err(D::Error::custom),
            "url" => raw.decode().map(Elicit::Url).map_err(D::Error::custom),
            other => Err(D::Error::unknown_variant(other, &["form", "url"])),
        }
    }
}

model! {
    /// A form to fill in.
    pub struct ElicitForm {
        required {
            /// What the user is told.
            message("message"): String,
            /// The fields.
            requested_schema("requestedSchema"): ElicitSchema,
        }
        optional {
            /// Absent means the same.
            #[since(V2025_11_25)]
            mode("mode"): Option<FormMode>,
            /// Asks that this becomes a task.
            #[since(V2025_11_25)]
            #[until(V2025_11_25)]
            task("task"): Option<TaskMetadata>,
            /// Metadata.
            #[until(V2025_11_25)]
            meta("_meta"): Meta,
        }
    }
}

keywords! {
    /// The mode of a form.
    pub enum FormMode {
        /// A form.
        Form = "form",
    }
}

model! {
    /// A page to visit.
    ///
    /// ```
    /// use turnbuckle_types::ElicitUrl;
    /// let login = ElicitUrl::new("Log in first", "https://example.com/login");
    /// assert!(login.elicitation_id.is_none());
    /// ```
    pub struct ElicitUrl {
        tag("mode") = "url";
        required {
            /// Why the user should go there.
            message("message"): String,
            /// Where.
            url("url"): String,
        }
        optional {
            /// What names this elicitation later. 2025-11-25 insists on one; absent,
            /// the URL stands in.
            #[until(V2025_11_25)]
            #[require(legacy::elicitation_id)]
            elicitation_id("elicitationId"): Option<String>,
            /// Asks that this becomes a task.
            #[until(V2025_11_25)]
            task("task"): Option<TaskMetadata>,
            /// Metadata.
            #[until(V2025_11_25)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `elicitation/create`.
    ///
    /// ```
    /// use serde_json::json;
    /// use turnbuckle_types::{ElicitAction, ElicitResult};
    /// let mut answer = ElicitResult::new(ElicitAction::Accept);
    /// answer.content = Some(json!({"name": "Ada"}).into());
    /// ```
    pub struct ElicitResult {
        required {
            /// What the user did.
            action("action"): ElicitAction,
        }
        optional {
            /// The form's values, an object. Only with [`ElicitAction::Accept`].
            content("content"): Option<Raw>,
            /// Metadata.
            #[until(V2025_11_25)]
            meta("_meta"): Meta,
        }
    }
}

keywords! {
    /// What a user did about an elicitation.
    pub enum ElicitAction {
        /// Said yes.
        Accept = "accept",
        /// Said no.
        Decline = "decline",
        /// Said nothing.
        Cancel = "cancel",
    }
}

model! {
    /// The params of `notifications/elicitation/complete`, in 2025-11-25: what happened
    /// on a page is over.
    pub struct ElicitationComplete {
        required {
            /// Which elicitation.
            elicitation_id("elicitationId"): String,
        }
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The data of error −32042, in 2025-11-25: these pages must be visited first.
    pub struct UrlElicitationRequired {
        required {
            /// The pages.
            elicitations("elicitations"): Vec<ElicitUrl>,
        }
        optional {}
    }
}
