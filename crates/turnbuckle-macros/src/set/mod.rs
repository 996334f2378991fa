//! `#[tools]`.
//!
//! Owns: the way from an `impl` block to a group of what its methods offer.
//! Does not own: how one method is read, nor what is made of it.
//!
//! ```text
//! impl Notes { async fn add(&self, text: String) -> usize { … } … }      // the methods, untouched
//! impl Toolset for Notes {
//!     fn group(self: Arc<Self>) -> Group {
//!         let group = Group::new();
//!         let group = group.tool({
//!             fn __call(this: Arc<Notes>, text: String) -> impl Future<…>   // a `Send` future
//!             fn __register<…>(function: impl Fn(String) -> F) -> ToolDef { tool("add", …) }
//!             let this = self.clone();
//!             __register::<…>(move |text| __call(this.clone(), text)).description("…")
//!         });
//!         …
//!         group
//!     }
//! }
//! impl IntoGroup for Notes { … Toolset::group(Arc::new(self)) … }
//! ```

mod owner;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{
    Attribute, Error, ImplItem, ImplItemFn, Item, ItemImpl, Meta, Type, parse2, spanned::Spanned,
};

pub(crate) use owner::Owner;

use crate::{
    errors::Errors,
    kind::Kind,
    offer::{
        Marker, Offer,
        parse::{Standing, strip},
        parts::Parts,
    },
    types::show,
};

/// What `#[tools] item` expands to.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut block = match parse2(item) {
        Ok(Item::Impl(block)) => block,
        Ok(other) => {
            let error = Error::new_spanned(&other, NOT_AN_IMPL).into_compile_error();
            return quote!(#error #other);
        }
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    check_attribute(&attribute, &mut errors);
    check_block(&block, &mut errors);
    let owner = Owner::of(&block);
    let offers = offers(&mut block, &owner, &mut errors);
    let implementation = match errors.finish(()) {
        Ok(()) => {
            let added = offers.iter().map(|offer| added(offer, &owner));
            implement(&block.self_ty, &quote!(#(#added)*))
        }
        Err(error) if block.trait_.is_some() || !block.generics.params.is_empty() => {
            error.to_compile_error()
        }
        Err(error) => {
            // So that nothing else fails because there is no group.
            let error = error.to_compile_error();
            let implementation = implement(&block.self_ty, &quote!());
            quote!(#error #implementation)
        }
    };
    quote!(#block #implementation)
}

const NOT_AN_IMPL: &str = "`#[tools]` goes on an `impl` block: `#[tools] impl Notes { #[tool] async \
                           fn add(&self, text: String) { … } }`; a function carries `#[tool]`";

fn check_attribute(attribute: &TokenStream, errors: &mut Errors) {
    if !attribute.is_empty() {
        let message = "`#[tools]` has no options: those of a tool stand in its `#[tool(…)]`";
        errors.push(Error::new_spanned(attribute, message));
    }
}

fn check_block(block: &ItemImpl, errors: &mut Errors) {
    let shown = show(&block.self_ty);
    if let Some((path, _)) = &block.trait_ {
        let message = format!(
            "`#[tools]` goes on the type's own methods: write `impl {shown}` without a trait"
        );
        errors.push(Error::new_spanned(path, message));
    }
    for parameter in &block.generics.params {
        let bounded = show(parameter);
        let name = bounded.split(':').next().unwrap_or_default().trim_end();
        let message = format!(
            "a set belongs to one type: write `impl` without `<{name}>`, for a type without \
             parameters, such as `Notes<Memory>`"
        );
        errors.push(Error::new_spanned(parameter, message));
    }
    if let Some(clause) = &block.generics.where_clause
        && block.generics.params.is_empty()
    {
        errors.push(Error::new_spanned(clause, "a set is not generic: leave out `where`"));
    }
}

/// What the methods offer. Takes from them what only the macros understand.
fn offers(block: &mut ItemImpl, owner: &Owner, errors: &mut Errors) -> Vec<Offer> {
    let mut offers = Vec::new();
    let mut marked = false;
    for item in &mut block.items {
        let ImplItem::Fn(ImplItemFn { attrs, sig, .. }) = item else { continue };
        let Some(marker) = marker(attrs, errors) else { continue };
        marked = true;
        match errors.take(Offer::parse(marker, Standing::Method, attrs, sig)) {
            Some(mut offer) => {
                owner.check_handlers(&offer, errors);
                owner.name_itself(&mut offer.function);
                offers.push(offer);
            }
            None => strip(sig),
        }
    }
    if !marked {
        let message = "nothing in here is offered: put `#[tool]`, `#[prompt]` or \
                       `#[resource(\"…\")]` on a method that takes `&self`";
        errors.push(Error::new_spanned(&block.self_ty, message));
    }
    offers
}

/// Takes the attribute that says what a method is. The last part of its path tells it.
fn marker(attributes: &mut Vec<Attribute>, errors: &mut Errors) -> Option<Marker> {
    let kind = |attribute: &Attribute| {
        let last = attribute.path().segments.last()?.ident.to_string();
        Kind::ATTRIBUTES.into_iter().find(|kind| kind.word() == last)
    };
    let mut markers = attributes.extract_if(.., |attribute| kind(attribute).is_some());
    let first = markers.next()?;
    for second in markers {
        let message = "a method is one thing: leave one of the attributes";
        errors.push(Error::new_spanned(&second, message));
    }
    let kind = kind(&first)?;
    let options = match &first.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) => {
            let message = format!("write `#[{0}]` or `#[{0}(…)]`", kind.word());
            errors.push(Error::new_spanned(pair, message));
            TokenStream::new()
        }
    };
    Some(Marker { kind, options, place: first.path().span() })
}

/// The statement that adds an offer to the group.
fn added(offer: &Offer, owner: &Owner) -> TokenStream {
    let conditions = &offer.function.conditions;
    let parts = Parts::of(offer, Some(owner));
    let (items, variables) = (parts.items(), parts.variables());
    let made = parts.made(&quote! {
        move |#(#variables),*| __call(::std::sync::Arc::clone(&__this), #(#variables),*)
    });
    let made = quote! {{
        #items
        let __this = ::std::sync::Arc::clone(&self);
        #made
    }};
    // An offer was registered where its method is: that is told if there are two of a name.
    let place = offer.function.ident.span();
    let mut add = offer.options.kind.maker();
    add.set_span(place);
    let added = quote_spanned!(place=> __group.#add(#made));
    quote! {
        #(#conditions)*
        let __group = #added;
    }
}

/// What makes a group of a value, and of one that is shared.
fn implement(ty: &Type, added: &TokenStream) -> TokenStream {
    quote! {
        #[automatically_derived]
        #[allow(deprecated, clippy::too_many_arguments)]
        impl ::turnbuckle::server::Toolset for #ty {
            fn group(self: ::std::sync::Arc<Self>) -> ::turnbuckle::server::Group {
                let __group = ::turnbuckle::server::Group::new();
                #added
                __group
            }
        }
        #[automatically_derived]
        impl ::turnbuckle::server::IntoGroup for #ty {
            fn into_group(self) -> ::turnbuckle::server::Group {
                ::turnbuckle::server::Toolset::group(::std::sync::Arc::new(self))
            }
        }
    }
}
