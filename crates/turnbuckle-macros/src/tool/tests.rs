//! What functions are refused, and what the others become.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{File, Item, ItemFn, parse_quote, parse2};

use super::{expand, parse::Function};

fn errors(function: ItemFn) -> Vec<String> {
    match Function::parse(&function) {
        Ok(_) => Vec::new(),
        Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
    }
}

/// The expansion, which is valid syntax, without spaces.
fn expanded(attribute: TokenStream, item: TokenStream) -> String {
    let file: File = parse2(expand(attribute, item)).expect("an expansion is a list of items");
    file.into_token_stream().to_string().replace(' ', "")
}

#[test]
fn a_plain_function_is_a_tool() {
    assert_eq!(
        errors(parse_quote!(
            async fn add(a: i64, mut b: Option<i64>, ctx: Ctx) -> i64 {}
        )),
        [""; 0]
    );
    assert_eq!(
        errors(parse_quote!(
            fn nothing() {}
        )),
        [""; 0]
    );
    assert_eq!(
        errors(parse_quote!(
            async fn find(State(db): State<Db>, r#type: String) {}
        )),
        [""; 0]
    );
}

#[test]
fn what_a_call_cannot_give_is_refused() {
    for (function, expected) in [
        (
            parse_quote!(
                async fn greet(name: &str) {}
            ),
            "a tool's arguments are owned: take `String` instead of `&str`",
        ),
        (
            parse_quote!(
                async fn add(&self, a: i64) {}
            ),
            "a tool is a free function: take what it shares as `State<S>` instead of `self`",
        ),
        (
            parse_quote!(
                async fn add<T>(a: T) {}
            ),
            "a tool has no type parameters, since a call can't choose them: write a concrete type \
             such as `String`",
        ),
        (
            parse_quote!(
                async fn add<'a>(a: Cow<'static, str>) {}
            ),
            "a tool borrows nothing: its arguments are owned, so it needs no lifetime",
        ),
        (
            parse_quote!(
                async fn add((a, b): (i64, i64)) {}
            ),
            "a call gives arguments by name: write `name: (i64, i64)`, and take it apart in the body",
        ),
        (
            parse_quote!(
                async fn add(_: i64) {}
            ),
            "a call gives arguments by name: write `name: i64`",
        ),
        (
            parse_quote!(
                async unsafe fn add() {}
            ),
            "a tool can be called by anyone, so it is not `unsafe`",
        ),
        (
            parse_quote!(
                const fn add() {}
            ),
            "a tool runs when it is called: leave out `const`",
        ),
        (
            parse_quote!(
                extern "C" fn add() {}
            ),
            "a tool is called from Rust: leave out `extern`",
        ),
        (
            parse_quote!(
                fn add(#[cfg(unix)] a: i64) {}
            ),
            "a tool's arguments are always the same: put `#[cfg]` on the function",
        ),
        (
            parse_quote!(
                fn add(#[validate(range(min = 1))] a: i64) {}
            ),
            "`#[validate]` means nothing on a tool's argument, which takes doc comments, \
             `#[serde(…)]` and `#[schemars(…)]`",
        ),
        (
            parse_quote!(
                fn add(#[serde(default)] ctx: Ctx) {}
            ),
            "`Ctx` is no part of the tool's input: `#[serde]` says nothing here",
        ),
        (
            parse_quote!(
                fn add(r#type: i64, Args(rest): Args<Rest>) {}
            ),
            "`Args<Rest>` is all of the tool's input: make `type` one of its fields, or take all \
             arguments plainly",
        ),
        (
            parse_quote!(
                fn add(a: Args<A>, b: Args<B>) {}
            ),
            "a tool has one input: take one `Args`, of a struct with all fields",
        ),
    ] {
        assert_eq!(errors(function), [expected]);
    }
}

#[test]
fn every_mistake_is_told_at_once() {
    let told = errors(parse_quote!(
        async fn f<T>(self, (a, b): (T, T), c: &str) -> impl Reply {}
    ));
    assert_eq!(told.len(), 5, "{told:#?}");
}

#[test]
fn a_handler_has_a_place_for_the_plain_arguments() {
    let seven: ItemFn = parse_quote! {
        fn f(x: i64, a: Ctx, b: Ctx, c: Ctx, d: Ctx, e: Ctx, f: Ctx, g: Ctx) {}
    };
    assert_eq!(errors(seven.clone()), [""; 0]);
    let mut eight = seven;
    eight.sig.inputs.push(parse_quote!(h: Ctx));
    assert_eq!(
        errors(eight),
        ["too many `Ctx`, `State` and the like: put several states into one struct"]
    );
}

#[test]
fn plain_arguments_become_the_fields_of_a_struct() {
    let code = expanded(
        quote!(),
        quote! {
            /// Add.
            #[deprecated]
            #[cfg(unix)]
            #[tracing::instrument]
            pub(crate) async fn add(
                /// The first.
                #[schemars(range(min = 1))]
                #[allow(unused)]
                mut a: i64,
                ctx: turnbuckle::Ctx,
                r#type: Option<i64>,
            ) -> i64 { a }
        },
    );
    for part in [
        "#[doc=r\"Add.\"]#[deprecated]",
        "pub(crate)structadd;#[cfg(unix)]#[allow(deprecated",
        // The function keeps what is not for the macro, and nothing else.
        "const_:()={#[tracing::instrument]asyncfnadd(#[allow(unused)]muta:i64,ctx:turnbuckle::Ctx,r#type:Option<i64>,)->i64{a}",
        "struct__Arguments<__T2>{#[doc=\"Thefirst.\"]#[schemars(range(min=1))]a:i64,r#type:__T2}",
        "fn__register<__T1:::turnbuckle::FromCall,__T2:__Argument+",
        "::turnbuckle::tool::<(__R,::turnbuckle::Args<__Arguments<__T2>>,__T1,),_>(\"add\",",
        "move|::turnbuckle::Args(__Arguments{a:__argument0,r#type:__argument2}):::turnbuckle::Args<__Arguments<__T2>>,__argument1:__T1|{__function(__argument0,__argument1,__argument2)}",
        "__register::<turnbuckle::Ctx,Option<i64>,i64,_>(__call)",
        ").description(\"Add.\")",
    ] {
        assert!(code.contains(part), "no {part} in {code}");
    }
    assert!(!code.contains("ToolAnnotations"), "{code}");
}

#[test]
fn a_function_without_plain_arguments_has_no_struct() {
    let code = expanded(
        quote!(
            name = "now",
            title = "Now",
            description = "The time.",
            read_only,
            destructive = false
        ),
        quote! {
            /// Not this.
            fn r#type(State(clock): State<Clock>) -> String { clock.now() }
        },
    );
    assert!(!code.contains("__Arguments"), "{code}");
    for part in [
        "::turnbuckle::blocking_tool::<(__R,__T0,),_>(\"now\",move|__argument0:__T0|",
        "__register::<State<Clock>,String>(__call)",
        "typeTarget=fn(State<Clock>)->String;",
        ").description(\"Thetime.\")",
        ".title(\"Now\")",
        "__annotations.read_only_hint=::core::option::Option::Some(true);__annotations.destructive_hint=::core::option::Option::Some(false);",
    ] {
        assert!(code.contains(part), "no {part} in {code}");
    }
}

#[test]
fn a_raw_name_is_told_without_its_prefix() {
    let code = expanded(
        quote!(),
        quote!(
            async fn r#type() {}
        ),
    );
    assert!(code.contains("::turnbuckle::tool::<(__R,),_>(\"type\",move||"), "{code}");
}

#[test]
fn a_refused_function_still_is_a_value() {
    let code = expanded(
        quote!(wrong),
        quote!(
            pub async fn greet(name: &str) {}
        ),
    );
    assert_eq!(code.matches("compile_error!").count(), 2, "{code}");
    for part in ["pubstructgreet;", "pubasyncfngreet(name:&str){}", "IntoToolforgreet"] {
        assert!(code.contains(part), "no {part} in {code}");
    }
}

#[test]
fn a_refused_method_stays_a_method() {
    let items = expand(
        quote!(),
        quote!(
            async fn add(&self, #[doc = "A."] a: i64) {}
        ),
    );
    let block: Item = parse_quote!(impl Calculator { #items });
    let code = block.into_token_stream().to_string().replace(' ', "");
    assert!(code.contains("asyncfnadd(&self,a:i64){}"), "{code}");
}

#[test]
fn something_else_than_a_function_stays_what_it_is() {
    let code = expanded(
        quote!(),
        quote!(
            struct Calculator;
        ),
    );
    assert!(code.contains("`#[tool]`goesonafunction"), "{code}");
    assert!(code.ends_with("structCalculator;"), "{code}");
}
