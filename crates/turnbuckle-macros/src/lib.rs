//! The attribute macros of the `turnbuckle` SDK, which re-exports them.
//!
//! Owns: what `#[tool]`, `#[prompt]` and `#[resource]` make of a function, and `#[tools]` of an
//! `impl` block. Does not own: tools, prompts and resources themselves; whatever a macro here
//! expands to can be written by hand.
//!
//! Depend on `turnbuckle`, not on this crate: the expansions name `::turnbuckle`, so the crate
//! has to be known under that name.

mod argument;
mod docs;
mod errors;
mod kind;
mod meta;
mod offer;
mod options;
mod set;
mod types;
mod uri;

use kind::Kind;

/// Makes a tool of a function with plain arguments.
///
/// ```text
/// /// Add two integers.
/// #[tool]
/// async fn add(
///     /// The first number.
///     a: i64,
///     /// The second number, 1 if left out.
///     #[arg(min = 1, max = 100)]
///     b: Option<i64>,
/// ) -> i64 {
///     a + b.unwrap_or(1)
/// }
///
/// let server = Server::new("calc", "1.0").tool(add);
/// ```
///
/// - The name of the function is the name of the tool, its doc comment the description.
/// - Each argument is a property of the tool's input, described by its own doc comment. Its type
///   derives `serde::Deserialize` and `schemars::JsonSchema`; an `Option` may be left out.
/// - Arguments that the SDK provides are no part of the input: `Ctx`, `State<S>`, `Extension<T>`,
///   `Header<T>`, `Principal<C>`, `Asked<T>`, `RawArgs` and `Args<T>`; also `Option` of an
///   `Extension`, a `Header` or a `Principal`. They are told by these names, with any path before
///   them. `#[extract]` on an argument says the same of a type of your own that is `FromCall`.
///   `Args<T>` takes the place of plain arguments.
/// - An `async fn` is dropped when its call is cancelled. A sync `fn` runs on a thread where it
///   may block.
/// - The result is anything that a tool can reply.
///
/// # Options
///
/// `#[tool(name = "…", title = "…", description = "…")]` replaces what the function says,
/// `icon = "https://…"` or `icons("https://…", …)` shows it, and `read_only`, `destructive`,
/// `idempotent` and `open_world` say how the tool behaves: alone for yes, `destructive = false` for
/// no. `scopes = ["files:write"]` says what the token of a caller must be good for, where the server
/// is protected.
///
/// # Options of an argument
///
/// `#[arg(…)]` takes `title = "…"`, and what a value has to be, which is checked before the function
/// runs:
///
/// - `min` and `max` of a number;
/// - `min_length` and `max_length` of text or a list, and `pattern = "…"` of text;
/// - `header = "Region"`, which lets HTTP clients repeat the value in a header.
///
/// `#[serde(…)]` and `#[schemars(…)]` on an argument mean what they mean on a field, for example
/// `#[serde(default)]`.
///
/// # The function afterwards
///
/// `add` is then a value that [`Server::tool`] takes, and can still be called:
/// `add(1, None).await`. That value is a unit struct: within its scope no variable and no module
/// can have its name, and the types of its arguments and its result have to be as visible as it.
/// The function itself can't be generic or borrow its arguments; for methods there is
/// [`tools`](macro@tools).
///
/// [`Server::tool`]: https://docs.rs/turnbuckle/latest/turnbuckle/struct.Server.html#method.tool
#[proc_macro_attribute]
pub fn tool(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    offer::expand(Kind::Tool, attribute.into(), item.into()).into()
}

