//! What functions are refused, and what the others become.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{File, Item, ItemFn, parse_quote, parse2};

use super::{
    Marker, Offer,
    parse::{Function, Standing},
};
use crate::kind::Kind;

fn errors(mut function: ItemFn) -> Vec<String> {
    let ItemFn { attrs, sig, .. } = &mut function;
    match Function::parse(Kind::Tool, Standing::Free, attrs, sig) {
        Ok(_) => Vec::new(),
        Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
    }
}

fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    super::expand(Kind::Tool, attribute, item)
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
            "a tool with `self` belongs to a set: put `#[tools]` on the `impl` block; or take what is \
             shared as `State<S>` instead of `self`",
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
            "a call gives arguments by name: write `name: (i64, i64)`, and take it apart in the body; or \
             put `#[extract]` before it if it is an extractor",
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
             `#[arg(…)]`, `#[extract]`, `#[serde(…)]` and `#[schemars(…)]`",
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
                fn add(typed: Typed) {}
            ),
            "a tool is given no `Typed`: take it in a function that completes an argument, as in \
             `#[arg(complete = function)]`",
        ),
        (
            parse_quote!(
                fn add(#[extract(always)] tenant: Tenant) {}
            ),
            "`#[extract]` stands alone",
        ),
        (
            parse_quote!(
                fn add(
                    #[arg(title = "Who")]
                    #[extract]
                    tenant: Tenant,
                ) {
                }
            ),
            "`Tenant` is no part of the tool's input: `#[arg]` says nothing here",
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
        "pub(crate)structadd;#[cfg(unix)]#[allow(clippy",
        // The function keeps what is not for the macro, and nothing else.
        "const_:()={#[tracing::instrument]asyncfnadd(#[allow(unused)]muta:i64,ctx:turnbuckle::Ctx,r#type:Option<i64>,)->i64{a}",
        "struct__Arguments<__T2>{#[doc=\"Thefirst.\"]#[schemars(range(min=1))]a:i64,r#type:__T2}",
        "fn__register<__T1:::turnbuckle::server::FromCall,__T2:__Argument+",
        "::turnbuckle::tool::<(__R,::turnbuckle::Args<__Arguments<__T2>>,__T1,),_>(\"add\",",
        "move|::turnbuckle::Args(__Arguments{a:__argument0,r#type:__argument2}):::turnbuckle::Args<__Arguments<__T2>>,__argument1:__T1|{__function(__argument0,__argument1,__argument2)}",
        "__register::<turnbuckle::Ctx,Option<i64>,i64,_>(__call).description(\"Add.\")",
    ] {
        assert!(code.contains(part), "no {part} in {code}");
    }
    assert!(!code.contains("ToolAnnotations"), "{code}");
}

