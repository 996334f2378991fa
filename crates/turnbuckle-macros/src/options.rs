//! Owns: what stands in the parentheses of `#[tool(…)]`, `#[prompt(…)]` and `#[resource(…)]`.
//! Does not own: the function below it.

use proc_macro2::Span;
use syn::{
    Error, Expr, ExprLit, ExprPath, Lit, LitBool, LitStr, Meta, Result, Token,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
};

use crate::{
    errors::Errors,
    kind::Kind,
    meta::{function, name, once, string, strings, twice, unknown, value},
    offer::Marker,
    uri,
};

/// The options of one function.
pub(crate) struct Options {
    /// What the function becomes; a URI with variables makes a template of a resource.
    pub(crate) kind: Kind,
    pub(crate) uri: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    /// A string literal, or a macro such as `include_str!("add.md")`.
    pub(crate) description: Option<Expr>,
    pub(crate) mime_type: Option<LitStr>,
    pub(crate) icons: Vec<LitStr>,
    /// What a token must be good for.
    pub(crate) scopes: Option<Vec<LitStr>>,
    /// What lists the members of a template.
    pub(crate) list: Option<ExprPath>,
    /// Who a resource is for.
    pub(crate) audience: Option<Vec<LitStr>>,
    /// How much it matters, from 0 to 1.
    pub(crate) priority: Option<Expr>,
    /// When it was changed.
    pub(crate) last_modified: Option<LitStr>,
    /// Fields of `ToolAnnotations` and their values.
    pub(crate) hints: Vec<(&'static str, bool)>,
}

/// The options that are not hints, and who has them.
const NAMES: [(&str, &[Kind]); 11] = [
    ("name", &Kind::ATTRIBUTES),
    ("title", &Kind::ATTRIBUTES),
    ("description", &Kind::ATTRIBUTES),
    ("icon", &Kind::ATTRIBUTES),
    ("icons", &Kind::ATTRIBUTES),
    ("scopes", &Kind::ATTRIBUTES),
    ("mime_type", &[Kind::Resource]),
    ("list", &[Kind::Resource]),
    ("audience", &[Kind::Resource]),
    ("priority", &[Kind::Resource]),
    ("last_modified", &[Kind::Resource]),
];

/// The hints of tools, and the fields of `ToolAnnotations` that they set.
const HINTS: [(&str, &str); 4] = [
    ("read_only", "read_only_hint"),
    ("destructive", "destructive_hint"),
    ("idempotent", "idempotent_hint"),
    ("open_world", "open_world_hint"),
];

impl Options {
    /// Reads the options of an attribute.
    pub(crate) fn parse(marker: Marker) -> Result<Options> {
        let Marker { kind, options, place } = marker;
        let (uri, metas) = (|input: ParseStream<'_>| parts(kind, place, input)).parse2(options)?;
        let mut errors = Errors::default();
        let has_variables = uri.as_ref().is_some_and(|uri| uri.value().contains('{'));
        if let Some(uri) = &uri {
            errors.take(uri::check_text(uri));
        }
        let mut options = Options {
            kind: if has_variables { Kind::Template } else { kind },
            uri,
            name: None,
            title: None,
            description: None,
            mime_type: None,
            icons: Vec::new(),
            scopes: None,
            list: None,
            audience: None,
            priority: None,
            last_modified: None,
            hints: Vec::new(),
        };
        for meta in &metas {
            errors.take(options.set(kind, meta));
        }
        errors.finish(options)
    }

    fn set(&mut self, kind: Kind, meta: &Meta) -> Result<()> {
        let option = name(meta);
        if !names(kind).any(|known| known == option) {
            return Err(unknown(kind.word(), meta.path(), names(kind)));
        }
        match &*option {
            "name" => once(&mut self.name, meta, string(meta)?),
            "title" => once(&mut self.title, meta, string(meta)?),
            "description" => once(&mut self.description, meta, text(meta)?),
            "mime_type" => once(&mut self.mime_type, meta, string(meta)?),
            "icon" | "icons" => self.icons(meta, &option),
            "scopes" => once(&mut self.scopes, meta, strings(meta)?),
            "list" => self.list(meta),
            "audience" => once(&mut self.audience, meta, audience(meta)?),
            "priority" => once(&mut self.priority, meta, priority(meta)?),
            "last_modified" => once(&mut self.last_modified, meta, string(meta)?),
            hint => self.hint(meta, hint),
        }
    }

    fn icons(&mut self, meta: &Meta, option: &str) -> Result<()> {
        if !self.icons.is_empty() {
            let message = "icons are given once: `icons(\"https://…\", \"https://…\")`";
            return Err(Error::new_spanned(meta, message));
        }
        if option == "icon" {
            self.icons.push(string(meta)?);
            return Ok(());
        }
        let wrong = "`icons` are string literals: `icons(\"https://…\", \"https://…\")`";
        let Meta::List(list) = meta else { return Err(Error::new_spanned(meta, wrong)) };
        let several = Punctuated::<LitStr, Token![,]>::parse_terminated;
        let icons = several.parse2(list.tokens.clone());
        let icons = icons.map_err(|_| Error::new_spanned(meta, wrong))?;
        if icons.is_empty() {
            return Err(Error::new_spanned(meta, wrong));
        }
        self.icons.extend(icons);
        Ok(())
    }

    fn list(&mut self, meta: &Meta) -> Result<()> {
        if self.kind != Kind::Template {
            let message = "`list` lists the members of a family: the URI needs a variable, as in \
                           `demo://items/{id}`";
            return Err(Error::new_spanned(meta, message));
        }
        once(&mut self.list, meta, function(meta)?)
    }

    fn hint(&mut self, meta: &Meta, hint: &str) -> Result<()> {
        let wrong = || format!("`{hint}` stands alone, or is `{hint} = true` or `{hint} = false`");
        let given = match (meta, value(meta)) {
            (Meta::Path(_), _) => true,
            (_, Some(Expr::Lit(ExprLit { lit: Lit::Bool(LitBool { value, .. }), .. }))) => *value,
            (_, Some(other)) => return Err(Error::new_spanned(other, wrong())),
            (other, None) => return Err(Error::new_spanned(other, wrong())),
        };
        let field = HINTS.iter().find(|(known, _)| *known == hint).map(|(_, field)| *field);
        if let Some(field) = field {
            if self.hints.iter().any(|(known, _)| *known == field) {
                return Err(twice(meta.path()));
            }
            self.hints.push((field, given));
        }
        Ok(())
    }
}

/// Those that a resource can be for.
fn audience(meta: &Meta) -> Result<Vec<LitStr>> {
    let roles = strings(meta)?;
    match roles.iter().find(|role| !["user", "assistant"].contains(&&*role.value())) {
        Some(other) => {
            Err(Error::new_spanned(other, "an audience is made of \"user\" and \"assistant\""))
        }
        None => Ok(roles),
    }
}

fn priority(meta: &Meta) -> Result<Expr> {
    let number = match value(meta) {
        Some(Expr::Lit(ExprLit { lit: Lit::Float(number), .. })) => number.base10_parse().ok(),
        Some(Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) => number.base10_parse().ok(),
        _ => None,
    };
    match number {
        Some(number @ 0.0..=1.0) => {
            let number: f64 = number;
            Ok(syn::parse_quote!(#number))
        }
        _ => Err(Error::new_spanned(meta, "`priority` is a number from 0 to 1: `priority = 0.8`")),
    }
}

/// Every option that an attribute has.
fn names(kind: Kind) -> impl Iterator<Item = &'static str> {
    let named = NAMES.iter().filter(move |(_, kinds)| kinds.contains(&kind)).map(|(name, _)| *name);
    let hints = HINTS.iter().filter(move |_| kind == Kind::Tool).map(|(hint, _)| *hint);
    named.chain(hints)
}

type Metas = Punctuated<Meta, Token![,]>;

/// The URI of a resource, and the options.
fn parts(kind: Kind, place: Span, input: ParseStream<'_>) -> Result<(Option<LitStr>, Metas)> {
    let word = kind.word();
    let uri = match (kind, input.peek(LitStr)) {
        (Kind::Resource | Kind::Template, true) => {
            let uri: LitStr = input.parse()?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            Some(uri)
        }
        (Kind::Resource | Kind::Template, false) => {
            let span = if input.is_empty() { place } else { input.span() };
            let message = "say first where the resource is: `#[resource(\"demo://readme\")]`";
            return Err(Error::new(span, message));
        }
        (_, true) => return Err(input.error(format!("write `name = \"…\"` to name the {word}"))),
        (_, false) => None,
    };
    Ok((uri, Punctuated::parse_terminated(input)?))
}

fn text(meta: &Meta) -> Result<Expr> {
    match value(meta) {
        Some(text @ Expr::Macro(_)) => Ok(text.clone()),
        _ => Ok(Expr::Lit(ExprLit { attrs: Vec::new(), lit: Lit::Str(string(meta)?) })),
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::{ToTokens, quote};

    use super::*;

    fn parse(kind: Kind, options: TokenStream) -> Result<Options> {
        Options::parse(Marker { kind, options, place: Span::call_site() })
    }

    fn errors(attribute: TokenStream) -> Vec<String> {
        match parse(Kind::Tool, attribute) {
            Ok(_) => Vec::new(),
            Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
        }
    }

    #[test]
    fn every_option_is_read() {
        let options = parse(
            Kind::Tool,
            quote! {
                name = "sum", title = "Sum", description = "Adds.",
                read_only, destructive = false, idempotent = true, open_world,
            },
        );
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
        let options = parse(Kind::Tool, quote!()).unwrap();
        assert!(options.name.is_none() && options.hints.is_empty());
    }

    #[test]
    fn a_description_may_come_from_a_file() {
        let options = parse(Kind::Tool, quote!(description = include_str!("add.md"))).unwrap();
        assert!(matches!(options.description, Some(Expr::Macro(_))));
    }

    #[test]
    fn an_unknown_option_names_the_known_ones() {
        assert_eq!(
            errors(quote!(readonly)),
            ["`#[tool]` has no option `readonly`; it has `name`, `title`, `description`, \
              `icon`, `icons`, `scopes`, `read_only`, `destructive`, `idempotent`, `open_world`"]
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

    fn of(kind: Kind, attribute: TokenStream) -> std::result::Result<Options, String> {
        parse(kind, attribute).map_err(|error| error.to_string())
    }

    #[test]
    fn a_resource_begins_with_its_uri() {
        let readme = quote!("demo://readme", mime_type = "text/markdown", icon = "https://a/b.png");
        let readme = of(Kind::Resource, readme).unwrap();
        assert_eq!(readme.kind, Kind::Resource);
        assert_eq!(readme.mime_type.unwrap().value(), "text/markdown");
        let item = of(Kind::Resource, quote!("demo://items/{id}", list = items::all)).unwrap();
        assert_eq!(item.kind, Kind::Template);
        assert!(item.list.is_some());
        for (attribute, expected) in [
            (quote!(), "say first where the resource is: `#[resource(\"demo://readme\")]`"),
            (
                quote!(name = "readme"),
                "say first where the resource is: `#[resource(\"demo://readme\")]`",
            ),
            (
                quote!("demo://readme", list = all),
                "`list` lists the members of a family: the URI needs a variable, as in \
                 `demo://items/{id}`",
            ),
            (
                quote!("demo://{id}", list = "all"),
                "`list` is a function: `list = path::to::function`",
            ),
            (
                quote!("demo://readme", read_only),
                "`#[resource]` has no option `read_only`; it has `name`, `title`, `description`, \
                 `icon`, `icons`, `scopes`, `mime_type`, `list`, `audience`, `priority`, \
                 `last_modified`",
            ),
            (
                quote!("demo://readme", audience = ["user", "model"]),
                "an audience is made of \"user\" and \"assistant\"",
            ),
            (
                quote!("demo://readme", audience = "user"),
                "`audience` are string literals: `audience = [\"…\", \"…\"]`",
            ),
            (
                quote!("demo://readme", priority = 1.5),
                "`priority` is a number from 0 to 1: `priority = 0.8`",
            ),
            (
                quote!("demo://readme", priority = high),
                "`priority` is a number from 0 to 1: `priority = 0.8`",
            ),
            (
                quote!("demo://readme", last_modified = 2026),
                "`last_modified` is a string literal: `last_modified = \"…\"`",
            ),
        ] {
            assert_eq!(of(Kind::Resource, attribute).err().unwrap(), expected);
        }
    }

    #[test]
    fn icons_are_one_or_several() {
        let several =
            of(Kind::Prompt, quote!(icons("https://a/1.png", "data:image/png,"))).unwrap();
        assert_eq!(several.icons.len(), 2);
        let wrong = "`icons` are string literals: `icons(\"https://…\", \"https://…\")`";
        assert_eq!(of(Kind::Prompt, quote!(icons = "https://a")).err().unwrap(), wrong);
        assert_eq!(of(Kind::Prompt, quote!(icons())).err().unwrap(), wrong);
        assert_eq!(
            of(Kind::Prompt, quote!(icon = "https://a", icons("https://b"))).err().unwrap(),
            "icons are given once: `icons(\"https://…\", \"https://…\")`"
        );
    }
    #[test]
    fn scopes_are_a_list_of_texts() {
        let options = of(Kind::Prompt, quote!(scopes = ["files:read", "files:write"])).unwrap();
        let scopes: Vec<String> = options.scopes.unwrap().iter().map(LitStr::value).collect();
        assert_eq!(scopes, ["files:read", "files:write"]);
        let wrong = "`scopes` are string literals: `scopes = [\"…\", \"…\"]`";
        for attribute in [
            quote!(scopes),
            quote!(scopes = "files:read"),
            quote!(scopes = [1]),
            quote!(scopes = []),
            quote!(scopes("files:read")),
        ] {
            assert_eq!(of(Kind::Prompt, attribute).err().unwrap(), wrong);
        }
    }
}
