//! Owns: `#[arg(…)]` on an argument: what its value may be, how it is shown, what completes it.
//! Does not own: the other attributes of arguments, nor where these constraints are checked.

use quote::quote;
use syn::{
    Attribute, Error, Expr, ExprArray, ExprLit, ExprPath, ExprUnary, Lit, LitStr, Meta, Result,
    Token, Type, UnOp, parse_quote, punctuated::Punctuated,
};

use crate::{
    errors::Errors,
    kind::Kind,
    meta::{name, once, string, unknown, value},
    types::{named, show},
};

/// What `#[arg(…)]` says.
#[derive(Default)]
pub(crate) struct Arg {
    min: Option<Expr>,
    max: Option<Expr>,
    min_length: Option<Expr>,
    max_length: Option<Expr>,
    pattern: Option<LitStr>,
    title: Option<LitStr>,
    header: Option<LitStr>,
    pub(crate) complete: Option<Completion>,
}

/// What completes an argument.
#[derive(Clone)]
pub(crate) enum Completion {
    Values(ExprArray),
    Function(ExprPath),
}

const OPTIONS: [&str; 8] =
    ["min", "max", "min_length", "max_length", "pattern", "title", "header", "complete"];

impl Arg {
    /// Adds what one `#[arg(…)]` says of an argument of this type.
    pub(crate) fn read(
        &mut self,
        kind: Kind,
        ty: &Type,
        attribute: &Attribute,
        errors: &mut Errors,
    ) {
        let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
        let Some(metas) = errors.take(attribute.parse_args_with(parser)) else { return };
        for meta in &metas {
            errors.take(self.set(kind, ty, meta));
        }
        errors.take(in_order("min", &self.min, "max", &self.max));
        errors.take(in_order("min_length", &self.min_length, "max_length", &self.max_length));
    }

    fn set(&mut self, kind: Kind, ty: &Type, meta: &Meta) -> Result<()> {
        let option = name(meta);
        let rules = |shapes: &[Shape], instead| fits(ty, meta, shapes, instead);
        match &*option {
            "min" | "max" => {
                rules(&[Shape::Integer, Shape::Float], &|shape| match shape {
                    Shape::Text | Shape::List => Some(format!("{option}_length")),
                    _ => None,
                })?;
                let slot = if option == "min" { &mut self.min } else { &mut self.max };
                once(slot, meta, number(meta)?)
            }
            "min_length" | "max_length" => {
                rules(&[Shape::Text, Shape::List], &|shape| match shape {
                    Shape::Integer | Shape::Float => Some(option.replace("_length", "")),
                    _ => None,
                })?;
                let slot = if option == "min_length" {
                    &mut self.min_length
                } else {
                    &mut self.max_length
                };
                once(slot, meta, number(meta)?)
            }
            "pattern" => {
                rules(&[Shape::Text], &|_| None)?;
                once(&mut self.pattern, meta, string(meta)?)
            }
            "header" => {
                header_of_tool(kind, meta)?;
                header_fits(ty, meta)?;
                once(&mut self.header, meta, string(meta)?)
            }
            "title" => once(&mut self.title, meta, string(meta)?),
            "complete" => {
                let completion = completion(kind, meta)?;
                once(&mut self.complete, meta, completion)
            }
            _ => Err(unknown("arg", meta.path(), OPTIONS)),
        }
    }

