//! `#[tool]`.
//!
//! Owns: the way from a function to its expansion, and what is left of it if it can't be a tool.
//! Does not own: the reading of the function, of the options and of doc comments.

mod docs;
mod expand;
mod options;
mod parse;
mod types;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Item, ItemFn};

use options::Options;
use parse::Function;

/// What `#[tool(attribute)] item` expands to.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match syn::parse2(item) {
        Ok(Item::Fn(function)) => expand_function(attribute, function),
        Ok(other) => {
            let error = Error::new_spanned(&other, NOT_A_FUNCTION).into_compile_error();
            quote!(#error #other)
        }
        Err(error) => error.into_compile_error(),
    }
}

const NOT_A_FUNCTION: &str =
    "`#[tool]` goes on a function: `#[tool] async fn add(a: i64, b: i64) -> i64 { a + b }`";

fn expand_function(attribute: TokenStream, function: ItemFn) -> TokenStream {
    let options = Options::parse(attribute);
    let parsed = Function::parse(&function);
    match (options, parsed) {
        (Ok(options), Ok(parsed)) => expand::expand(&options, &parsed),
        (Err(mut first), Err(second)) => {
            first.combine(second);
            refuse(&first, function)
        }
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => refuse(&error, function),
    }
}

/// The error, and as much of a tool that nothing else fails because it is missing: a value to
/// register, and the function, so that what it uses is used and its body is looked at.
fn refuse(error: &Error, function: ItemFn) -> TokenStream {
    let error = error.to_compile_error();
    let function = parse::without_argument_attributes(function);
    if function.sig.receiver().is_some() {
        // In an `impl` only functions can stand.
        return quote!(#error #function);
    }
    let value = expand::value(&function.vis, &function.sig.ident, &[]);
    let ident = &function.sig.ident;
    quote! {
        #error
        #value
        const _: () = {
            #[allow(dead_code)]
            #function
            impl ::turnbuckle::IntoTool for #ident {
                fn into_tool(self) -> ::turnbuckle::Tool {
                    ::core::unreachable!()
                }
            }
        };
    }
}
