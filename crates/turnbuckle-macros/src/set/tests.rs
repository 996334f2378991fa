//! What blocks are refused, and what the others become.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{File, parse2};

use super::expand;

/// The expansion, which is valid syntax, without spaces.
fn expanded(item: TokenStream) -> String {
    let file: File = parse2(expand(quote!(), item)).expect("an expansion is a list of items");
    file.into_token_stream().to_string().replace(' ', "")
}

/// The errors in an expansion, and how many there are.
#[track_caller]
fn refused(attribute: TokenStream, item: TokenStream, expected: &[&str]) {
    let code = expand(attribute, item).to_string();
    for message in expected {
        let message = message.into_token_stream().to_string();
        assert!(code.contains(&message), "no {message} in {code}");
    }
    assert_eq!(code.matches("compile_error").count(), expected.len(), "{code}");
}

#[test]
fn methods_are_added_to_a_group() {
    let code = expanded(quote! {
        impl Notes {
            /// Write a note.
            #[tool(read_only = false)]
            async fn add(&self, /** The text. */ text: String, ctx: Ctx) -> Vec<Self> { unreachable!() }
            #[turnbuckle::prompt]
            #[cfg(unix)]
            fn summarise(&self) -> String { unreachable!() }
            #[resource("note://{id}")]
            async fn note(&self, #[arg(complete = Self::ids)] id: u32) -> String { unreachable!() }
            async fn ids(&self, typed: Typed) -> Vec<String> { unreachable!() }
            fn other(&mut self) {}
        }
    });
    for part in [
        // The methods keep what is not for the macros.
        "implNotes{#[doc=r\"Writeanote.\"]asyncfnadd(&self,text:String,ctx:Ctx)->Vec<Self>{unreachable!()}\
         #[cfg(unix)]fnsummarise(&self)->String{unreachable!()}asyncfnnote(&self,id:u32)->",
        "fnother(&mutself){}",
        "impl::turnbuckle::server::ToolsetforNotes{fngroup(self:::std::sync::Arc<Self>)->",
        "let__group=__group.tool({",
        "fn__call(__this:::std::sync::Arc<Notes>,__argument0:String,__argument1:Ctx)->\
         impl::core::future::Future<Output=Vec<Notes>>",
        "asyncmove{<Notes>::add(&*__this,__argument0,__argument1).await}",
        "__register::<String,Ctx,Vec<Notes>,_>(move|__argument0,__argument1|\
         __call(::std::sync::Arc::clone(&__this),__argument0,__argument1))\
         .description(\"Writeanote.\")",
        "#[cfg(unix)]let__group=__group.prompt({",
        "fn__call(__this:::std::sync::Arc<Notes>,)->String{<Notes>::summarise(&*__this,)}",
        "let__group=__group.template({",
        ".complete(\"id\",{let__this=::std::sync::Arc::clone(&self);move|__argument0:Typed|{",
        "asyncmove{<Notes>::ids(&*__this,__argument0).await}",
        "impl::turnbuckle::server::IntoGroupforNotes{",
    ] {
        assert!(code.contains(part), "no {part} in {code}");
    }
}

#[test]
fn a_function_that_is_no_method_of_the_block_is_named_as_it_is() {
    let code = expanded(quote! {
        impl Notes {
            #[prompt]
            async fn review(
                &self,
                #[arg(complete = Self::languages)] language: String,
                #[arg(complete = other::styles)] style: String,
            ) -> String { unreachable!() }
            async fn languages(typed: Typed) -> Vec<String> { unreachable!() }
        }
    });
    let part = ".complete(\"language\",Self::languages).complete(\"style\",other::styles)";
    assert!(code.contains(part), "no {part} in {code}");
}

#[test]
fn a_method_shares_the_value() {
    refused(
        quote!(),
        quote! {
            impl Notes {
                #[tool]
                async fn clear() {}
                #[tool]
                async fn add(text: String) {}
                #[prompt]
                async fn change(&mut self) {}
                #[resource("note://all")]
                async fn spend(self) {}
                #[resource("note://shared")]
                async fn shared(self: Arc<Self>) {}
            }
        },
        &[
            "a tool of a set shares its value: write `clear(&self)`",
            "a tool of a set shares its value: write `add(&self, …)`",
            "calls run at the same time and share the value: take `&self`, and put what changes \
             into a `Mutex`",
            "all calls share the value: take `&self`",
            "all calls share the value: take `&self`",
        ],
    );
}

#[test]
fn blocks_that_are_no_set_are_refused() {
    refused(
        quote!(prefix = "notes"),
        quote! { impl Notes { fn add(&self) {} } },
        &[
            "`#[tools]` has no options: those of a tool stand in its `#[tool(…)]`",
            "nothing in here is offered: put `#[tool]`, `#[prompt]` or `#[resource(\"…\")]` on a \
             method that takes `&self`",
        ],
    );
    refused(
        quote!(),
        quote! { impl<S: Store> Notes<S> { #[tool] async fn add(&self) {} } },
        &["a set belongs to one type: write `impl` without `<S>`, for a type without \
           parameters, such as `Notes<Memory>`"],
    );
    refused(
        quote!(),
        quote! { impl Store for Notes { #[tool] async fn add(&self) {} } },
        &["`#[tools]` goes on the type's own methods: write `impl Notes` without a trait"],
    );
    refused(quote!(), quote! { struct Notes; }, &[super::NOT_AN_IMPL]);
}

#[test]
fn what_is_wrong_with_a_method_is_told_with_the_others() {
    refused(
        quote!(),
        quote! {
            impl Notes {
                #[tool]
                #[prompt]
                async fn two(&self) {}
                #[tool = "add"]
                async fn add(&self, text: &str) {}
                #[resource]
                async fn all(&self) {}
                #[prompt]
                async fn review(&self, #[arg(complete = Self::ids)] id: String) {}
                fn ids(&self) -> Vec<String> { unreachable!() }
            }
        },
        &[
            "a method is one thing: leave one of the attributes",
            "write `#[tool]` or `#[tool(…)]`",
            "a tool's arguments are owned: take `String` instead of `&str`",
            "say first where the resource is: `#[resource(\"demo://readme\")]`",
            "`ids` has to be async: `async fn ids(…)`",
        ],
    );
}
