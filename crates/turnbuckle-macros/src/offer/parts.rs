//! Owns: the pieces of an expansion that free functions and methods have alike.
//! Does not own: how they are put together.
//!
//! Spans decide where the compiler points, so the function and every type keep their own. What a
//! type lacks is asked for in one place, the call of `__register`, whose type arguments are the
//! types as they were written: the compiler then points at the one that is wrong, once.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Ident, Type};

use super::{
    Offer,
    details::details,
    parse::{Flavour, Function, Role},
};
use crate::{docs, set::Owner};

/// What the pieces of the expansion are written from.
pub(crate) struct Parts<'a> {
    offer: &'a Offer,
    function: &'a Function,
    /// Whose method the function is, if it is one.
    owner: Option<&'a Owner>,
    arguments: Vec<Part<'a>>,
}

/// One argument.
struct Part<'a> {
    ty: &'a Type,
    /// The variable that holds it.
    variable: Ident,
    /// The parameter of `__register` that stands for its type.
    parameter: Ident,
    /// Its field, if it has one.
    field: Option<Field<'a>>,
}

struct Field<'a> {
    name: &'a Ident,
    attributes: &'a [Attribute],
    /// The field has the type itself, since attributes such as `default = "one"` need to know it.
    concrete: bool,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(offer: &'a Offer, owner: Option<&'a Owner>) -> Parts<'a> {
        let function = &offer.function;
        let arguments = function.arguments.iter().enumerate();
        let arguments = arguments.map(|(index, argument)| Part {
            ty: &argument.ty,
            variable: format_ident!("__argument{index}"),
            parameter: format_ident!("__T{index}"),
            field: match &argument.role {
                Role::Plain(plain) => Some(Field {
                    name: &plain.name,
                    attributes: &plain.attributes,
                    concrete: !plain.attributes.iter().all(is_doc),
                }),
                Role::Extractor(_) => None,
            },
        });
        Parts { offer, function, owner, arguments: arguments.collect() }
    }

    /// What has to be declared before [`Parts::made`].
    pub(crate) fn items(&self) -> TokenStream {
        let (arguments, call) = (self.arguments_struct(), self.call());
        let register = self.register();
        quote!(#arguments #call #register)
    }

    /// The offer, made of something that can be called as `__call`, but without an owner.
    pub(crate) fn made(&self, function: &TokenStream) -> TokenStream {
        let types = self.types();
        let details = details(self.offer, self.owner);
        quote!(__register::<#(#types),*>(#function) #details)
    }

    /// The variables that hold the arguments.
    pub(crate) fn variables(&self) -> Vec<&Ident> {
        self.arguments.iter().map(|part| &part.variable).collect()
    }

    fn fields(&self) -> impl Iterator<Item = (&Part<'a>, &Field<'a>)> {
        self.arguments.iter().filter_map(|part| Some((part, part.field.as_ref()?)))
    }

    /// The parameters of the struct of arguments.
    fn parameters(&self) -> Vec<&Ident> {
        let generic = self.fields().filter(|(_, field)| !field.concrete);
        generic.map(|(part, _)| &part.parameter).collect()
    }

    /// The struct that the plain arguments are decoded into.
    ///
    /// It is generic, so that its derives are right whatever the types are, and have nothing to
    /// say of a type that lacks something.
    fn arguments_struct(&self) -> Option<TokenStream> {
        self.fields().next()?;
        let parameters = self.parameters();
        let message =
            format!("`{{Self}}` can't be an argument of a {}", self.offer.options.kind.word());
        let fields = self.fields().map(|(part, Field { name, attributes, .. })| {
            let (ty, text) = (part.generic_type(), docs::text(attributes));
            let text = text.map(|text| quote!(#[doc = #text]));
            let others = attributes.iter().filter(|attribute| !is_doc(attribute));
            quote!(#text #(#others)* #name: #ty)
        });
        Some(quote! {
            #[derive(
                ::turnbuckle::__private::serde::Deserialize,
                ::turnbuckle::__private::schemars::JsonSchema,
            )]
            #[serde(crate = "::turnbuckle::__private::serde", expecting = "an object")]
            #[schemars(crate = "::turnbuckle::__private::schemars")]
            struct __Arguments<#(#parameters),*> { #(#fields),* }

            #[diagnostic::on_unimplemented(
                message = #message,
                label = "can't be decoded from a call, or has no schema",
                note = "each type of yours in it needs \
                        `#[derive(serde::Deserialize, schemars::JsonSchema)]`",
                note = "a type of another crate may need that crate's features `serde` and \
                        `schemars`"
            )]
            trait __Argument:
                ::turnbuckle::__private::serde::de::DeserializeOwned
                + ::turnbuckle::__private::schemars::JsonSchema
            {}
            #[diagnostic::do_not_recommend]
            impl<T> __Argument for T
            where
                T: ::turnbuckle::__private::serde::de::DeserializeOwned
                    + ::turnbuckle::__private::schemars::JsonSchema
            {}
        })
    }

    /// The function with a result that has a name, or all but one.
    fn call(&self) -> TokenStream {
        let (ident, reply) = (&self.function.ident, &self.function.reply);
        let variables = self.variables();
        let types = self.arguments.iter().map(|part| part.ty);
        // The one place where a future that is not `Send` is noticed: the name is shown.
        let span = ident.span();
        let result = match self.function.flavour {
            Flavour::Async => quote_spanned! {span=>
                impl ::core::future::Future<Output = #reply> + ::core::marker::Send + 'static
            },
            Flavour::Sync => reply.to_token_stream(),
        };
        let (this, body) = match (self.owner, self.function.flavour) {
            (None, _) => (None, quote_spanned!(span=> #ident(#(#variables),*))),
            (Some(owner), Flavour::Async) => {
                let call = owner.call(ident, &variables);
                (Some(owner.this()), quote_spanned!(span=> async move { #call.await }))
            }
            (Some(owner), Flavour::Sync) => (Some(owner.this()), owner.call(ident, &variables)),
        };
        quote! {
            fn __call(#this #(#variables: #types),*) -> #result {
                #body
            }
        }
    }

    /// Lets the value be called as the function was.
    pub(crate) fn deref(&self) -> TokenStream {
        let (ident, reply) = (&self.function.ident, &self.function.reply);
        let variables = self.variables();
        let types: Vec<_> = self.arguments.iter().map(|part| part.ty).collect();
        let (result, call) = match self.function.flavour {
            Flavour::Async => (
                quote! {
                    ::core::pin::Pin<::std::boxed::Box<
                        dyn ::core::future::Future<Output = #reply> + ::core::marker::Send
                    >>
                },
                quote!(|#(#variables),*| ::std::boxed::Box::pin(__call(#(#variables),*))),
            ),
            Flavour::Sync => (reply.to_token_stream(), quote!(__call)),
        };
        // A type that is less visible than the tool is told of here: the name is shown.
        quote_spanned! {ident.span()=>
            #[automatically_derived]
            impl ::core::ops::Deref for #ident {
                type Target = fn(#(#types),*) -> #result;
                fn deref(&self) -> &Self::Target {
                    const CALL: fn(#(#types),*) -> #result = #call;
                    &CALL
                }
            }
        }
    }

    /// The function that makes the offer, for any types that are fit for it.
    fn register(&self) -> TokenStream {
        let kind = self.offer.options.kind;
        let (key, ty, wire) = (self.offer.key(), kind.ty(), kind.result());
        let parameters = self.arguments.iter().filter_map(|part| {
            let parameter = &part.parameter;
            match &part.field {
                None => Some(quote!(#parameter: ::turnbuckle::server::FromCall)),
                Some(Field { concrete: true, .. }) => None,
                Some(_) => Some(quote!(#parameter: __Argument + ::core::marker::Send + 'static)),
            }
        });
        let inputs: Vec<_> = self.arguments.iter().map(Part::generic_type).collect();
        let variables = self.variables();
        let extractors = self.arguments.iter().filter(|part| part.field.is_none());
        let (extracted, extractors): (Vec<_>, Vec<_>) =
            extractors.map(|part| (&part.variable, &part.parameter)).unzip();
        let (names, fields): (Vec<_>, Vec<_>) =
            self.fields().map(|(part, field)| (field.name, &part.variable)).unzip();
        let (decoded, pattern) = match names.is_empty() {
            true => (None, None),
            false => {
                let generic = self.parameters();
                let decoded = quote!(::turnbuckle::Args<__Arguments<#(#generic),*>>,);
                let pattern = quote!(::turnbuckle::Args(__Arguments { #(#names: #fields),* }):);
                (Some(decoded), Some(pattern))
            }
        };
        let (result, future, make) = match self.function.flavour {
            Flavour::Async => (
                quote!(__F),
                quote!(__F: ::core::future::Future<Output = __R> + ::core::marker::Send + 'static),
                {
                    let make = kind.maker();
                    quote!(#make)
                },
            ),
            Flavour::Sync => (quote!(__R), quote!(), {
                let make = kind.blocking_maker();
                quote!(server::#make)
            }),
        };
        quote! {
            fn __register<#(#parameters,)* __R: ::turnbuckle::server::IntoReply<#wire> + 'static, #future>(
                __function: impl ::core::ops::Fn(#(#inputs),*) -> #result
                    + ::core::marker::Send + ::core::marker::Sync + 'static,
            ) -> #ty {
                ::turnbuckle::#make::<(__R, #decoded #(#extractors,)*), _>(
                    #key,
                    move |#pattern #decoded #(#extracted: #extractors),*| {
                        __function(#(#variables),*)
                    },
                )
            }
        }
    }

    /// The types that `__register` is called with.
    fn types(&self) -> Vec<TokenStream> {
        let shown = self.arguments.iter().filter(|part| !part.is_concrete());
        let mut types: Vec<_> = shown.map(|part| part.ty.to_token_stream()).collect();
        types.push(self.function.reply.to_token_stream());
        if self.function.flavour == Flavour::Async {
            types.push(quote!(_));
        }
        types
    }
}

fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

impl Part<'_> {
    fn is_concrete(&self) -> bool {
        self.field.as_ref().is_some_and(|field| field.concrete)
    }

    /// Its type within everything that is generic.
    fn generic_type(&self) -> TokenStream {
        match self.is_concrete() {
            true => self.ty.to_token_stream(),
            false => self.parameter.to_token_stream(),
        }
    }
}