#[test]
fn what_is_allowed_is_allowed_of_the_value_and_an_unused_one_may_be_expected() {
    let code = expanded(
        quote!(),
        quote! {
            #[allow(dead_code)]
            #[expect(unused, reason = "not yet")]
            #[expect(clippy::unused_async)]
            async fn add() {}
        },
    );
    for part in [
        "#[allow(dead_code)]#[expect(unused,reason=\"notyet\")]#[allow(non_camel_case_types)]",
        "const_:()={#[allow(dead_code)]#[expect(clippy::unused_async)]asyncfnadd(){}#[allow(deprecated)]const_:()={",
    ] {
        assert!(code.contains(part), "no {part} in {code}");
    }
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
        "::turnbuckle::server::blocking_tool::<(__R,__T0,),_>(\"now\",move|__argument0:__T0|",
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

fn mistakes(kind: Kind, attribute: TokenStream, mut function: ItemFn) -> Vec<String> {
    let marker = Marker { kind, options: attribute, place: Span::call_site() };
    let ItemFn { attrs, sig, .. } = &mut function;
    match Offer::parse(marker, Standing::Free, attrs, sig) {
        Ok(_) => Vec::new(),
        Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
    }
}

#[test]
fn a_type_of_ones_own_is_extracted_where_it_says_so() {
    let code = expanded(
        quote!(),
        quote!(
            async fn bill(#[extract] Tenant(name): Tenant, #[arg(min = 1)] cents: u32) {}
        ),
    );
    for part in [
        "asyncfnbill(Tenant(name):Tenant,cents:u32){}",
        "struct__Arguments{#[schemars(range(min=1,))]cents:u32}",
        "__register::<Tenant,(),_>(__call)",
    ] {
        assert!(code.contains(part), "no {part} in {code}");
    }
}

#[test]
fn a_prompt_completes_its_arguments() {
    let code = super::expand(
        Kind::Prompt,
        quote!(title = "Review", icons("https://a/1.png", "https://a/2.png")),
        quote! {
            /// Ask for a review.
            fn review(
                code: String,
                #[arg(complete = known::languages)] language: Option<String>,
                #[arg(complete = ["low", "high"])]
                #[serde(default, rename = "how-deep")]
                depth: String,
            ) -> String { code }
        },
    );
    let code = code.to_string().replace(' ', "");
    for part in [
        "impl::turnbuckle::server::IntoPromptforreview{fninto_prompt(self)->::turnbuckle::server::PromptDef{",
        "::turnbuckle::server::blocking_prompt::<(__R,",
        "__R:::turnbuckle::server::IntoReply<::turnbuckle::types::GetPromptResult>+",
        "message=\"`{Self}`can'tbeanargumentofaprompt\"",
        ".description(\"Askforareview.\").title(\"Review\").icon(::turnbuckle::types::Icon::new(\
         \"https://a/1.png\")).icon(::turnbuckle::types::Icon::new(\"https://a/2.png\"))",
        ".complete(\"language\",known::languages).complete_values(\"how-deep\",[\"low\",\"high\"])",
    ] {
        assert!(code.contains(part), "no {part} in {code}");
    }
}

#[test]
fn a_uri_with_variables_makes_a_template() {
    let function = || {
        quote!(
            async fn item(id: u32) -> String {
                id.to_string()
            }
        )
    };
    let template = quote!("demo://items/{id}", list = items, mime_type = "text/plain");
    let code = super::expand(Kind::Resource, template, function()).to_string().replace(' ', "");
    for part in [
        "impl::turnbuckle::server::IntoTemplateforitem{fninto_template(self)->::turnbuckle::server::TemplateDef{",
        "::turnbuckle::template::<",
        "(\"demo://items/{id}\",move|",
        ".name(\"item\").mime_type(\"text/plain\").list(items)",
    ] {
        assert!(code.contains(part), "no {part} in {code}");
    }
    let readme = quote!(
        async fn readme() {}
    );
    let code = super::expand(Kind::Resource, quote!("demo://readme", name = "read me"), readme);
    let code = code.to_string();
    assert!(code.contains("IntoResource for readme"), "{code}");
    assert!(code.contains(". name (\"read me\")"), "{code}");
}

#[test]
fn arguments_are_the_variables_of_the_uri() {
    let item: ItemFn = parse_quote!(
        async fn item(id: u32, ctx: Ctx) {}
    );
    let of =
        |uri: &str, function: &ItemFn| mistakes(Kind::Resource, quote!(#uri), function.clone());
    assert_eq!(of("demo://items/{id}", &item), [""; 0]);
    // A parameter of the query may be left alone.
    assert_eq!(of("demo://items/{id}{?page}", &item), [""; 0]);
    assert_eq!(
        of("demo://items", &item),
        ["`demo://items` has no variables, so that nothing gives `id`: write \
          `demo://items/{id}`, or take shared state as `State<S>`"]
    );
    assert_eq!(
        of("demo://items/{number}", &item),
        [
            "`demo://items/{number}` has no variable `id`: write `{id}` into it, or call the \
             argument `number`",
            "`{number}` of `demo://items/{number}` is taken by no argument: add `number: String` \
             to `item`",
        ]
    );
    let args = parse_quote!(
        async fn item(Args(item): Args<Item>) {}
    );
    assert_eq!(of("demo://items/{id}", &args), [""; 0]);
    assert_eq!(
        of("demo://items/", &args),
        ["`Args<Item>` is made of the variables of a URI, and `demo://items/` has none: write \
          `demo://items/{name}`"]
    );
    let raw = parse_quote!(
        async fn item(RawArgs(item): RawArgs) {}
    );
    assert_eq!(of("demo://items/{id}", &raw), [""; 0]);
    let renamed = parse_quote!(
        async fn item(
            #[serde(default, alias = "i", rename = "item-id")] a: u32,
            #[serde(rename(serialize = "x", deserialize = "item-kind"))] b: u32,
        ) {
        }
    );
    assert_eq!(of("demo://{item-id}/{item-kind}", &renamed), [""; 0]);
    let flat = parse_quote!(
        async fn item(#[serde(flatten)] item: Item) {}
    );
    assert_eq!(of("demo://{id}", &flat), [""; 0]);
}

#[test]
fn messages_name_what_was_to_be_made() {
    assert_eq!(
        mistakes(
            Kind::Prompt,
            quote!("review"),
            parse_quote!(
                async fn review<T>(code: &str) {}
            )
        ),
        [
            "write `name = \"…\"` to name the prompt",
            "a prompt has no type parameters, since a call can't choose them: write a concrete \
             type such as `String`",
            "a prompt's arguments are owned: take `String` instead of `&str`",
        ]
    );
    let code = super::expand(
        Kind::Resource,
        quote!(),
        quote!(
            async fn readme() {}
        ),
    );
    // Which of the two it was to be is not known.
    let code = code.to_string();
    assert!(code.contains("IntoResource for readme"), "{code}");
    assert!(code.contains("IntoTemplate for readme"), "{code}");
}
