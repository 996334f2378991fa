//! Owns: the code that a tool's function becomes. Does not own: whether it can be one.
//!
//! Spans decide where the compiler points. The function keeps its own; the field of an argument
//! has those of its type, the registration those of the reply, and the future those of the name.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Ident, Type, Visibility, ext::IdentExt, spanned::Spanned};

use super::{
    docs,
    options::Options,
    parse::{Function, Role},
};

/// The value that has the function's name, and in a block of their own the function and what
/// makes the value a tool.
pub(super) fn expand(options: &Options, function: &Function) -> TokenStream {
    let Function { inner, visibility, conditions, documentation, .. } = function;
    let attributes: Vec<Attribute> = conditions.iter().chain(documentation).cloned().collect();
    let value = value(visibility, &inner.sig.ident, &attributes);
    let parts = Parts::of(function);
    let (arguments, calls) = (parts.arguments_struct(), parts.calls());
    let (deref, into_tool) = (parts.deref(), parts.tool_impl(options));
    quote! {
        #value
        #(#conditions)*
        #[allow(deprecated, clippy::too_many_arguments)]
        const _: () = {
            #inner
            #arguments
            #calls
            #deref
            #into_tool
        };
    }
}

/// The unit struct that has the function's name.
pub(super) fn value(
    visibility: &Visibility,
    ident: &Ident,
    attributes: &[Attribute],
) -> TokenStream {
    quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #visibility struct #ident;
    }
}

/// What the pieces of the expansion are written from.
struct Parts<'a> {
    function: &'a Function,
    /// A variable for each argument, in order.
    variables: Vec<Ident>,
    types: Vec<&'a Type>,
    /// What the function itself returns, to its callers: the reply, or a future of it.
    returned: TokenStream,
}

