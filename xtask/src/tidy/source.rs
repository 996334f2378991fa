//! One Rust file, read once into the forms that the rules look at.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use syn::{
    spanned::Spanned,
    visit::{self, Visit},
};

/// A file of the workspace that parsed.
pub(crate) struct Source {
    /// Relative to the workspace, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
    /// Every token in order, delimiters included. Comments and doc comments are no tokens, so a
    /// rule that looks here cannot stumble over prose or over the inside of a string.
    pub(crate) tokens: Vec<Token>,
    test_lines: Vec<RangeInclusive<usize>>,
}

/// One word, operator, literal or delimiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Counted from one.
    pub(crate) line: usize,
}

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) sentence: String,
}

impl Source {
    /// Reads `text`; a file that is not Rust is itself a finding.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, Finding> {
        let unreadable = |line: usize, error: String| Finding {
            path: path.to_owned(),
            line,
            sentence: format!("does not parse: {error}"),
        };
        let syntax = syn::parse_file(text)
            .map_err(|error| unreadable(error.span().start().line, error.to_string()))?;
        let stream: TokenStream = text
            .parse()
            .map_err(|error: proc_macro2::LexError| unreadable(1, error.to_string()))?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut finder = TestFinder::default();
        finder.visit_file(&syntax);
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            syntax,
            tokens,
            test_lines: finder.lines,
        })
    }

    /// Whether the whole file is test code, by its place.
    pub(crate) fn is_test_file(&self) -> bool {
        self.path.ends_with("/tests.rs")
            // The suite that every wire goes through is a crate of its own.
            || self.path.starts_with("contract/")
            || self.path.split('/').any(|part| part == "tests" || part == "benches")
    }

    /// Whether the line is test code: of a test file, of a `#[cfg(test)]` item or of a test.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.is_test_file() || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// Whether the file is part of a crate's own code (not of its tests or examples).
    pub(crate) fn is_crate_source(&self) -> bool {
        self.path.starts_with("crates/") && self.path.contains("/src/") && !self.is_test_file()
    }

    pub(crate) fn finding(&self, line: usize, sentence: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, sentence: sentence.into() }
    }

    /// Positions in `tokens` at which `words` follow one another.
    pub(crate) fn find<'a>(&'a self, words: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        (0..self.tokens.len()).filter(move |start| self.matches(*start, words))
    }

    /// Whether `words` follow one another from position `start` on.
    pub(crate) fn matches(&self, start: usize, words: &[&str]) -> bool {
        words
            .iter()
            .enumerate()
            .all(|(offset, word)| self.word(start + offset).is_some_and(|text| text == *word))
    }

    pub(crate) fn word(&self, position: usize) -> Option<&str> {
        self.tokens.get(position).map(|token| token.text.as_str())
    }

    /// The tokens between the delimiter at `open` and the one that closes it.
    pub(crate) fn inside(&self, open: usize) -> &[Token] {
        let mut depth = 0usize;
        for (offset, token) in self.tokens[open..].iter().enumerate() {
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return self.tokens.get(open + 1..open + offset).unwrap_or_default();
            }
        }
        &[]
    }
}

/// Operators of two characters that rules ask for; a lexer hands them out one by one.
const PAIRS: &[&str] = &["::", "==", "!=", "<=", ">=", "=>", "->", "&&", "||"];

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => flatten_group(&group, tokens),
            TokenTree::Ident(word) => tokens.push(Token { text: word.to_string(), line }),
            TokenTree::Literal(literal) => tokens.push(Token { text: literal.to_string(), line }),
            TokenTree::Punct(mark) => {
                let mut text = mark.as_char().to_string();
                if mark.spacing() == Spacing::Joint
                    && let Some(TokenTree::Punct(next)) = trees.peek()
                    && PAIRS.contains(&format!("{text}{}", next.as_char()).as_str())
                {
                    text.push(next.as_char());
                    trees.next();
                }
                tokens.push(Token { text, line });
            }
        }
    }
}

