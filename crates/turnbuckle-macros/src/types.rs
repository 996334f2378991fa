//! Owns: which types a handler's signature may name, and what to write instead of the others.
//! Does not own: whether they can be decoded or replied; the compiler says that.

use quote::ToTokens;
use syn::{
    Error, GenericArgument, Lifetime, PathArguments, Type, TypeFnPtr, TypeImplTrait, TypeReference,
    visit::{self, Visit},
};

use crate::{errors::Errors, kind::Kind};

/// Where a type stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Decoded from the call.
    Plain,
    /// Provided by the SDK.
    Extractor,
    Reply,
}

/// Reports everything in `ty` that can't stand in this place.
pub(crate) fn check(kind: Kind, ty: &Type, place: Place, errors: &mut Errors) {
    let word = kind.word();
    if let Type::Never(never) = ty {
        let message = format!("a {word} has to return: name the type of its reply");
        errors.push(Error::new_spanned(never, message));
    }
    Walk { word, place, errors }.visit_type(ty);
}

/// What kind of extractor `ty` is, told by its name alone: a macro sees no more.
pub(crate) fn extractor(ty: &Type) -> Option<Extractor> {
    let (name, parameters) = named(ty)?;
    match (&*name, &*parameters) {
        ("Args", [_]) => Some(Extractor::Args),
        ("RawArgs", []) => Some(Extractor::RawArgs),
        ("Typed", []) => Some(Extractor::Typed),
        // `State` without a parameter is somebody's own type.
        ("State" | "Extension" | "Header" | "Asked" | "Principal", [_])
        | ("Ctx" | "Principal", []) => Some(Extractor::Other),
        ("Option", [inner]) => match named(inner)? {
            (name, parameters) if name == "Principal" && parameters.len() < 2 => {
                Some(Extractor::Other)
            }
            (name, parameters) if name == "Extension" || name == "Header" => {
                (parameters.len() == 1).then_some(Extractor::Other)
            }
            _ => None,
        },
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extractor {
    /// All arguments at once.
    Args,
    RawArgs,
    /// Only a completer is given what was typed.
    Typed,
    /// A type that says of itself with `#[extract]` that it is one.
    Custom,
    Other,
}

/// The last name in the path of a type, and the types between its brackets.
pub(crate) fn named(ty: &Type) -> Option<(String, Vec<&Type>)> {
    let path = match ty {
        Type::Path(path) => path,
        // What a `$ty:ty` of a `macro_rules!` macro stands for.
        Type::Group(group) => return named(&group.elem),
        _ => return None,
    };
    let last = path.path.segments.last()?;
    let parameters = match &last.arguments {
        PathArguments::AngleBracketed(list) => {
            let types = list.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            types.collect()
        }
        _ => Vec::new(),
    };
    Some((last.ident.to_string(), parameters))
}

/// A type as people write it.
pub(crate) fn show(tokens: impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    [
        (" < ", "<"),
        (" >", ">"),
        (" :: ", "::"),
        (":: ", "::"),
        ("& ", "&"),
        (" ,", ","),
        (" ;", ";"),
    ]
    .iter()
    .fold(text, |text, (from, to)| text.replace(from, to))
}

struct Walk<'e> {
    word: &'static str,
    place: Place,
    errors: &'e mut Errors,
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        let fixed = reference.lifetime.as_ref().is_some_and(is_static);
        if fixed && self.place != Place::Plain {
            return visit::visit_type(self, &reference.elem);
        }
        let (is, owned, word) = (show(reference), owned(&reference.elem), self.word);
        self.errors.push(Error::new_spanned(
            reference,
            match self.place {
                Place::Plain => {
                    format!("a {word}'s arguments are owned: take `{owned}` instead of `{is}`")
                }
                Place::Extractor => format!(
                    "a {word} borrows nothing from its caller: take `{owned}` or `Arc<{owned}>` \
                     instead of `{is}`"
                ),
                Place::Reply => {
                    format!("a {word}'s reply is owned: return `{owned}` instead of `{is}`")
                }
            },
        ));
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if !is_static(lifetime) {
            let word = self.word;
            let message =
                format!("a {word} borrows nothing: write `'static` instead of `{lifetime}`");
            self.errors.push(Error::new_spanned(lifetime, message));
        }
    }

    fn visit_type_impl_trait(&mut self, opaque: &'ast TypeImplTrait) {
        let (is, word) = (show(opaque), self.word);
        self.errors.push(Error::new_spanned(
            opaque,
            match self.place {
                Place::Reply => {
                    format!("name the type that the {word} returns instead of `{is}`")
                }
                _ => format!("a call is decoded into one type: name it instead of `{is}`"),
            },
        ));
    }

    /// References in there are not the handler's.
    fn visit_type_fn_ptr(&mut self, _: &'ast TypeFnPtr) {}
}

fn is_static(lifetime: &Lifetime) -> bool {
    lifetime.ident == "static"
}

/// The owned form of a type behind a reference.
fn owned(borrowed: &Type) -> String {
    const OWNED: [(&str, &str); 4] =
        [("str", "String"), ("Path", "PathBuf"), ("OsStr", "OsString"), ("CStr", "CString")];
    match borrowed {
        Type::Slice(slice) => format!("Vec<{}>", show(&slice.elem)),
        Type::TraitObject(object) => format!("Box<{}>", show(object)),
        Type::Path(path) => {
            let known = path.path.segments.last().and_then(|last| {
                OWNED.iter().find(|(borrowed, _)| last.ident == borrowed).map(|(_, owned)| owned)
            });
            known.map_or_else(|| show(path), ToString::to_string)
        }
        other => show(other),
    }
}

#[cfg(test)]
mod tests {
    use syn::{TypeGroup, parse_quote, token::Group};

    use super::*;

    fn complaint(ty: Type, place: Place) -> Option<String> {
        let mut errors = Errors::default();
        check(Kind::Tool, &ty, place, &mut errors);
        errors.finish(()).err().map(|error| error.to_string())
    }

    #[test]
    fn a_borrowed_argument_is_told_its_owned_form() {
        for (ty, advice) in [
            (parse_quote!(&str), "take `String` instead of `&str`"),
            (parse_quote!(&'static str), "take `String` instead of `&'static str`"),
            (parse_quote!(Option<&str>), "take `String` instead of `&str`"),
            (parse_quote!(&[u8]), "take `Vec<u8>` instead of `&[u8]`"),
            (parse_quote!(&std::path::Path), "take `PathBuf` instead of `&std::path::Path`"),
            (parse_quote!(&mut Vec<Point>), "take `Vec<Point>` instead of `&mut Vec<Point>`"),
            (parse_quote!(&Ctx), "take `Ctx` instead of `&Ctx`"),
        ] {
            let expected = format!("a tool's arguments are owned: {advice}");
            assert_eq!(complaint(ty, Place::Plain).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_static_may_be_provided_and_replied() {
        assert_eq!(complaint(parse_quote!(State<&'static Config>), Place::Extractor), None);
        assert_eq!(complaint(parse_quote!(&'static str), Place::Reply), None);
        assert_eq!(complaint(parse_quote!(Cow<'static, str>), Place::Plain), None);
        assert_eq!(
            complaint(parse_quote!(State<&Config>), Place::Extractor).unwrap(),
            "a tool borrows nothing from its caller: take `Config` or `Arc<Config>` instead of \
             `&Config`"
        );
        assert_eq!(
            complaint(parse_quote!(Result<&str, ToolError>), Place::Reply).unwrap(),
            "a tool's reply is owned: return `String` instead of `&str`"
        );
        assert_eq!(
            complaint(parse_quote!(Cow<'_, str>), Place::Plain).unwrap(),
            "a tool borrows nothing: write `'static` instead of `'_`"
        );
    }

    #[test]
    fn types_without_a_name_are_refused() {
        assert_eq!(
            complaint(parse_quote!(impl Into<String>), Place::Plain).unwrap(),
            "a call is decoded into one type: name it instead of `impl Into<String>`"
        );
        assert_eq!(
            complaint(parse_quote!(Result<impl IntoReply, ToolError>), Place::Reply).unwrap(),
            "name the type that the tool returns instead of `impl IntoReply`"
        );
        assert!(complaint(parse_quote!(!), Place::Reply).unwrap().contains("has to return"));
    }

    #[test]
    fn functions_keep_their_references() {
        assert_eq!(complaint(parse_quote!(State<fn(&str) -> &str>), Place::Extractor), None);
    }

    #[test]
    fn extractors_are_told_by_name_and_parameters() {
        for (ty, expected) in [
            (parse_quote!(Ctx), Some(Extractor::Other)),
            (parse_quote!(turnbuckle::Ctx), Some(Extractor::Other)),
            (parse_quote!(RawArgs), Some(Extractor::RawArgs)),
            (parse_quote!(Typed), Some(Extractor::Typed)),
            (parse_quote!(Principal), Some(Extractor::Other)),
            (parse_quote!(Principal<Claims>), Some(Extractor::Other)),
            (parse_quote!(Extension<User>), Some(Extractor::Other)),
            (parse_quote!(Header<Language>), Some(Extractor::Other)),
            (parse_quote!(Asked<Name>), Some(Extractor::Other)),
            (parse_quote!(Option<Principal>), Some(Extractor::Other)),
            (parse_quote!(std::option::Option<Extension<User>>), Some(Extractor::Other)),
            (parse_quote!(Option<turnbuckle::server::Header<Language>>), Some(Extractor::Other)),
            (parse_quote!(Extension), None),
            (parse_quote!(Option<Header>), None),
            (parse_quote!(Option<State<Db>>), None),
            (parse_quote!(State<Arc<Db>>), Some(Extractor::Other)),
            (parse_quote!(Args<Add>), Some(Extractor::Args)),
            (parse_quote!(State), None),
            (parse_quote!(Args), None),
            (parse_quote!(Option<Ctx>), None),
            (parse_quote!((Ctx, Ctx)), None),
        ] {
            assert_eq!(extractor(&ty), expected, "{}", show(&ty));
            let elem = Box::new(ty);
            let grouped =
                Type::Group(TypeGroup { attrs: Vec::new(), group_token: Group::default(), elem });
            assert_eq!(extractor(&grouped), expected, "{} of a macro", show(&grouped));
        }
    }
}
