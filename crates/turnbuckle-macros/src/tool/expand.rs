//! Owns: the code that a tool's function becomes. Does not own: whether it can be one.
//!
//! ```text
//! struct add;                                          // the value
//! const _: () = {
//!     async fn add(a: i64, ctx: Ctx) -> i64 { … }      // the function, untouched
//!     struct __Arguments<T> { a: T }                   // decoded from a call
//!     fn __call(a: i64, ctx: Ctx) -> impl Future<…>    // a `Send` future
//!     impl Deref for add { type Target = fn(i64, Ctx) -> Pin<Box<…>>; … }
//!     fn __register<T, C, R, F>(function: impl Fn(T, C) -> F) -> Tool {
//!         tool("add", |Args(__Arguments { a }), ctx| function(a, ctx)).description("…")
//!     }
//!     impl IntoTool for add { … __register::<i64, Ctx, i64, _>(__call) … }
//! };
//! ```
//!
//! Names that begin with `__` are not those of another tool, which no variable could have.
//!
//! Spans decide where the compiler points, so the function and every type keep their own. What a
//! type lacks is asked for in one place, the call of `__register`, whose type arguments are the
//! types as they were written: the compiler then points at the one that is wrong, once.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Ident, Type, Visibility, ext::IdentExt};

use super::{
    docs,
    options::Options,
    parse::{Function, Role},
};

/// The value that has the function's name, and in a block of their own the function and what
/// makes the value a tool.
pub(super) fn expand(options: &Options, function: &Function) -> TokenStream {
    let Function { inner, visibility, conditions, documentation, .. } = function;
    let ident = &inner.sig.ident;
    let attributes: Vec<Attribute> = conditions.iter().chain(documentation).cloned().collect();
    let value = value(visibility, ident, &attributes);
    let parts = Parts::of(function);
    let arguments = parts.arguments_struct();
    let call = parts.call();
    let deref = parts.deref();
    let register = parts.register(&name(options, ident), &details(options, function));
    let types = parts.types();
    quote! {
        #value
        #(#conditions)*
        #[allow(deprecated, clippy::too_many_arguments)]
        const _: () = {
            #inner
            #arguments
            #call
            #deref
            #register
            #[automatically_derived]
            impl ::turnbuckle::IntoTool for #ident {
                fn into_tool(self) -> ::turnbuckle::Tool {
                    __register::<#(#types),*>(__call)
                }
            }
        };
    }
}

/// The unit struct that has the function's name.
pub(super) fn value(
    visibility: &Visibility,
    ident: &Ident,
    attributes: &[Attribute],
) -> TokenStream {
    // Its span is the attribute's, so that a tool which no server offers is told of once, as a
    // function that is never used.
    quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #visibility struct #ident;
    }
}

fn name(options: &Options, ident: &Ident) -> TokenStream {
    match &options.name {
        Some(name) => name.to_token_stream(),
        None => ident.unraw().to_string().into_token_stream(),
    }
}

