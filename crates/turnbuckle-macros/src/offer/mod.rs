//! `#[tool]`, `#[prompt]` and `#[resource]`.
//!
//! Owns: the way from a function to its expansion, and what is left of it if it can't be offered.
//! Does not own: the reading of the function, of the options and of doc comments.

mod details;
mod expand;
pub(crate) mod parse;
pub(crate) mod parts;
mod variables;

#[cfg(test)]
mod tests;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Attribute, Error, Item, ItemFn, Result, Signature, ext::IdentExt};

use crate::{errors::Errors, kind::Kind, options::Options};
use parse::{Function, Standing};

/// The attribute of a function.
pub(crate) struct Marker {
    /// One of the kinds that have an attribute.
    pub(crate) kind: Kind,
    /// What stands in its parentheses.
    pub(crate) options: TokenStream,
    /// Where it stands.
    pub(crate) place: Span,
}

/// A function that can be offered, and what its attribute says.
pub(crate) struct Offer {
    pub(crate) options: Options,
    pub(crate) function: Function,
}

impl Offer {
    /// Reads a function, and takes from it what only the macros understand.
    pub(crate) fn parse(
        marker: Marker,
        standing: Standing,
        attributes: &[Attribute],
        signature: &mut Signature,
    ) -> Result<Offer> {
        let mut errors = Errors::default();
        let kind = marker.kind;
        let options = errors.take(Options::parse(marker));
        let function = errors.take(Function::parse(kind, standing, attributes, signature));
        let (Some(options), Some(function)) = (options, function) else {
            return Err(errors.finish(()).err().unwrap_or_else(|| {
                Error::new_spanned(&signature.ident, "this function can't be read")
            }));
        };
        variables::check(&options, &function, &mut errors);
        errors.finish(Offer { options, function })
    }

    /// What it is found by: the URI of a resource, the name of anything else.
    fn key(&self) -> TokenStream {
        match &self.options.uri {
            Some(uri) => uri.to_token_stream(),
            None => self.name(),
        }
    }

    /// Its name: that of the function, unless another is given.
    fn name(&self) -> TokenStream {
        match &self.options.name {
            Some(name) => name.to_token_stream(),
            None => self.function.ident.unraw().to_string().into_token_stream(),
        }
    }
}

/// What `#[tool(attribute)] item` and the like expand to.
pub(crate) fn expand(kind: Kind, attribute: TokenStream, item: TokenStream) -> TokenStream {
    match syn::parse2(item) {
        Ok(Item::Fn(function)) => expand_function(kind, attribute, function),
        Ok(other) => {
            let (word, example) = (kind.word(), kind.example());
            let message = match &other {
                Item::Impl(_) => format!(
                    "`#[{word}]` goes on a function: put `#[tools]` on the `impl` block, and \
                     `#[{word}]` on its methods"
                ),
                _ => format!("`#[{word}]` goes on a function: `{example}`"),
            };
            let error = Error::new_spanned(&other, message).into_compile_error();
            quote!(#error #other)
        }
        Err(error) => error.into_compile_error(),
    }
}

fn expand_function(kind: Kind, options: TokenStream, mut function: ItemFn) -> TokenStream {
    let ItemFn { attrs, sig, .. } = &mut function;
    let marker = Marker { kind, options, place: Span::call_site() };
    match Offer::parse(marker, Standing::Free, attrs, sig) {
        Ok(offer) => expand::expand(&offer, function),
        Err(error) => refuse(kind, &error, function),
    }
}

/// The error, and as much of an offer that nothing else fails because it is missing: a value to
/// register, and the function, so that what it uses is used and its body is looked at.
fn refuse(kind: Kind, error: &Error, mut function: ItemFn) -> TokenStream {
    let error = error.to_compile_error();
    parse::strip(&mut function.sig);
    if function.sig.receiver().is_some() {
        // In an `impl` only functions can stand.
        return quote!(#error #function);
    }
    let ident = &function.sig.ident;
    let value = expand::value(&function.vis, ident, &[]);
    let implementations =
        kind.family().iter().map(|kind| kind.implement(ident, &quote!(::core::unreachable!())));
    quote! {
        #error
        #value
        const _: () = {
            #[allow(dead_code)]
            #function
            #(#implementations)*
        };
    }
}