impl<'a> Parts<'a> {
    fn of(function: &'a Function) -> Parts<'a> {
        let variables =
            (0..function.arguments.len()).map(|index| format_ident!("__argument{index}")).collect();
        let types = function.arguments.iter().map(|argument| &argument.ty).collect();
        let reply = &function.reply;
        let returned = match function.inner.sig.asyncness {
            // The one place where a future that is not `Send` is noticed.
            Some(_) => quote_spanned! {function.inner.sig.ident.span()=>
                impl ::core::future::Future<Output = #reply> + ::core::marker::Send + 'static
            },
            None => reply.to_token_stream(),
        };
        Parts { function, variables, types, returned }
    }

    fn plain(&self) -> impl Iterator<Item = (&'a Ident, &'a [Attribute], &'a Type, &Ident)> {
        self.function.arguments.iter().zip(&self.variables).filter_map(|(argument, variable)| {
            match &argument.role {
                Role::Plain(name, attributes) => {
                    Some((name, &**attributes, &argument.ty, variable))
                }
                Role::Extractor => None,
            }
        })
    }

    fn has_plain(&self) -> bool {
        self.plain().next().is_some()
    }

    /// The struct that the plain arguments are decoded into.
    fn arguments_struct(&self) -> TokenStream {
        if !self.has_plain() {
            return TokenStream::new();
        }
        let fields = self.plain().map(|(name, attributes, ty, _)| {
            // Where a trait is missing, the derives point at the field's type.
            quote_spanned!(ty.span()=> #(#attributes)* #name: #ty)
        });
        quote! {
            #[derive(
                ::turnbuckle::__private::serde::Deserialize,
                ::turnbuckle::__private::schemars::JsonSchema,
            )]
            #[serde(crate = "::turnbuckle::__private::serde", expecting = "an object")]
            #[schemars(crate = "::turnbuckle::__private::schemars")]
            struct __Arguments { #(#fields),* }
        }
    }

    /// The types that the handler takes: the plain arguments as one, then the extractors.
    fn handler_types(&self) -> Vec<TokenStream> {
        let plain = self.has_plain().then(|| quote!(::turnbuckle::Args<__Arguments>));
        plain.into_iter().chain(self.extractors().map(|(_, ty)| ty.to_token_stream())).collect()
    }

    fn extractors(&self) -> impl Iterator<Item = (&Ident, &'a Type)> {
        self.function.arguments.iter().zip(&self.variables).filter_map(|(argument, variable)| {
            matches!(argument.role, Role::Extractor).then_some((variable, &argument.ty))
        })
    }

    /// The function as its callers see it, and as the handler of the tool.
    fn calls(&self) -> TokenStream {
        let Parts { function, variables, types, returned } = self;
        let ident = &function.inner.sig.ident;
        let call = quote_spanned!(ident.span()=> #ident(#(#variables),*));
        let (extracted, extractors): (Vec<_>, Vec<_>) = self.extractors().unzip();
        let (names, fields): (Vec<_>, Vec<_>) =
            self.plain().map(|(name, _, _, variable)| (name, variable)).unzip();
        let plain = self.has_plain().then(|| {
            quote! {
                ::turnbuckle::Args(__Arguments { #(#names: #fields),* }):
                    ::turnbuckle::Args<__Arguments>,
            }
        });
        quote! {
            fn __call(#(#variables: #types),*) -> #returned {
                #call
            }
            fn __handle(#plain #(#extracted: #extractors),*) -> #returned {
                __call(#(#variables),*)
            }
        }
    }

    /// Lets the value be called as the function was.
    fn deref(&self) -> TokenStream {
        let Parts { function, variables, types, .. } = self;
        let (ident, reply) = (&function.inner.sig.ident, &function.reply);
        let (returned, call) = match function.inner.sig.asyncness {
            Some(_) => (
                quote! {
                    ::core::pin::Pin<::std::boxed::Box<
                        dyn ::core::future::Future<Output = #reply> + ::core::marker::Send
                    >>
                },
                quote!(|#(#variables),*| ::std::boxed::Box::pin(__call(#(#variables),*))),
            ),
            None => (reply.to_token_stream(), quote!(__call)),
        };
        quote! {
            #[automatically_derived]
            impl ::core::ops::Deref for #ident {
                type Target = fn(#(#types),*) -> #returned;
                fn deref(&self) -> &Self::Target {
                    const CALL: fn(#(#types),*) -> #returned = #call;
                    &CALL
                }
            }
        }
    }

    fn tool_impl(&self, options: &Options) -> TokenStream {
        let Function { inner, documentation, reply, .. } = self.function;
        let ident = &inner.sig.ident;
        let name = match &options.name {
            Some(name) => name.to_token_stream(),
            None => ident.unraw().to_string().into_token_stream(),
        };
        let make = match inner.sig.asyncness {
            Some(_) => quote!(::turnbuckle::tool),
            None => quote!(::turnbuckle::blocking_tool),
        };
        // With its types spelled out there is one way left to be a handler, so that the compiler
        // says which type is wrong and not that none of nine ways fits.
        let types = self.handler_types();
        let handler = quote_spanned!(spot(reply, ident)=> __handle);
        let description = match &options.description {
            Some(description) => Some(description.to_token_stream()),
            None => docs::text(documentation),
        };
        let description = description.map(|text| quote!(let tool = tool.description(#text);));
        let title = options.title.as_ref().map(|title| quote!(let tool = tool.title(#title);));
        let annotations = annotations(options);
        quote! {
            #[automatically_derived]
            impl ::turnbuckle::IntoTool for #ident {
                fn into_tool(self) -> ::turnbuckle::Tool {
                    let tool = #make::<(#reply, #(#types,)*), _>(#name, #handler);
                    #description
                    #title
                    #annotations
                    tool
                }
            }
        }
    }
}

fn annotations(options: &Options) -> Option<TokenStream> {
    if options.hints.is_empty() {
        return None;
    }
    let hints = options.hints.iter().map(|(field, value)| {
        let field = Ident::new(field, Span::call_site());
        quote!(annotations.#field = ::core::option::Option::Some(#value);)
    });
    Some(quote! {
        let mut annotations = ::turnbuckle::types::ToolAnnotations::new();
        #(#hints)*
        let tool = tool.annotations(annotations);
    })
}

/// Where to point when the reply is wrong.
fn spot(reply: &Type, ident: &Ident) -> Span {
    match reply {
        // Perhaps written by nobody.
        Type::Tuple(unit) if unit.elems.is_empty() => ident.span(),
        other => other.span(),
    }
}
