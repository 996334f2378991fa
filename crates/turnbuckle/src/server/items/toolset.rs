//! Types whose methods are tools, prompts and resources.

use std::sync::Arc;

use super::{Group, IntoGroup};

/// A type whose methods are tools, prompts and resources. `#[tools]` implements it.
///
/// The value, or an [`Arc`] of it that the program keeps as well, is registered with
/// [`Server::group`](crate::Server::group).
///
/// ```
/// use std::sync::Arc;
/// use turnbuckle::{
///     Server,
///     server::{Group, Toolset},
///     tool,
/// };
///
/// struct Greeter { greeting: String }
///
/// // `#[tools]` generates this.
/// impl Toolset for Greeter {
///     fn group(self: Arc<Self>) -> Group {
///         Group::new().tool(tool("greet", move || {
///             let this = self.clone();
///             async move { this.greeting.clone() }
///         }))
///     }
/// }
///
/// let greeter = Arc::new(Greeter { greeting: "Hello!".to_owned() });
/// let server = Server::new("demo", "1.0").group(greeter.clone());
/// # let _ = server;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tools",
    label = "not a set of tools",
    note = "put `#[tools]` on its `impl` block"
)]
pub trait Toolset: Send + Sync + 'static {
    /// Returns the items; each handler holds the value.
    fn group(self: Arc<Self>) -> Group;
}

impl<T: Toolset> IntoGroup for Arc<T> {
    fn into_group(self) -> Group {
        self.group()
    }
}
