//! The attribute macros of the `turnbuckle` SDK, which re-exports them.
//!
//! Owns: what `#[tool]` makes of a function. Does not own: tools themselves; whatever a macro
//! here expands to can be written by hand.
//!
//! Depend on `turnbuckle`, not on this crate: the expansions name `::turnbuckle`, so the crate
//! has to be known under that name.

mod tool;

/// Makes a tool of a function with plain arguments.
///
/// ```text
/// /// Add two integers.
/// #[tool]
/// async fn add(
///     /// The first number.
///     a: i64,
///     /// The second number, 1 if left out.
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
///   `#[serde(…)]` and `#[schemars(…)]` on an argument mean what they mean on a field, for example
///   `#[serde(default)]` or `#[schemars(range(min = 1))]`.
/// - Arguments of the types `Ctx`, `State<S>`, `RawArgs` and `Args<T>` are provided by the SDK and
///   are no part of the input. They are told by these names, with any path before them.
///   `Args<T>` takes the place of plain arguments.
/// - An `async fn` is dropped when its call is cancelled. A sync `fn` runs on a thread where it
///   may block.
/// - The result is anything that a tool can reply.
///
/// # Options
///
/// `#[tool(name = "…", title = "…", description = "…")]` replaces what the function says, and
/// `read_only`, `destructive`, `idempotent` and `open_world` say how the tool behaves: alone for
/// yes, `destructive = false` for no.
///
/// # The function afterwards
///
/// `add` is then a value that [`Server::tool`] takes, and can still be called:
/// `add(1, None).await`. That value is a unit struct: within its scope no variable and no module
/// can have its name, and the types of its arguments and its result have to be as visible as it.
/// The function itself can't be generic, borrow its arguments or be a method.
///
/// [`Server::tool`]: https://docs.rs/turnbuckle/latest/turnbuckle/struct.Server.html#method.tool
#[proc_macro_attribute]
pub fn tool(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    tool::expand(attribute.into(), item.into()).into()
}
