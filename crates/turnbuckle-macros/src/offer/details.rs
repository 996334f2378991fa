//! Owns: what is said of an offer besides its types, as calls of its methods. Does not own: how
//! the offer itself is made.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{ExprPath, Ident, spanned::Spanned};

use super::Offer;
use crate::{argument::Completion, docs, options::Options, set::Owner};

/// `.description("…").title("…")` and so on.
pub(super) fn details(offer: &Offer, owner: Option<&Owner>) -> TokenStream {
    let Offer { options, function } = offer;
    let name = options.uri.as_ref().map(|_| {
        let name = offer.name();
        quote!(.name(#name))
    });
    let description = match &options.description {
        Some(description) => Some(description.to_token_stream()),
        None => docs::text(&function.documentation),
    };
    let description = description.map(|text| quote!(.description(#text)));
    let title = options.title.as_ref().map(|title| quote!(.title(#title)));
    let mime_type = options.mime_type.as_ref().map(|mime_type| quote!(.mime_type(#mime_type)));
    let icons = &options.icons;
    let scopes = options.scopes.as_ref().map(|scopes| quote!(.scopes([#(#scopes),*])));
    let annotations = hints(options).or_else(|| annotations(options));
    let completions = completions(offer, owner);
    let list = options.list.as_ref().map(|list| {
        let handler = handler(list, owner);
        quote_spanned!(list.span()=> .list(#handler))
    });
    quote! {
        #name #description #title #mime_type
        #(.icon(::turnbuckle::types::Icon::new(#icons)))*
        #scopes #annotations #(#completions)* #list
    }
}

/// What is said of a resource.
fn annotations(options: &Options) -> Option<TokenStream> {
    let audience = options.audience.as_ref().map(|roles| {
        let roles = roles.iter().map(|role| match &*role.value() {
            "user" => quote!(::turnbuckle::types::Role::User),
            _ => quote!(::turnbuckle::types::Role::Assistant),
        });
        quote!(__annotations.audience = ::core::option::Option::Some(::std::vec![#(#roles),*]);)
    });
    let priority = options
        .priority
        .as_ref()
        .map(|priority| quote!(__annotations.priority = ::core::option::Option::Some(#priority);));
    let last_modified = options.last_modified.as_ref().map(|when| {
        quote! {
            __annotations.last_modified =
                ::core::option::Option::Some(::std::string::String::from(#when));
        }
    });
    let said: Vec<TokenStream> =
        [audience, priority, last_modified].into_iter().flatten().collect();
    (!said.is_empty()).then(|| {
        quote! {
            .annotations({
                let mut __annotations = ::turnbuckle::types::Annotations::new();
                #(#said)*
                __annotations
            })
        }
    })
}

/// What is said of a tool.
fn hints(options: &Options) -> Option<TokenStream> {
    let hints = options.hints.iter().map(|(field, value)| {
        let field = Ident::new(field, Span::call_site());
        quote!(__annotations.#field = ::core::option::Option::Some(#value);)
    });
    (!options.hints.is_empty()).then(|| {
        quote! {
            .annotations({
                let mut __annotations = ::turnbuckle::types::ToolAnnotations::new();
                #(#hints)*
                __annotations
            })
        }
    })
}

/// What completes each argument.
fn completions(offer: &Offer, owner: Option<&Owner>) -> Vec<TokenStream> {
    let completed = offer.function.plain().filter_map(|plain| {
        let name = plain.wire_name()?;
        Some(match plain.completion.as_ref()? {
            Completion::Values(values) => quote!(.complete_values(#name, #values)),
            Completion::Function(path) => {
                let handler = handler(path, owner);
                // A function that can't complete anything is told of where it is named.
                quote_spanned!(path.span()=> .complete(#name, #handler))
            }
        })
    });
    completed.collect()
}

/// A function as a handler: a method is given the value that it belongs to.
fn handler(path: &ExprPath, owner: Option<&Owner>) -> TokenStream {
    let bound = owner.and_then(|owner| owner.bound(path));
    bound.unwrap_or_else(|| path.to_token_stream())
}
