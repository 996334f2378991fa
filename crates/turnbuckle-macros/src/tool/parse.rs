//! Owns: reading the function below `#[tool]`, and every refusal of one that can't be a tool.
//! Does not own: the options, nor what is made of the function.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{
    Attribute, Error, FnArg, Ident, ItemFn, Pat, PatIdent, PatType, Result, ReturnType, Signature,
    Type, Visibility, ext::IdentExt, parse_quote, spanned::Spanned,
};

use super::types::{Extractor, Place, check, extractor, show};

/// A function that can be a tool.
pub(super) struct Function {
    /// The function without what only the macro understands.
    pub(super) inner: ItemFn,
    pub(super) visibility: Visibility,
    /// Its `#[cfg]`s, which hold for everything that is made of it.
    pub(super) conditions: Vec<Attribute>,
    /// Doc comments and what else a reader of the value should see.
    pub(super) documentation: Vec<Attribute>,
    pub(super) arguments: Vec<Argument>,
    pub(super) reply: Type,
}

pub(super) struct Argument {
    pub(super) ty: Type,
    pub(super) role: Role,
}

pub(super) enum Role {
    /// A property of the tool's input, with the attributes of its field.
    Plain(Ident, Vec<Attribute>),
    Extractor,
}

/// Mistakes, all of which are told.
#[derive(Default)]
pub(super) struct Errors(Option<Error>);

impl Errors {
    pub(super) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(super) fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}

impl Function {
    pub(super) fn parse(function: &ItemFn) -> Result<Function> {
        let mut errors = Errors::default();
        let mut inner = function.clone();
        check_signature(&inner.sig, &mut errors);
        let mut arguments = Vec::new();
        for input in &mut inner.sig.inputs {
            match input {
                FnArg::Receiver(receiver) => errors.push(Error::new_spanned(
                    receiver,
                    "a tool is a free function: take what it shares as `State<S>` instead of `self`",
                )),
                FnArg::Typed(typed) => arguments.extend(argument(typed, &mut errors)),
            }
        }
        check_arguments(&arguments, &mut errors);
        let reply: Type = match &inner.sig.output {
            ReturnType::Default => parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        };
        check(&reply, Place::Reply, &mut errors);

        let is = |names: &'static [&str]| {
            move |attribute: &Attribute| names.iter().any(|name| attribute.path().is_ident(name))
        };
        let attributes = std::mem::take(&mut inner.attrs);
        let (conditions, attributes) = split(attributes, is(&["cfg"]));
        let (documentation, attributes) = split(attributes, is(&["doc", "deprecated"]));
        inner.attrs = attributes;
        let visibility = std::mem::replace(&mut inner.vis, Visibility::Inherited);
        errors.finish(Function { inner, visibility, conditions, documentation, arguments, reply })
    }
}

/// The function with nothing on its arguments that only `#[tool]` understands.
pub(super) fn without_argument_attributes(mut function: ItemFn) -> ItemFn {
    for input in &mut function.sig.inputs {
        match input {
            FnArg::Receiver(receiver) => receiver.attrs.clear(),
            FnArg::Typed(typed) => typed.attrs.clear(),
        }
    }
    function
}

fn check_signature(signature: &Signature, errors: &mut Errors) {
    let mut refuse = |span: Span, message: &str| errors.push(Error::new(span, message));
    if let syn::Safety::Unsafe(keyword) = &signature.safety {
        refuse(keyword.span(), "a tool can be called by anyone, so it is not `unsafe`");
    }
    if let Some(keyword) = &signature.constness {
        refuse(keyword.span(), "a tool runs when it is called: leave out `const`");
    }
    if let Some(abi) = &signature.abi {
        refuse(abi.span(), "a tool is called from Rust: leave out `extern`");
    }
    if let Some(variadic) = &signature.variadic {
        refuse(variadic.span(), "a tool's arguments have names: take a `Vec`");
    }
    for parameter in &signature.generics.params {
        let message = match parameter {
            syn::GenericParam::Lifetime(_) => {
                "a tool borrows nothing: its arguments are owned, so it needs no lifetime"
            }
            _ => {
                "a tool has no type parameters, since a call can't choose them: write a concrete \
                 type such as `String`"
            }
        };
        errors.push(Error::new_spanned(parameter, message));
    }
    if let Some(clause) = signature.generics.where_clause.as_ref()
        && signature.generics.params.is_empty()
    {
        errors.push(Error::new_spanned(clause, "a tool is not generic: leave out `where`"));
    }
}

