//! Owns: what a function can be made into, and what each of these is called.
//! Does not own: how.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

/// What a function is made into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    /// A resource with one URI.
    Resource,
    /// `#[resource]` with variables in its URI.
    Template,
}

impl Kind {
    /// The kinds that have an attribute of their own.
    pub(crate) const ATTRIBUTES: [Kind; 3] = [Kind::Tool, Kind::Prompt, Kind::Resource];

    /// The attribute, which is also the word for it in messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Tool => "tool",
            Kind::Prompt => "prompt",
            Kind::Resource | Kind::Template => "resource",
        }
    }

    /// All that a function with this attribute could become.
    pub(crate) fn family(self) -> &'static [Kind] {
        match self {
            Kind::Tool => &[Kind::Tool],
            Kind::Prompt => &[Kind::Prompt],
            Kind::Resource | Kind::Template => &[Kind::Resource, Kind::Template],
        }
    }

    /// A function that carries the attribute, as an example.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Kind::Tool => "#[tool] async fn add(a: i64, b: i64) -> i64 { a + b }",
            Kind::Prompt => {
                "#[prompt] async fn review(code: String) -> String { format!(\"Review {code}\") }"
            }
            Kind::Resource | Kind::Template => {
                "#[resource(\"demo://readme\")] async fn readme() -> &'static str { \"# Read me\" }"
            }
        }
    }

    /// The function that makes one of an `async fn`: `tool`. It is also the method that adds one
    /// to a group.
    pub(crate) fn maker(self) -> Ident {
        format_ident!("{}", self.lower())
    }

    /// The function that makes one of a sync function: `blocking_tool`.
    pub(crate) fn blocking_maker(self) -> Ident {
        format_ident!("blocking_{}", self.lower())
    }

    /// Its type in the SDK: `ToolDef`.
    pub(crate) fn ty(self) -> TokenStream {
        let ident = format_ident!("{}Def", self.upper());
        quote!(::turnbuckle::server::#ident)
    }

    /// An implementation of the trait whose values can be registered as one: `IntoTool`.
    pub(crate) fn implement(self, value: &Ident, body: &TokenStream) -> TokenStream {
        let convert = format_ident!("Into{}", self.upper());
        let method = format_ident!("into_{}", self.lower());
        let ty = self.ty();
        quote! {
            #[automatically_derived]
            impl ::turnbuckle::server::#convert for #value {
                fn #method(self) -> #ty {
                    #body
                }
            }
        }
    }

    /// What its handler makes for the wire.
    pub(crate) fn result(self) -> TokenStream {
        let ident = format_ident!(
            "{}",
            match self {
                Kind::Tool => "CallToolResult",
                Kind::Prompt => "GetPromptResult",
                Kind::Resource | Kind::Template => "ReadResourceResult",
            }
        );
        quote!(::turnbuckle::types::#ident)
    }

    fn lower(self) -> &'static str {
        match self {
            Kind::Template => "template",
            other => other.word(),
        }
    }

    fn upper(self) -> &'static str {
        match self {
            Kind::Tool => "Tool",
            Kind::Prompt => "Prompt",
            Kind::Resource => "Resource",
            Kind::Template => "Template",
        }
    }
}
