//! Owns: reading the function below an attribute, and every refusal of one that can't be offered.
//! Does not own: the options, nor what is made of the function.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{
    Attribute, Error, Expr, FnArg, Ident, LitStr, Pat, PatIdent, PatType, Receiver, ReceiverKind,
    Result, ReturnType, Signature, Type, ext::IdentExt, parse_quote, spanned::Spanned,
};

use crate::{
    argument::{Arg, Completion},
    errors::Errors,
    kind::Kind,
    types::{Extractor, Place, check, extractor, show},
};

/// A function that can be offered.
pub(crate) struct Function {
    pub(crate) ident: Ident,
    pub(crate) flavour: Flavour,
    /// Its `#[cfg]`s, which hold for everything that is made of it.
    pub(crate) conditions: Vec<Attribute>,
    /// Doc comments and what else a reader of the value should see.
    pub(crate) documentation: Vec<Attribute>,
    /// What the compiler has to say of the value, or not.
    pub(crate) lints: Vec<Attribute>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) reply: Type,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Async,
    /// Runs on a thread where it may block.
    Sync,
}

/// Where a function stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Free,
    /// In an `impl` below `#[tools]`.
    Method,
}

pub(crate) struct Argument {
    pub(crate) ty: Type,
    pub(crate) role: Role,
}

pub(crate) enum Role {
    Plain(Plain),
    Extractor(Extractor),
}

/// An argument that the caller gives.
pub(crate) struct Plain {
    pub(crate) name: Ident,
    /// The attributes of its field.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) completion: Option<Completion>,
}

impl Plain {
    /// What callers call it. `None` where it has no name of its own, as with `#[serde(flatten)]`.
    pub(crate) fn wire_name(&self) -> Option<String> {
        let mut name = Some(self.name.unraw().to_string());
        for attribute in self.attributes.iter().filter(|attribute| is(attribute, &["serde"])) {
            // What serde does not understand it says itself.
            let _ = attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("flatten") || meta.path.is_ident("skip") {
                    name = None;
                } else if meta.path.is_ident("rename") && meta.input.peek(syn::Token![=]) {
                    name = Some(meta.value()?.parse::<LitStr>()?.value());
                } else if meta.path.is_ident("rename") {
                    meta.parse_nested_meta(|inner| {
                        let given = inner.value()?.parse::<LitStr>()?.value();
                        if inner.path.is_ident("deserialize") {
                            name = Some(given);
                        }
                        Ok(())
                    })?;
                } else if meta.input.peek(syn::Token![=]) {
                    meta.value()?.parse::<Expr>()?;
                }
                Ok(())
            });
        }
        name
    }
}

impl Function {
    /// Reads a function of these attributes. What the compiler would not understand is taken from
    /// the signature.
    pub(crate) fn parse(
        kind: Kind,
        standing: Standing,
        attributes: &[Attribute],
        signature: &mut Signature,
    ) -> Result<Function> {
        let mut errors = Errors::default();
        check_signature(kind, signature, &mut errors);
        check_receiver(kind, standing, signature, &mut errors);
        let mut arguments = Vec::new();
        for input in &mut signature.inputs {
            if let FnArg::Typed(typed) = input {
                arguments.extend(argument(kind, typed, &mut errors));
            }
        }
        check_arguments(kind, &arguments, &mut errors);
        let reply: Type = match &signature.output {
            ReturnType::Default => parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        };
        check(kind, &reply, Place::Reply, &mut errors);
        let of = |names: &[&str]| {
            attributes.iter().filter(|attribute| is(attribute, names)).cloned().collect()
        };
        errors.finish(Function {
            ident: signature.ident.clone(),
            flavour: match signature.asyncness {
                Some(_) => Flavour::Async,
                None => Flavour::Sync,
            },
            conditions: of(&CONDITIONS),
            documentation: of(&DOCUMENTATION),
            lints: attributes.iter().filter(|attribute| is_lint(attribute)).cloned().collect(),
            arguments,
            reply,
        })
    }

    /// The arguments that the caller gives.
    pub(crate) fn plain(&self) -> impl Iterator<Item = &Plain> {
        self.arguments.iter().filter_map(|argument| match &argument.role {
            Role::Plain(plain) => Some(plain),
            Role::Extractor(_) => None,
        })
    }
}

const CONDITIONS: [&str; 1] = ["cfg"];
const DOCUMENTATION: [&str; 2] = ["doc", "deprecated"];