fn flatten_group(group: &Group, tokens: &mut Vec<Token>) {
    if is_doc(group, tokens) {
        // Forget the `#` (and `!`) that introduced it.
        while tokens.last().is_some_and(|token| token.text == "!" || token.text == "#") {
            tokens.pop();
        }
        return;
    }
    let (open, close) = match group.delimiter() {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => return flatten(group.stream(), tokens),
    };
    tokens.push(Token { text: open.to_owned(), line: group.span_open().start().line });
    flatten(group.stream(), tokens);
    tokens.push(Token { text: close.to_owned(), line: group.span_close().start().line });
}

/// A doc comment reaches us as `#[doc = "…"]`.
fn is_doc(group: &Group, before: &[Token]) -> bool {
    group.delimiter() == Delimiter::Bracket
        && before.last().is_some_and(|token| token.text == "#" || token.text == "!")
        && matches!(group.stream().into_iter().next(),
            Some(TokenTree::Ident(word)) if word == "doc")
        && matches!(group.stream().into_iter().nth(1),
            Some(TokenTree::Punct(mark)) if mark.as_char() == '=')
}

#[derive(Default)]
struct TestFinder {
    lines: Vec<RangeInclusive<usize>>,
}

impl<'ast> Visit<'ast> for TestFinder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if attributes(item).iter().any(marks_test) {
            let span = item.span();
            self.lines.push(span.start().line..=span.end().line);
            return;
        }
        visit::visit_item(self, item);
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]` and its compounds, `#[test]`, `#[tokio::test]`.
fn marks_test(attribute: &syn::Attribute) -> bool {
    let path = attribute.path();
    if path.segments.last().is_some_and(|segment| segment.ident == "test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let mut condition = Vec::new();
    flatten(list.tokens.clone(), &mut condition);
    path.is_ident("cfg")
        && condition.iter().any(|token| token.text == "test")
        && !condition.iter().any(|token| token.text == "not")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &Source) -> Vec<&str> {
        source.tokens.iter().map(|token| token.text.as_str()).collect()
    }

    #[test]
    fn comments_and_docs_are_no_tokens_and_pairs_stay_together() {
        let source = Source::parse(
            "crates/a/src/b.rs",
            "//! Module.\n/// Docs.\n#[must_use]\nfn f() -> u8 { a::<B>() /* todo!() */ }\n",
        )
        .unwrap();
        assert_eq!(words(&source).join(" "), "# [ must_use ] fn f ( ) -> u8 { a :: < B > ( ) }");
        assert_eq!(source.tokens.last().unwrap().line, 4);
    }

    #[test]
    fn test_code_is_known_by_place_and_by_attribute() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[tokio::test]\n\
                    async fn c() {}\n#[cfg(not(test))]\nfn d() {}\n";
        let source = Source::parse("crates/a/src/b.rs", text).unwrap();
        let test_lines: Vec<usize> = (1..=9).filter(|line| source.is_test_line(*line)).collect();
        assert_eq!(test_lines, [2, 3, 4, 5, 6, 7]);
        assert!(Source::parse("crates/a/tests/it/main.rs", "").unwrap().is_test_file());
        assert!(Source::parse("crates/a/src/b/tests.rs", "").unwrap().is_test_file());
        assert!(Source::parse("contract/src/ledger.rs", "").unwrap().is_test_file());
        assert!(Source::parse("crates/a/src/b.rs", "").unwrap().is_crate_source());
    }

    #[test]
    fn the_inside_of_a_delimiter_ends_where_it_closes() {
        let source = Source::parse("a.rs", "fn f() { g((1), [2]); h() }").unwrap();
        let open = source.find(&["g", "("]).next().unwrap() + 1;
        let inside: Vec<&str> =
            source.inside(open).iter().map(|token| token.text.as_str()).collect();
        assert_eq!(inside, ["(", "1", ")", ",", "[", "2", "]"]);
    }

    #[test]
    fn a_file_that_is_not_rust_is_a_finding() {
        let finding = Source::parse("a.rs", "\nfn {").err().unwrap();
        assert_eq!(finding.line, 2);
        assert!(finding.sentence.starts_with("does not parse"));
    }
}
