//! Owns: reading what stands in the parentheses of an attribute, one `name = value` at a time.
//! Does not own: which names there are.

use quote::ToTokens;
use syn::{Error, Expr, ExprLit, ExprPath, Lit, LitStr, Meta, Path, Result};

/// The name that something is given for, if it is a plain one.
pub(crate) fn name(meta: &Meta) -> String {
    meta.path().get_ident().map(ToString::to_string).unwrap_or_default()
}

/// Fills a slot that can be filled once.
pub(crate) fn once<T>(slot: &mut Option<T>, meta: &Meta, value: T) -> Result<()> {
    match slot.replace(value) {
        Some(_) => Err(twice(meta.path())),
        None => Ok(()),
    }
}

pub(crate) fn twice(path: &Path) -> Error {
    Error::new_spanned(path, format!("`{}` is given twice", path.to_token_stream()))
}

/// The value of `name = "…"`.
pub(crate) fn string(meta: &Meta) -> Result<LitStr> {
    let name = name(meta);
    let wrong = || format!("`{name}` is a string literal: `{name} = \"…\"`");
    match value(meta) {
        Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => Ok(text.clone()),
        Some(other) => Err(Error::new_spanned(other, wrong())),
        None => Err(Error::new_spanned(meta, wrong())),
    }
}

/// The value of `name = ["…", "…"]`, which has at least one.
pub(crate) fn strings(meta: &Meta) -> Result<Vec<LitStr>> {
    let name = name(meta);
    let wrong = || {
        let message = format!("`{name}` are string literals: `{name} = [\"…\", \"…\"]`");
        Error::new_spanned(meta, message)
    };
    let Some(Expr::Array(array)) = value(meta) else { return Err(wrong()) };
    let text = |element: &Expr| match element {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.clone()),
        _ => None,
    };
    let texts: Option<Vec<LitStr>> = array.elems.iter().map(text).collect();
    texts.filter(|texts| !texts.is_empty()).ok_or_else(wrong)
}

/// The value of `name = path::to::function`.
pub(crate) fn function(meta: &Meta) -> Result<ExprPath> {
    let name = name(meta);
    let wrong = || format!("`{name}` is a function: `{name} = path::to::function`");
    match value(meta) {
        Some(Expr::Path(path)) => Ok(path.clone()),
        Some(other) => Err(Error::new_spanned(other, wrong())),
        None => Err(Error::new_spanned(meta, wrong())),
    }
}

/// What stands behind `=`.
pub(crate) fn value(meta: &Meta) -> Option<&Expr> {
    match meta {
        Meta::NameValue(pair) => Some(&pair.value),
        _ => None,
    }
}

/// An option that there is not, and those that there are.
pub(crate) fn unknown<'n>(
    attribute: &str,
    path: &Path,
    known: impl IntoIterator<Item = &'n str>,
) -> Error {
    let known: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
    let (path_text, known) = (path.to_token_stream().to_string(), known.join(", "));
    let message = format!("`#[{attribute}]` has no option `{path_text}`; it has {known}");
    Error::new_spanned(path, message)
}