    /// The same, as a field says it.
    pub(crate) fn attributes(&self) -> Vec<Attribute> {
        let mut attributes = Vec::new();
        for (what, min, max) in
            [("range", &self.min, &self.max), ("length", &self.min_length, &self.max_length)]
        {
            let what = syn::Ident::new(what, proc_macro2::Span::call_site());
            let min = min.as_ref().map(|min| quote!(min = #min,));
            let max = max.as_ref().map(|max| quote!(max = #max,));
            if min.is_some() || max.is_some() {
                attributes.push(parse_quote!(#[schemars(#what(#min #max))]));
            }
        }
        if let Some(pattern) = &self.pattern {
            attributes.push(parse_quote!(#[schemars(regex(pattern = #pattern))]));
        }
        if let Some(title) = &self.title {
            attributes.push(parse_quote!(#[schemars(title = #title)]));
        }
        if let Some(header) = &self.header {
            attributes.push(parse_quote!(#[schemars(extend("x-mcp-header" = #header))]));
        }
        attributes
    }
}

/// What values of a type look like in JSON, as far as its name tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Text,
    Integer,
    Float,
    Boolean,
    List,
    Map,
}

impl Shape {
    fn of(ty: &Type) -> Option<Shape> {
        match ty {
            Type::Array(_) => return Some(Shape::List),
            Type::Tuple(_) => return Some(Shape::List),
            Type::Paren(inner) => return Shape::of(&inner.elem),
            _ => {}
        }
        let (name, parameters) = named(ty)?;
        Some(match (&*name, &*parameters) {
            ("Option" | "Box" | "Arc" | "Rc", [inner]) => return Shape::of(inner),
            ("Cow", [inner]) => match named(inner)?.0.as_str() {
                "str" => Shape::Text,
                _ => return None,
            },
            ("String" | "str" | "char" | "PathBuf", []) => Shape::Text,
            (
                "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64"
                | "u128" | "usize",
                [],
            ) => Shape::Integer,
            ("f32" | "f64", []) => Shape::Float,
            ("bool", []) => Shape::Boolean,
            ("Vec" | "VecDeque" | "HashSet" | "BTreeSet" | "LinkedList", _) => Shape::List,
            ("HashMap" | "BTreeMap", _) => Shape::Map,
            (name, _) if name.starts_with("NonZero") => Shape::Integer,
            _ => return None,
        })
    }

    fn words(self) -> &'static str {
        match self {
            Shape::Text => "text",
            Shape::Integer | Shape::Float => "a number",
            Shape::Boolean => "true or false",
            Shape::List => "a list",
            Shape::Map => "a map",
        }
    }
}

/// Whether a constraint means anything for a type; if not, perhaps there is one that does.
fn fits(
    ty: &Type,
    meta: &Meta,
    shapes: &[Shape],
    instead: &dyn Fn(Shape) -> Option<String>,
) -> Result<()> {
    let (option, shown) = (name(meta), show(ty));
    let Some(shape) = Shape::of(ty) else {
        let message = format!(
            "`{option}` needs a type that is known by its name, such as `{}`: say it where \
             `{shown}` is declared, with `#[schemars(…)]`",
            if shapes.contains(&Shape::Text) { "String" } else { "i64" }
        );
        return Err(Error::new_spanned(meta, message));
    };
    if shapes.contains(&shape) {
        return Ok(());
    }
    let is = shape.words();
    let message = match instead(shape) {
        Some(other) => format!("`{shown}` is {is}: say `{other}` instead of `{option}`"),
        None => {
            let mut words: Vec<&str> = shapes.iter().map(|shape| shape.words()).collect();
            words.dedup();
            format!("`{option}` is for {}, but `{shown}` is {is}: leave it out", words.join(" or "))
        }
    };
    Err(Error::new_spanned(meta, message))
}

fn header_of_tool(kind: Kind, meta: &Meta) -> Result<()> {
    if kind == Kind::Tool {
        return Ok(());
    }
    let word = kind.word();
    let message = format!("`header` is for the arguments of a tool: a {word} has no headers");
    Err(Error::new_spanned(meta, message))
}

/// 2026-07-28 server/tools §x-mcp-header: a string, an integer or a boolean.
fn header_fits(ty: &Type, meta: &Meta) -> Result<()> {
    match Shape::of(ty) {
        Some(shape @ (Shape::Float | Shape::List | Shape::Map)) => {
            let is = if shape == Shape::Float { "a fraction" } else { shape.words() };
            let message = format!(
                "a header repeats text, an integer or a boolean, but `{}` is {is}: leave out \
                 `header`",
                show(ty)
            );
            Err(Error::new_spanned(meta, message))
        }
        _ => Ok(()),
    }
}

fn number(meta: &Meta) -> Result<Expr> {
    let option = name(meta);
    let wrong = || format!("`{option}` is a number: `{option} = 1`");
    match value(meta) {
        Some(Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. })) => {}
        Some(other @ Expr::Lit(_)) => return Err(Error::new_spanned(other, wrong())),
        Some(_) => {}
        None => return Err(Error::new_spanned(meta, wrong())),
    }
    value(meta).cloned().ok_or_else(|| Error::new_spanned(meta, wrong()))
}

fn completion(kind: Kind, meta: &Meta) -> Result<Completion> {
    if kind == Kind::Tool {
        let message = "only prompts and resources are completed: a tool's argument lists its \
                       values if its type is an enum";
        return Err(Error::new_spanned(meta, message));
    }
    let wrong = "`complete` is a function or a list: `complete = path::to::function` or \
                 `complete = [\"a\", \"b\"]`";
    match value(meta) {
        Some(Expr::Path(path)) => Ok(Completion::Function(path.clone())),
        Some(Expr::Array(list)) if list.elems.iter().all(is_text) => {
            Ok(Completion::Values(list.clone()))
        }
        Some(other) => Err(Error::new_spanned(other, wrong)),
        None => Err(Error::new_spanned(meta, wrong)),
    }
}

fn is_text(value: &Expr) -> bool {
    matches!(value, Expr::Lit(ExprLit { lit: Lit::Str(_), .. }))
}

/// Reports bounds that nothing is between.
fn in_order(low: &str, min: &Option<Expr>, high: &str, max: &Option<Expr>) -> Result<()> {
    let (Some(min), Some(max)) = (min, max) else { return Ok(()) };
    match (literal(min), literal(max)) {
        (Some(least), Some(most)) if least > most => {
            let message = format!("`{low}` is more than `{high}`, so that no value fits");
            Err(Error::new_spanned(min, message))
        }
        _ => Ok(()),
    }
}

/// The number that an expression is, where that can be seen.
fn literal(value: &Expr) -> Option<f64> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => literal(expr).map(|value| -value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;

    use super::*;

    fn read(kind: Kind, ty: &Type, attribute: &Attribute) -> std::result::Result<Arg, Vec<String>> {
        let (mut arg, mut errors) = (Arg::default(), Errors::default());
        arg.read(kind, ty, attribute, &mut errors);
        errors.finish(arg).map_err(|all| all.into_iter().map(|error| error.to_string()).collect())
    }

    fn written(ty: &Type, attribute: &Attribute) -> String {
        let arg = read(Kind::Tool, ty, attribute).unwrap_or_else(|errors| panic!("{errors:?}"));
        let attributes = arg.attributes();
        quote!(#(#attributes)*).into_token_stream().to_string().replace(' ', "")
    }

    #[test]
    fn constraints_become_what_a_field_says() {
        assert_eq!(
            written(&parse_quote!(Option<i64>), &parse_quote!(#[arg(min = -1, max = MOST)])),
            "#[schemars(range(min=-1,max=MOST,))]"
        );
        assert_eq!(
            written(
                &parse_quote!(String),
                &parse_quote!(#[arg(min_length = 1, pattern = "^a", title = "A", header = "Region")])
            ),
            "#[schemars(length(min=1,))]#[schemars(regex(pattern=\"^a\"))]\
             #[schemars(title=\"A\")]#[schemars(extend(\"x-mcp-header\"=\"Region\"))]"
        );
        assert_eq!(
            written(&parse_quote!(Vec<Point>), &parse_quote!(#[arg(max_length = 3)])),
            "#[schemars(length(max=3,))]"
        );
        assert_eq!(written(&parse_quote!(Region), &parse_quote!(#[arg(title = "R")])).len(), 22);
    }

    #[test]
    fn constraints_that_say_nothing_are_refused() {
        for (ty, attribute, expected) in [
            (
                parse_quote!(String),
                parse_quote!(#[arg(min = 1)]),
                "`String` is text: say `min_length` instead of `min`",
            ),
            (
                parse_quote!(Option<Vec<u8>>),
                parse_quote!(#[arg(max = 1)]),
                "`Option<Vec<u8>>` is a list: say `max_length` instead of `max`",
            ),
            (
                parse_quote!(u8),
                parse_quote!(#[arg(max_length = 1)]),
                "`u8` is a number: say `max` instead of `max_length`",
            ),
            (
                parse_quote!(bool),
                parse_quote!(#[arg(min = 1)]),
                "`min` is for a number, but `bool` is true or false: leave it out",
            ),
            (
                parse_quote!(i64),
                parse_quote!(#[arg(pattern = "a")]),
                "`pattern` is for text, but `i64` is a number: leave it out",
            ),
            (
                parse_quote!(Percent),
                parse_quote!(#[arg(min = 1)]),
                "`min` needs a type that is known by its name, such as `i64`: say it where \
                 `Percent` is declared, with `#[schemars(…)]`",
            ),
            (
                parse_quote!(f64),
                parse_quote!(#[arg(header = "Amount")]),
                "a header repeats text, an integer or a boolean, but `f64` is a fraction: leave \
                 out `header`",
            ),
            (parse_quote!(i64), parse_quote!(#[arg(min = "1")]), "`min` is a number: `min = 1`"),
            (
                parse_quote!(i64),
                parse_quote!(#[arg(min = 3, max = 2)]),
                "`min` is more than `max`, so that no value fits",
            ),
            (
                parse_quote!(i64),
                parse_quote!(#[arg(minimum = 3)]),
                "`#[arg]` has no option `minimum`; it has `min`, `max`, `min_length`, \
                 `max_length`, `pattern`, `title`, `header`, `complete`",
            ),
            (
                parse_quote!(String),
                parse_quote!(#[arg(complete = ["a"])]),
                "only prompts and resources are completed: a tool's argument lists its values if \
                 its type is an enum",
            ),
        ] {
            assert_eq!(read(Kind::Tool, &ty, &attribute).err().unwrap(), [expected]);
        }
    }

    #[test]
    fn texts_are_completed_and_constrained() {
        let ty = parse_quote!(String);
        let prompt = |attribute| read(Kind::Prompt, &ty, &attribute);
        let values = prompt(parse_quote!(#[arg(complete = ["a", "b"], title = "A")])).unwrap();
        assert!(matches!(values.complete, Some(Completion::Values(_))));
        let constrained = prompt(parse_quote!(#[arg(min_length = 1, pattern = "^a")])).unwrap();
        assert_eq!(constrained.attributes().len(), 2);
        let function = prompt(parse_quote!(#[arg(complete = languages::all)])).unwrap();
        assert!(matches!(function.complete, Some(Completion::Function(_))));
        for (attribute, expected) in [
            (
                parse_quote!(#[arg(complete = "a")]),
                "`complete` is a function or a list: `complete = path::to::function` or \
                 `complete = [\"a\", \"b\"]`",
            ),
            (parse_quote!(#[arg(max = 1)]), "`String` is text: say `max_length` instead of `max`"),
            (
                parse_quote!(#[arg(header = "Region")]),
                "`header` is for the arguments of a tool: a prompt has no headers",
            ),
        ] {
            assert_eq!(prompt(attribute).err().unwrap(), [expected]);
        }
    }
}