/// Whether an attribute stands on the value rather than on the function within.
pub(crate) fn belongs_to_value(attribute: &Attribute) -> bool {
    let is_expected = is(attribute, &["expect"]) && is_lint(attribute);
    is(attribute, &CONDITIONS) || is(attribute, &DOCUMENTATION) || is_expected
}

/// Whether an attribute says what the compiler has to say of the value: whatever is allowed, and
/// the expectation that nobody uses it, which the function within can't meet.
fn is_lint(attribute: &Attribute) -> bool {
    let mut is_unused = false;
    if is(attribute, &["expect"]) {
        // What else there is, the compiler reads.
        let _ = attribute.parse_nested_meta(|meta| {
            is_unused |= meta.path.is_ident("dead_code") || meta.path.is_ident("unused");
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<Expr>()?;
            }
            Ok(())
        });
    }
    is_unused || is(attribute, &["allow"])
}

fn is(attribute: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attribute.path().is_ident(name))
}

/// Takes everything from the arguments that only the macros understand.
pub(crate) fn strip(signature: &mut Signature) {
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(receiver) => receiver.attrs.clear(),
            FnArg::Typed(typed) => typed.attrs.clear(),
        }
    }
}

fn check_signature(kind: Kind, signature: &Signature, errors: &mut Errors) {
    let word = kind.word();
    let mut refuse = |span: Span, message: String| errors.push(Error::new(span, message));
    if let syn::Safety::Unsafe(keyword) = &signature.safety {
        refuse(keyword.span(), format!("a {word} can be called by anyone, so it is not `unsafe`"));
    }
    if let Some(keyword) = &signature.constness {
        refuse(keyword.span(), format!("a {word} runs when it is called: leave out `const`"));
    }
    if let Some(abi) = &signature.abi {
        refuse(abi.span(), format!("a {word} is called from Rust: leave out `extern`"));
    }
    if let Some(variadic) = &signature.variadic {
        refuse(variadic.span(), format!("a {word}'s arguments have names: take a `Vec`"));
    }
    for parameter in &signature.generics.params {
        let message = match parameter {
            syn::GenericParam::Lifetime(_) => {
                format!(
                    "a {word} borrows nothing: its arguments are owned, so it needs no lifetime"
                )
            }
            _ => format!(
                "a {word} has no type parameters, since a call can't choose them: write a \
                 concrete type such as `String`"
            ),
        };
        errors.push(Error::new_spanned(parameter, message));
    }
    if let Some(clause) = signature.generics.where_clause.as_ref()
        && signature.generics.params.is_empty()
    {
        let message = format!("a {word} is not generic: leave out `where`");
        errors.push(Error::new_spanned(clause, message));
    }
}

/// Whether the function takes `self` as it should where it stands.
fn check_receiver(kind: Kind, standing: Standing, signature: &Signature, errors: &mut Errors) {
    let word = kind.word();
    let receiver = signature.receiver();
    let error = match (standing, receiver) {
        (Standing::Free, None) => return,
        (Standing::Free, Some(receiver)) => Error::new_spanned(
            receiver,
            format!(
                "a {word} with `self` belongs to a set: put `#[tools]` on the `impl` block; or \
                 take what is shared as `State<S>` instead of `self`"
            ),
        ),
        (Standing::Method, None) => Error::new_spanned(
            &signature.ident,
            format!(
                "a {word} of a set shares its value: write `{}(&self{})`",
                signature.ident,
                if signature.inputs.is_empty() { "" } else { ", …" }
            ),
        ),
        (Standing::Method, Some(receiver)) => match misfit(receiver) {
            Some(message) => Error::new_spanned(receiver, message),
            None => return,
        },
    };
    errors.push(error);
}

/// What is wrong with a receiver that is not `&self`.
fn misfit(receiver: &Receiver) -> Option<&'static str> {
    match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => None,
        ReceiverKind::Reference(_, _, Some(_)) => Some(
            "calls run at the same time and share the value: take `&self`, and put what changes \
             into a `Mutex`",
        ),
        _ => Some("all calls share the value: take `&self`"),
    }
}

