//! A Rust file, parsed once into the forms that the rules read.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A file of the workspace.
pub(crate) struct Source {
    /// Relative to the workspace, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
    /// Every token in order, delimiters included. Comments are not tokens, and a doc comment or a
    /// string is one literal, so that rules do not match prose.
    pub(crate) tokens: Vec<Token>,
    test_lines: Vec<RangeInclusive<usize>>,
}

/// One word, operator, literal or delimiter. `::` is the only operator of two characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Counted from one.
    pub(crate) line: usize,
}

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) sentence: String,
}

impl Source {
    /// Parses `text`; a file that is not Rust is itself a finding.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, Finding> {
        let parsed = syn::parse_file(text)
            .and_then(|syntax| Ok((syntax, syn::parse_str::<TokenStream>(text)?)));
        let (syntax, stream) = parsed.map_err(|error| Finding {
            path: path.to_owned(),
            line: error.span().start().line,
            sentence: format!("does not parse: {error}"),
        })?;
        let (path, text) = (path.to_owned(), text.to_owned());
        let mut source = Self { path, text, syntax, tokens: Vec::new(), test_lines: Vec::new() };
        flatten(stream, &mut source.tokens);
        let attributes: Vec<usize> = source.find(&["#", "["]).collect();
        source.test_lines =
            attributes.into_iter().filter_map(|position| source.test_item(position)).collect();
        Ok(source)
    }

    /// Whether the whole file is test code, by its path.
    pub(crate) fn is_test_file(&self) -> bool {
        self.path.ends_with("/tests.rs")
            // The suite that runs on every transport is a crate of its own.
            || self.path.starts_with("contract/")
            || self.path.split('/').any(|part| part == "tests" || part == "benches")
    }

    /// Whether the line belongs to a test file, a `#[cfg(test)]` item or a test.
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

    /// Returns the positions in `tokens` at which `words` follow one another.
    pub(crate) fn find<'a>(&'a self, words: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        let windows = self.tokens.windows(words.len()).enumerate();
        let is_match = move |window: &[Token]| {
            window.iter().zip(words).all(|(token, word)| token.text == *word)
        };
        windows.filter(move |(_, window)| is_match(window)).map(|(position, _)| position)
    }

    pub(crate) fn word(&self, position: usize) -> Option<&str> {
        self.tokens.get(position).map(|token| token.text.as_str())
    }

    /// Returns the tokens between the delimiter at `open` and the one that closes it.
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

    /// Returns the position of the `{` that begins the body of the item at `start`.
    pub(crate) fn body(&self, start: usize) -> Option<usize> {
        let mut position = start;
        loop {
            match self.word(position)? {
                "{" => return Some(position),
                "(" | "[" => position += self.inside(position).len() + 1,
                ";" | "}" => return None,
                _ => {}
            }
            position += 1;
        }
    }

    /// Returns the last line of the body that begins at `open`.
    pub(crate) fn end_line(&self, open: usize) -> usize {
        self.tokens[open + self.inside(open).len() + 1].line
    }

    /// Returns the lines of the item below the attribute at `position`, if that is `#[test]`,
    /// `#[tokio::test]`, `#[cfg(test)]` or a compound of it.
    fn test_item(&self, position: usize) -> Option<RangeInclusive<usize>> {
        let words: Vec<&str> =
            self.inside(position + 1).iter().map(|token| token.text.as_str()).collect();
        let path = words.split(|word| *word == "(").next()?;
        let is_test = match path {
            ["cfg"] => words.contains(&"test") && !words.contains(&"not"),
            _ => path.last() == Some(&"test"),
        };
        let start = self.tokens[position].line;
        let below = position + 2 + words.len();
        let end = || self.body(below).map_or(start + 1, |open| self.end_line(open));
        is_test.then(|| start..=end())
    }
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut is_joint = false;
    for tree in stream {
        let line = tree.span().start().line;
        let was_joint = std::mem::take(&mut is_joint);
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket | Delimiter::None => ("[", "]"),
                };
                tokens.push(Token { text: open.to_owned(), line });
                flatten(group.stream(), tokens);
                let line = group.span_close().start().line;
                tokens.push(Token { text: close.to_owned(), line });
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' && was_joint => {
                tokens.pop();
                tokens.push(Token { text: "::".to_owned(), line });
            }
            tree => {
                is_joint = matches!(&tree, TokenTree::Punct(mark)
                    if mark.as_char() == ':' && mark.spacing() == Spacing::Joint);
                tokens.push(Token { text: tree.to_string(), line });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_code_is_known_by_path_and_by_attribute() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[tokio::test]\n\
                    async fn c() {}\n#[cfg(not(test))]\nfn d() {}\n#[cfg(test)]\nmod e;\n";
        let source = Source::parse("crates/a/src/b.rs", text).unwrap();
        let test_lines: Vec<usize> = (1..=11).filter(|line| source.is_test_line(*line)).collect();
        assert_eq!(test_lines, [2, 3, 4, 5, 6, 7, 10, 11]);
        for path in ["crates/a/tests/it/main.rs", "crates/a/src/b/tests.rs", "contract/src/c.rs"] {
            assert!(Source::parse(path, "").unwrap().is_test_file());
        }
        assert!(source.is_crate_source());
    }

    #[test]
    fn a_file_that_is_not_rust_is_a_finding() {
        let finding = Source::parse("a.rs", "\nfn {").err().unwrap();
        assert_eq!(finding.line, 2);
        assert!(finding.sentence.starts_with("does not parse"));
    }
}