/// What is said of the tool besides its types: calls of the methods of `Tool`.
fn details(options: &Options, function: &Function) -> TokenStream {
    let description = match &options.description {
        Some(description) => Some(description.to_token_stream()),
        None => docs::text(&function.documentation),
    };
    let description = description.map(|text| quote!(.description(#text)));
    let title = options.title.as_ref().map(|title| quote!(.title(#title)));
    let hints = options.hints.iter().map(|(field, value)| {
        let field = Ident::new(field, Span::call_site());
        quote!(__annotations.#field = ::core::option::Option::Some(#value);)
    });
    let annotations = (!options.hints.is_empty()).then(|| {
        quote! {
            .annotations({
                let mut __annotations = ::turnbuckle::types::ToolAnnotations::new();
                #(#hints)*
                __annotations
            })
        }
    });
    quote!(#description #title #annotations)
}

/// What the pieces of the expansion are written from.
struct Parts<'a> {
    function: &'a Function,
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
    fn of(function: &'a Function) -> Parts<'a> {
        let arguments = function.arguments.iter().enumerate();
        let arguments = arguments.map(|(index, argument)| Part {
            ty: &argument.ty,
            variable: format_ident!("__argument{index}"),
            parameter: format_ident!("__T{index}"),
            field: match &argument.role {
                Role::Plain(name, attributes) => {
                    Some(Field { name, attributes, concrete: !attributes.iter().all(is_doc) })
                }
                Role::Extractor => None,
            },
        });
        Parts { function, arguments: arguments.collect() }
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
                message = "`{Self}` can't be an argument of a tool",
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
        let (ident, reply) = (&self.function.inner.sig.ident, &self.function.reply);
        let variables: Vec<_> = self.arguments.iter().map(|part| &part.variable).collect();
        let types = self.arguments.iter().map(|part| part.ty);
        // The one place where a future that is not `Send` is noticed: the name is shown.
        let span = ident.span();
        let result = match self.is_async() {
            true => quote_spanned! {span=>
                impl ::core::future::Future<Output = #reply> + ::core::marker::Send + 'static
            },
            false => reply.to_token_stream(),
        };
        let body = quote_spanned!(span=> #ident(#(#variables),*));
        quote! {
            fn __call(#(#variables: #types),*) -> #result {
                #body
            }
        }
    }

    /// Lets the value be called as the function was.
    fn deref(&self) -> TokenStream {
        let (ident, reply) = (&self.function.inner.sig.ident, &self.function.reply);
        let variables: Vec<_> = self.arguments.iter().map(|part| &part.variable).collect();
        let types: Vec<_> = self.arguments.iter().map(|part| part.ty).collect();
        let (result, call) = match self.is_async() {
            true => (
                quote! {
                    ::core::pin::Pin<::std::boxed::Box<
                        dyn ::core::future::Future<Output = #reply> + ::core::marker::Send
                    >>
                },
                quote!(|#(#variables),*| ::std::boxed::Box::pin(__call(#(#variables),*))),
            ),
            false => (reply.to_token_stream(), quote!(__call)),
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

    /// The function that makes the tool, for any types that are fit for it.
    fn register(&self, name: &TokenStream, details: &TokenStream) -> TokenStream {
        let parameters = self.arguments.iter().filter_map(|part| {
            let parameter = &part.parameter;
            match &part.field {
                None => Some(quote!(#parameter: ::turnbuckle::FromCall)),
                Some(Field { concrete: true, .. }) => None,
                Some(_) => Some(quote!(#parameter: __Argument + ::core::marker::Send + 'static)),
            }
        });
        let inputs: Vec<_> = self.arguments.iter().map(Part::generic_type).collect();
        let variables = self.arguments.iter().map(|part| &part.variable);
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
        let (result, future, make) = match self.is_async() {
            true => (
                quote!(__F),
                quote!(__F: ::core::future::Future<Output = __R> + ::core::marker::Send + 'static),
                quote!(::turnbuckle::tool),
            ),
            false => (quote!(__R), quote!(), quote!(::turnbuckle::blocking_tool)),
        };
        quote! {
            fn __register<#(#parameters,)* __R: ::turnbuckle::IntoReply + 'static, #future>(
                __function: impl ::core::ops::Fn(#(#inputs),*) -> #result
                    + ::core::marker::Send + ::core::marker::Sync + 'static,
            ) -> ::turnbuckle::Tool {
                #make::<(__R, #decoded #(#extractors,)*), _>(
                    #name,
                    move |#pattern #decoded #(#extracted: #extractors),*| {
                        __function(#(#variables),*)
                    },
                )
                #details
            }
        }
    }

    /// The types that `__register` is called with.
    fn types(&self) -> Vec<TokenStream> {
        let shown = self.arguments.iter().filter(|part| !part.is_concrete());
        let mut types: Vec<_> = shown.map(|part| part.ty.to_token_stream()).collect();
        types.push(self.function.reply.to_token_stream());
        if self.is_async() {
            types.push(quote!(_));
        }
        types
    }

    fn is_async(&self) -> bool {
        self.function.inner.sig.asyncness.is_some()
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