/// Reads one argument and takes from it what the function can't carry.
fn argument(kind: Kind, typed: &mut PatType, errors: &mut Errors) -> Option<Argument> {
    let custom = typed.attrs.iter().any(|attribute| is(attribute, &["extract"]));
    let provided = extractor(&typed.ty).or(custom.then_some(Extractor::Custom));
    let place = if provided.is_some() { Place::Extractor } else { Place::Plain };
    check(kind, &typed.ty, place, errors);
    let (attributes, completion) = field_attributes(kind, typed, provided, errors);
    let ty = (*typed.ty).clone();
    if let Some(provided) = provided {
        if provided == Extractor::Typed {
            let message = format!(
                "a {} is given no `{}`: take it in a function that completes an argument, as in \
                 `#[arg(complete = function)]`",
                kind.word(),
                show(&ty)
            );
            errors.push(Error::new_spanned(&ty, message));
        }
        return Some(Argument { ty, role: Role::Extractor(provided) });
    }
    match &*typed.pat {
        Pat::Ident(PatIdent { ident, subpat: None, .. }) => {
            let plain = Plain { name: ident.clone(), attributes, completion };
            Some(Argument { ty, role: Role::Plain(plain) })
        }
        pattern => {
            let ty = show(&ty);
            let message = match pattern {
                Pat::Wild(_) => format!("a call gives arguments by name: write `name: {ty}`"),
                _ => format!(
                    "a call gives arguments by name: write `name: {ty}`, and take it apart in the \
                     body; or put `#[extract]` before it if it is an extractor"
                ),
            };
            errors.push(Error::new_spanned(pattern, message));
            None
        }
    }
}

/// Sorts the attributes of an argument: those of its field are returned, lint levels stay.
fn field_attributes(
    kind: Kind,
    typed: &mut PatType,
    provided: Option<Extractor>,
    errors: &mut Errors,
) -> (Vec<Attribute>, Option<Completion>) {
    const LEVELS: [&str; 5] = ["allow", "expect", "warn", "deny", "forbid"];
    let word = kind.word();
    let mut field = Vec::new();
    let mut arg = Arg::default();
    for attribute in std::mem::take(&mut typed.attrs) {
        let name = attribute.path().to_token_stream().to_string();
        match &*name {
            "doc" if provided.is_some() => {}
            "doc" => field.push(attribute),
            "serde" | "schemars" | "arg" if provided.is_some() => errors.push(Error::new_spanned(
                &attribute,
                format!(
                    "`{}` is no part of the {word}'s input: `#[{name}]` says nothing here",
                    show(&typed.ty)
                ),
            )),
            "serde" | "schemars" => field.push(attribute),
            "arg" => arg.read(kind, &typed.ty, &attribute, errors),
            "extract" => {
                if attribute.meta.require_path_only().is_err() {
                    let message = "`#[extract]` stands alone";
                    errors.push(Error::new_spanned(&attribute, message));
                }
            }
            level if LEVELS.contains(&level) => typed.attrs.push(attribute),
            "cfg" | "cfg_attr" => errors.push(Error::new_spanned(
                &attribute,
                format!(
                    "a {word}'s arguments are always the same: put `#[{name}]` on the function"
                ),
            )),
            _ => errors.push(Error::new_spanned(
                &attribute,
                format!(
                    "`#[{name}]` means nothing on a {word}'s argument, which takes doc comments, \
                     `#[arg(…)]`, `#[extract]`, `#[serde(…)]` and `#[schemars(…)]`"
                ),
            )),
        }
    }
    field.extend(arg.attributes());
    (field, arg.complete)
}

/// What a handler can take, by the SDK's own limit.
const EXTRACTORS: usize = 8;

/// Whether the arguments go together.
fn check_arguments(kind: Kind, arguments: &[Argument], errors: &mut Errors) {
    let word = kind.word();
    let plain = arguments.iter().find_map(|argument| match &argument.role {
        Role::Plain(plain) => Some(&plain.name),
        Role::Extractor(_) => None,
    });
    let provided: Vec<(&Type, Extractor)> = arguments
        .iter()
        .filter_map(|argument| match argument.role {
            Role::Extractor(extractor) => Some((&argument.ty, extractor)),
            Role::Plain(_) => None,
        })
        .collect();
    let mut whole = provided.iter().filter(|(_, extractor)| *extractor == Extractor::Args);
    if let (Some(name), Some((args, _))) = (plain, whole.clone().next()) {
        errors.push(Error::new_spanned(
            args,
            format!(
                "`{}` is all of the {word}'s input: make `{}` one of its fields, or take all \
                 arguments plainly",
                show(args),
                name.unraw()
            ),
        ));
    }
    if let Some((second, _)) = whole.nth(1) {
        let message =
            format!("a {word} has one input: take one `Args`, of a struct with all fields");
        errors.push(Error::new_spanned(second, message));
    }
    let room = EXTRACTORS - usize::from(plain.is_some());
    if let Some((surplus, _)) = provided.get(room) {
        let message = "too many `Ctx`, `State` and the like: put several states into one struct";
        errors.push(Error::new_spanned(surplus, message));
    }
}
