//! Owns: the text of doc comments. Does not own: what it is used for.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment as an expression that is a `&'static str`, if there is one that says anything.
///
/// Lines stay lines, so that lists and paragraphs are what they were.
pub(crate) fn text(attributes: &[Attribute]) -> Option<TokenStream> {
    let mut pieces: Vec<Piece> = Vec::new();
    for value in attributes.iter().filter_map(doc) {
        match (value, pieces.last_mut()) {
            (Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }), last) => {
                let lines = lines(&literal.value());
                match last {
                    Some(Piece::Lines(before)) => before.extend(lines),
                    _ => pieces.push(Piece::Lines(lines)),
                }
            }
            (other, _) => pieces.push(Piece::Elsewhere(other.to_token_stream())),
        }
    }
    trim(&mut pieces);
    let pieces: Vec<TokenStream> = pieces.iter().map(Piece::expression).collect();
    match &*pieces {
        [] => None,
        [one] => Some(one.clone()),
        [first, rest @ ..] => Some(quote!(::core::concat!(#first #(, "\n", #rest)*))),
    }
}

/// A part of a doc comment.
enum Piece {
    Lines(Vec<String>),
    /// `#[doc = include_str!("add.md")]`.
    Elsewhere(TokenStream),
}

impl Piece {
    fn expression(&self) -> TokenStream {
        match self {
            Piece::Lines(lines) => lines.join("\n").into_token_stream(),
            Piece::Elsewhere(expression) => expression.clone(),
        }
    }
}

fn doc(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(&pair.value),
        _ => None,
    }
}

fn lines(comment: &str) -> Vec<String> {
    if !comment.contains('\n') {
        return vec![comment.strip_prefix(' ').unwrap_or(comment).trim_end().to_owned()];
    }
    // A block comment. Its first line begins behind `/**`; the others are indented like the code
    // around them, perhaps with a star each.
    let starred = comment
        .lines()
        .skip(1)
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .all(|line| line.starts_with('*'));
    let unstarred = |line: &str| match starred {
        true => line.trim_start().strip_prefix('*').unwrap_or_default().to_owned(),
        false => line.to_owned(),
    };
    let mut all = comment.lines();
    let first = all.next().unwrap_or_default().trim().to_owned();
    let rest: Vec<String> = all.map(unstarred).collect();
    let indent = |line: &String| line.len() - line.trim_start().len();
    let filled = rest.iter().filter(|line| !line.trim().is_empty());
    let common = filled.map(indent).min().unwrap_or(0);
    let rest = rest.iter().map(|line| line.get(common..).unwrap_or_default().trim_end().to_owned());
    std::iter::once(first).chain(rest).collect()
}

/// Takes away what is blank at both ends.
fn trim(pieces: &mut Vec<Piece>) {
    let blank = |line: &String| line.is_empty();
    if let Some(Piece::Lines(lines)) = pieces.first_mut() {
        lines.drain(..lines.iter().take_while(|line| blank(line)).count());
    }
    if let Some(Piece::Lines(lines)) = pieces.last_mut() {
        let trailing = lines.iter().rev().take_while(|line| blank(line)).count();
        lines.truncate(lines.len() - trailing);
    }
    pieces.retain(|piece| !matches!(piece, Piece::Lines(lines) if lines.is_empty()));
}

#[cfg(test)]
mod tests {
    use syn::{ItemFn, LitStr, parse_quote, parse_str, parse2};

    use super::*;

    fn of(function: &ItemFn) -> Option<String> {
        text(&function.attrs).map(|text| parse2::<LitStr>(text).unwrap().value())
    }

    #[test]
    fn lines_lose_one_space_and_stay_lines() {
        let function = parse_quote! {
            /// Add two integers.
            ///
            /// Both are:
            /// - signed,
            ///     and large.
            #[inline]
            fn add() {}
        };
        assert_eq!(
            of(&function).unwrap(),
            "Add two integers.\n\nBoth are:\n- signed,\n    and large."
        );
    }

    #[test]
    fn blank_ends_and_blank_comments_say_nothing() {
        let function = parse_quote! {
            ///
            /// Add.
            ///
            fn add() {}
        };
        assert_eq!(of(&function).unwrap(), "Add.");
        let function = parse_quote! {
            ///
            #[doc(hidden)]
            fn add() {}
        };
        assert_eq!(of(&function), None);
        assert_eq!(
            of(&parse_quote!(
                fn add() {}
            )),
            None
        );
    }

    #[test]
    fn block_comments_lose_their_frame() {
        let plain = "/** Add.\n\n    Both are:\n      signed.\n */ fn add() {}";
        let plain = of(&parse_str(plain).unwrap());
        assert_eq!(plain.unwrap(), "Add.\n\nBoth are:\n  signed.");
        let starred = "/**\n * Add.\n *\n * - signed\n */ fn add() {}";
        assert_eq!(of(&parse_str(starred).unwrap()).unwrap(), "Add.\n\n- signed");
    }

    #[test]
    fn text_from_elsewhere_is_put_between() {
        let function: ItemFn = parse_quote! {
            /// Before.
            #[doc = include_str!("add.md")]
            /// After.
            fn add() {}
        };
        let text = text(&function.attrs).unwrap().to_string().replace(' ', "");
        assert_eq!(
            text,
            "::core::concat!(\"Before.\",\"\\n\",include_str!(\"add.md\"),\"\\n\",\"After.\")"
        );
    }
}