/// Reads one argument and takes from it what the inner function can't carry.
fn argument(typed: &mut PatType, errors: &mut Errors) -> Option<Argument> {
    let provided = extractor(&typed.ty);
    let place = if provided.is_some() { Place::Extractor } else { Place::Plain };
    check(&typed.ty, place, errors);
    let field = field_attributes(typed, provided, errors);
    let ty = (*typed.ty).clone();
    if provided.is_some() {
        return Some(Argument { ty, role: Role::Extractor });
    }
    match &*typed.pat {
        Pat::Ident(PatIdent { ident, subpat: None, .. }) => {
            Some(Argument { ty, role: Role::Plain(ident.clone(), field) })
        }
        pattern => {
            let ty = show(&ty);
            let message = match pattern {
                Pat::Wild(_) => format!("a call gives arguments by name: write `name: {ty}`"),
                _ => format!(
                    "a call gives arguments by name: write `name: {ty}`, and take it apart in the \
                     body"
                ),
            };
            errors.push(Error::new_spanned(pattern, message));
            None
        }
    }
}

/// Sorts the attributes of an argument: those of its field are returned, lint levels stay.
fn field_attributes(
    typed: &mut PatType,
    provided: Option<Extractor>,
    errors: &mut Errors,
) -> Vec<Attribute> {
    const LEVELS: [&str; 5] = ["allow", "expect", "warn", "deny", "forbid"];
    let mut field = Vec::new();
    for attribute in std::mem::take(&mut typed.attrs) {
        let name = attribute.path().to_token_stream().to_string();
        match &*name {
            "doc" if provided.is_some() => {}
            "doc" => field.push(attribute),
            "serde" | "schemars" if provided.is_some() => errors.push(Error::new_spanned(
                &attribute,
                format!(
                    "`{}` is no part of the tool's input: `#[{name}]` says nothing here",
                    show(&typed.ty)
                ),
            )),
            "serde" | "schemars" => field.push(attribute),
            level if LEVELS.contains(&level) => typed.attrs.push(attribute),
            "cfg" | "cfg_attr" => errors.push(Error::new_spanned(
                &attribute,
                format!("a tool's arguments are always the same: put `#[{name}]` on the function"),
            )),
            _ => errors.push(Error::new_spanned(
                &attribute,
                format!(
                    "`#[{name}]` means nothing on a tool's argument, which takes doc comments, \
                     `#[serde(…)]` and `#[schemars(…)]`"
                ),
            )),
        }
    }
    field
}

/// What a handler can take, by the SDK's own limit.
const EXTRACTORS: usize = 8;

/// Whether the arguments go together.
fn check_arguments(arguments: &[Argument], errors: &mut Errors) {
    let plain = arguments.iter().find_map(|argument| match &argument.role {
        Role::Plain(name, _) => Some(name),
        Role::Extractor => None,
    });
    let provided: Vec<&Type> = arguments
        .iter()
        .filter(|argument| matches!(argument.role, Role::Extractor))
        .map(|argument| &argument.ty)
        .collect();
    let mut whole = provided.iter().filter(|ty| extractor(ty) == Some(Extractor::Args));
    if let (Some(name), Some(args)) = (plain, whole.clone().next()) {
        errors.push(Error::new_spanned(
            args,
            format!(
                "`{}` is all of the tool's input: make `{}` one of its fields, or take all \
                 arguments plainly",
                show(args),
                name.unraw()
            ),
        ));
    }
    if let Some(second) = whole.nth(1) {
        let message = "a tool has one input: take one `Args`, of a struct with all fields";
        errors.push(Error::new_spanned(second, message));
    }
    let room = EXTRACTORS - usize::from(plain.is_some());
    if let Some(surplus) = provided.get(room) {
        let message = "too many `Ctx`, `State` and the like: put several states into one struct";
        errors.push(Error::new_spanned(surplus, message));
    }
}

fn split(
    attributes: Vec<Attribute>,
    belongs: impl Fn(&Attribute) -> bool,
) -> (Vec<Attribute>, Vec<Attribute>) {
    attributes.into_iter().partition(belongs)
}
