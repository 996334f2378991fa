//! Owns: the code that a function becomes. Does not own: whether it can be offered.
//!
//! ```text
//! struct add;                                          // the value
//! const _: () = {
//!     async fn add(a: i64, ctx: Ctx) -> i64 { … }      // the function, untouched
//!     const _: () = {
//!         struct __Arguments<T> { a: T }                   // decoded from a call
//!         fn __call(a: i64, ctx: Ctx) -> impl Future<…>    // a `Send` future
//!         impl Deref for add { type Target = fn(i64, Ctx) -> Pin<Box<…>>; … }
//!         fn __register<T, C, R, F>(function: impl Fn(T, C) -> F) -> ToolDef {
//!             tool("add", |Args(__Arguments { a }), ctx| function(a, ctx))
//!         }
//!         impl IntoTool for add { … __register::<i64, Ctx, i64, _>(__call).description("…") … }
//!     };
//! };
//! ```
//!
//! A prompt has `prompt` and `IntoPrompt` in their places, a resource `resource` or `template`.
//!
//! Names that begin with `__` are not those of another value, which no variable could have.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Ident, ItemFn, Visibility};

use super::{
    Offer,
    parse::{Function, belongs_to_value},
    parts::Parts,
};

/// The value that has the function's name, and in a block of their own the function and what
/// makes the value an offer.
pub(crate) fn expand(offer: &Offer, mut inner: ItemFn) -> TokenStream {
    inner.attrs.retain(|attribute| !belongs_to_value(attribute));
    let visibility = std::mem::replace(&mut inner.vis, Visibility::Inherited);
    let Function { ident, conditions, documentation, lints, .. } = &offer.function;
    let attributes: Vec<Attribute> =
        conditions.iter().chain(documentation).chain(lints).cloned().collect();
    let value = value(&visibility, ident, &attributes);
    let parts = Parts::of(offer, None);
    let items = parts.items();
    let deref = parts.deref();
    let implementation = offer.options.kind.implement(ident, &parts.made(&quote!(__call)));
    quote! {
        #value
        #(#conditions)*
        #[allow(clippy::too_many_arguments)]
        const _: () = {
            #inner
            // What the function itself uses is for its author to know.
            #[allow(deprecated)]
            const _: () = {
                #items
                #deref
                #implementation
            };
        };
    }
}

/// The unit struct that has the function's name.
pub(crate) fn value(
    visibility: &Visibility,
    ident: &Ident,
    attributes: &[Attribute],
) -> TokenStream {
    // Its span is the attribute's, so that a value which no server offers is told of once, as a
    // function that is never used.
    quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #visibility struct #ident;
    }
}
