//! Owns: what stands in the parentheses of `#[tool(…)]`. Does not own: the function below it.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Error, Expr, ExprLit, Lit, LitBool, LitStr, Meta, Path, Result, Token,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
};

use super::parse::Errors;

/// The options of one tool.
#[derive(Default)]
pub(super) struct Options {
    pub(super) name: Option<LitStr>,
    pub(super) title: Option<LitStr>,
    /// A string literal, or a macro such as `include_str!("add.md")`.
    pub(super) description: Option<Expr>,
    /// Fields of `ToolAnnotations` and their values.
    pub(super) hints: Vec<(&'static str, bool)>,
}

/// The hints, and the fields of `ToolAnnotations` that they set.
const HINTS: [(&str, &str); 4] = [
    ("read_only", "read_only_hint"),
    ("destructive", "destructive_hint"),
    ("idempotent", "idempotent_hint"),
    ("open_world", "open_world_hint"),
];

impl Options {
    pub(super) fn parse(attribute: TokenStream) -> Result<Options> {
        let metas = metas.parse2(attribute)?;
        let mut options = Options::default();
        let mut errors = Errors::default();
        for meta in &metas {
            if let Err(error) = options.set(meta) {
                errors.push(error);
            }
        }
        errors.finish(options)
    }

    fn set(&mut self, meta: &Meta) -> Result<()> {
        let path = meta.path();
        let name = path.get_ident().map(ToString::to_string).unwrap_or_default();
        match &*name {
            "name" => once(&mut self.name, path, string(meta, &name)?),
            "title" => once(&mut self.title, path, string(meta, &name)?),
            "description" => once(&mut self.description, path, text(meta)?),
            hint => match HINTS.iter().find(|(known, _)| *known == hint) {
                Some((_, field)) => self.hint(meta, hint, field),
                None => Err(unknown(path)),
            },
        }
    }

    fn hint(&mut self, meta: &Meta, hint: &str, field: &'static str) -> Result<()> {
        let value = match meta {
            Meta::Path(_) => true,
            Meta::NameValue(pair) => match &pair.value {
                Expr::Lit(ExprLit { lit: Lit::Bool(LitBool { value, .. }), .. }) => *value,
                other => return Err(Error::new_spanned(other, not_a_hint(hint))),
            },
            Meta::List(list) => return Err(Error::new_spanned(list, not_a_hint(hint))),
        };
        if self.hints.iter().any(|(known, _)| *known == field) {
            return Err(twice(meta.path()));
        }
        self.hints.push((field, value));
        Ok(())
    }
}

fn metas(input: ParseStream<'_>) -> Result<Punctuated<Meta, Token![,]>> {
    if input.peek(LitStr) {
        return Err(input.error("write `name = \"…\"` to name the tool"));
    }
    Punctuated::parse_terminated(input)
}

fn once<T>(slot: &mut Option<T>, path: &Path, value: T) -> Result<()> {
    match slot.replace(value) {
        Some(_) => Err(twice(path)),
        None => Ok(()),
    }
}

fn string(meta: &Meta, name: &str) -> Result<LitStr> {
    match meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.clone()),
            other => Err(Error::new_spanned(other, not_a_string(name))),
        },
        other => Err(Error::new_spanned(other, not_a_string(name))),
    }
}

fn text(meta: &Meta) -> Result<Expr> {
    match meta {
        Meta::NameValue(pair) if matches!(pair.value, Expr::Macro(_)) => Ok(pair.value.clone()),
        other => {
            let lit = string(other, "description")?;
            Ok(Expr::Lit(ExprLit { attrs: Vec::new(), lit: Lit::Str(lit) }))
        }
    }
}

fn not_a_string(name: &str) -> String {
    format!("`{name}` is a string literal: `{name} = \"…\"`")
}

fn not_a_hint(name: &str) -> String {
    format!("`{name}` stands alone, or is `{name} = true` or `{name} = false`")
}

fn twice(path: &Path) -> Error {
    Error::new_spanned(path, format!("`{}` is given twice", path.to_token_stream()))
}

fn unknown(path: &Path) -> Error {
    let mut known = String::from("`name`, `title`, `description`");
    for (hint, _) in HINTS {
        known.push_str(&format!(", `{hint}`"));
    }
    let path_text = path.to_token_stream().to_string();
    Error::new_spanned(path, format!("`#[tool]` has no option `{path_text}`; it has {known}"))
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn errors(attribute: TokenStream) -> Vec<String> {
        match Options::parse(attribute) {
            Ok(_) => Vec::new(),
            Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
        }
    }

    #[test]
    fn every_option_is_read() {
        let options = Options::parse(quote! {
            name = "sum", title = "Sum", description = "Adds.",
            read_only, destructive = false, idempotent = true, open_world,
        });
        let options = options.unwrap();
        assert_eq!(options.name.unwrap().value(), "sum");
        assert_eq!(options.title.unwrap().value(), "Sum");
        assert_eq!(options.description.to_token_stream().to_string(), "\"Adds.\"");
        assert_eq!(
            options.hints,
            [
                ("read_only_hint", true),
                ("destructive_hint", false),
                ("idempotent_hint", true),
                ("open_world_hint", true),
            ]
        );
    }

    #[test]
    fn no_options_are_fine() {
        let options = Options::parse(quote!()).unwrap();
        assert!(options.name.is_none() && options.hints.is_empty());
    }

    #[test]
    fn a_description_may_come_from_a_file() {
        let options = Options::parse(quote!(description = include_str!("add.md"))).unwrap();
        assert!(matches!(options.description, Some(Expr::Macro(_))));
    }

    #[test]
    fn an_unknown_option_names_the_known_ones() {
        assert_eq!(
            errors(quote!(readonly)),
            ["`#[tool]` has no option `readonly`; it has `name`, `title`, `description`, \
              `read_only`, `destructive`, `idempotent`, `open_world`"]
        );
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        assert_eq!(
            errors(quote!(
                name,
                title = 3,
                read_only = "yes",
                open_world(true),
                idempotent,
                idempotent
            )),
            [
                "`name` is a string literal: `name = \"…\"`",
                "`title` is a string literal: `title = \"…\"`",
                "`read_only` stands alone, or is `read_only = true` or `read_only = false`",
                "`open_world` stands alone, or is `open_world = true` or `open_world = false`",
                "`idempotent` is given twice",
            ]
        );
        assert_eq!(errors(quote!(name = "a", name = "b")), ["`name` is given twice"]);
    }

    #[test]
    fn a_lone_string_is_told_where_it_belongs() {
        assert_eq!(errors(quote!("add")), ["write `name = \"…\"` to name the tool"]);
    }
}
