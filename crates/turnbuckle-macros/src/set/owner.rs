//! Owns: the type whose methods are offered, as code that is outside its `impl` names it.
//! Does not own: what the methods offer.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Error, ExprPath, FnArg, ImplItem, ItemImpl, Signature, Type, parse2, spanned::Spanned};

use crate::{
    argument::Completion,
    errors::Errors,
    offer::{Offer, parse::Function},
};

/// A type, and those of its methods that its `impl` shows.
pub(crate) struct Owner {
    ty: Type,
    /// Those that take `self`.
    methods: Vec<Signature>,
}

impl Owner {
    pub(super) fn of(block: &ItemImpl) -> Owner {
        let methods = block.items.iter().filter_map(|item| match item {
            ImplItem::Fn(method) if method.sig.receiver().is_some() => Some(method.sig.clone()),
            _ => None,
        });
        Owner { ty: (*block.self_ty).clone(), methods: methods.collect() }
    }

    /// The argument that holds the value.
    pub(crate) fn this(&self) -> TokenStream {
        let ty = &self.ty;
        quote!(__this: ::std::sync::Arc<#ty>,)
    }

    /// The call of a method of `__this`.
    pub(crate) fn call(&self, method: &Ident, variables: &[&Ident]) -> TokenStream {
        let ty = &self.ty;
        // By its path, since `Arc` has methods of its own.
        quote_spanned!(method.span()=> <#ty>::#method(&*__this, #(#variables),*))
    }

    /// `Self::method` as a handler that has the value; `None` for any other function.
    pub(crate) fn bound(&self, path: &ExprPath) -> Option<TokenStream> {
        let method = self.method(path)?;
        let types: Vec<Type> = method
            .inputs
            .iter()
            .filter_map(|input| match input {
                FnArg::Typed(typed) => Some(self.named(&typed.ty)),
                FnArg::Receiver(_) => None,
            })
            .collect();
        let variables: Vec<Ident> =
            (0..types.len()).map(|index| format_ident!("__argument{index}")).collect();
        let call = self.call(&method.ident, &variables.iter().collect::<Vec<_>>());
        Some(quote_spanned! {path.span()=> {
            let __this = ::std::sync::Arc::clone(&self);
            move |#(#variables: #types),*| {
                let __this = ::std::sync::Arc::clone(&__this);
                async move { #call.await }
            }
        }})
    }

    /// Reports methods that complete or list, but would block.
    pub(super) fn check_handlers(&self, offer: &Offer, errors: &mut Errors) {
        let completers = offer.function.plain().filter_map(|plain| match &plain.completion {
            Some(Completion::Function(path)) => Some(path),
            _ => None,
        });
        for path in completers.chain(&offer.options.list) {
            if let Some(method) = self.method(path)
                && method.asyncness.is_none()
            {
                let message = format!("`{0}` has to be async: `async fn {0}(…)`", method.ident);
                errors.push(Error::new_spanned(path, message));
            }
        }
    }

    /// Names the type where the function says `Self`.
    pub(super) fn name_itself(&self, function: &mut Function) {
        for argument in &mut function.arguments {
            argument.ty = self.named(&argument.ty);
        }
        function.reply = self.named(&function.reply);
    }

    fn method(&self, path: &ExprPath) -> Option<&Signature> {
        let mut segments = path.path.segments.iter();
        let (first, second) = (segments.next()?, segments.next()?);
        if first.ident != "Self" || segments.next().is_some() {
            return None;
        }
        self.methods.iter().find(|method| method.ident == second.ident)
    }

    fn named(&self, ty: &Type) -> Type {
        let named = named(ty.to_token_stream(), &self.ty.to_token_stream());
        // One type in the place of another one.
        parse2(named).unwrap_or_else(|_| ty.clone())
    }
}

fn named(tokens: TokenStream, name: &TokenStream) -> TokenStream {
    let replace = |token| match token {
        TokenTree::Ident(ident) if ident == "Self" => name.clone(),
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), named(group.stream(), name));
            inner.set_span(group.span());
            TokenTree::Group(inner).into()
        }
        other => TokenStream::from(other),
    };
    tokens.into_iter().map(replace).collect()
}