/// Makes a prompt of a function with plain arguments.
///
/// ```text
/// /// Ask for a code review.
/// #[prompt]
/// async fn review(
///     /// What is to be reviewed.
///     code: String,
///     /// The language it is written in.
///     #[arg(complete = ["rust", "python"])]
///     language: Option<String>,
/// ) -> String {
///     format!("Review this {} code:\n{code}", language.unwrap_or_default())
/// }
///
/// let server = Server::new("demo", "1.0").prompt(review);
/// ```
///
/// Everything is as with [`tool`](macro@tool), but:
///
/// - Each plain argument is an argument of the prompt, which arrives as text and is read as its type
///   wants it: `u32`, `bool` and enums are fine.
/// - `#[arg(complete = ["rust", "python"])]` completes an argument from a list,
///   `#[arg(complete = path::to::function)]` from an `async fn` that takes `Typed` and returns texts.
///   An argument whose type is an enum is completed by itself.
/// - `#[arg(…)]` takes no `header`, and `#[prompt(…)]` only `name`, `title`, `description`, `icon`,
///   `icons` and `scopes`.
#[proc_macro_attribute]
pub fn prompt(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    offer::expand(Kind::Prompt, attribute.into(), item.into()).into()
}

/// Makes a resource of a function, or a family of resources if the URI has variables.
///
/// ```text
/// /// How to begin.
/// #[resource("demo://readme", mime_type = "text/markdown")]
/// async fn readme() -> &'static str {
///     "# Read me"
/// }
///
/// /// One item.
/// #[resource("demo://items/{id}")]
/// async fn item(#[arg(complete = ids)] id: u32) -> Result<String, NotFound> {
///     if id < 10 { Ok(format!("item {id}")) } else { Err(NotFound) }
/// }
///
/// async fn ids(Typed(typed): Typed) -> Vec<String> { … }
///
/// let server = Server::new("demo", "1.0").resource(readme).template(item);
/// ```
///
/// Everything is as with [`tool`](macro@tool), but:
///
/// - The URI comes first. With `{variables}` in it (RFC 6570), they are the plain arguments of the
///   function, and the value goes to `Server::template`. Without, there are none, and it goes to
///   `Server::resource`.
/// - The options are `name` (the function's name if left out), `title`, `description`, `mime_type`,
///   `icon`, `icons`, `scopes`, and for a family `list = path::to::function`: an `async fn` that
///   returns its members.
/// - `audience = ["user", "assistant"]` says who it is for, `priority = 0.8` how much it matters (from
///   0 to 1), `last_modified = "2026-01-02T03:04:05Z"` when it was changed.
/// - `#[arg(…)]` takes `complete` and no `header`, as with [`prompt`](macro@prompt).
#[proc_macro_attribute]
pub fn resource(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    offer::expand(Kind::Resource, attribute.into(), item.into()).into()
}

/// Makes a group of the methods of a type, which share its value.
///
/// ```text
/// #[derive(Default)]
/// struct Notes {
///     all: Mutex<Vec<String>>,
/// }
///
/// #[tools]
/// impl Notes {
///     /// Write a note.
///     #[tool]
///     async fn add(
///         &self,
///         /// What to write.
///         #[arg(min_length = 1)]
///         text: String,
///     ) -> usize {
///         let mut all = self.all.lock().unwrap();
///         all.push(text);
///         all.len()
///     }
///
///     /// One note.
///     #[resource("note://{number}", mime_type = "text/plain")]
///     async fn note(&self, #[arg(complete = Self::numbers)] number: usize) -> Result<String, NotFound> {
///         self.all.lock().unwrap().get(number).cloned().ok_or(NotFound)
///     }
///
///     async fn numbers(&self, Typed(typed): Typed) -> Vec<String> { … }
/// }
///
/// let server = Server::new("notes", "1.0").group(Notes::default());
/// ```
///
/// - A method that carries `#[tool]`, `#[prompt]` or `#[resource("…")]` is offered. It takes `&self`;
///   all else is as with these attributes on a function. Other methods stay what they are.
/// - The value, or an `Arc` of it that the program keeps as well, is what [`Server::group`] takes.
/// - `complete = Self::method` and `list = Self::method` may name an `async` method of the same
///   block that takes `&self`.
/// - The type has no parameters and is `Send + Sync + 'static`.
///
/// [`Server::group`]: https://docs.rs/turnbuckle/latest/turnbuckle/struct.Server.html#method.group
#[proc_macro_attribute]
pub fn tools(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    set::expand(attribute.into(), item.into()).into()
}
