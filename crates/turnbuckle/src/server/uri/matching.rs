//! Matches URIs with templates and reads the values of the variables.
//!
//! A template is a list of parts. [`Matcher::read`] first computes, from the end of the URI, which
//! parts fit at which position, then gives each value the longest text that leaves a match. Both
//! passes look at each character once per part, so no URI takes more than linear time.

use std::collections::HashSet;

use super::{
    characters::{AsciiSet, Token, decode, tokens},
    syntax::{Expression, Modifier, Operator, Piece, Variable, variables},
    template::TemplateError,
    variables::Variables,
};

/// The most bytes of a URI that can match.
pub(super) const MAX_URI: usize = 8192;

/// A template, prepared for matching.
#[derive(Debug, Clone)]
pub(super) struct Matcher {
    /// Two templates with equal parts match the same URIs.
    parts: Vec<TemplatePart>,
    /// The variables of each [`TemplatePart::Value`], in order.
    captures: Vec<Capture>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(Vec<Token>),
    Value {
        /// The character before the value. A value that has one may be absent, or empty.
        mark: Option<u8>,
        excluded: AsciiSet,
    },
}

/// The variables that take the text of a part.
#[derive(Debug, Clone)]
enum Capture {
    One(Variable),
    /// All values that are left in an expression: `{x*}`, `{/x*}`.
    List {
        variable: Variable,
        separator: u8,
    },
    /// Pairs of names and values: `{;x,y}`, `{?x,y}`, `{&x,y}`.
    Pairs {
        variables: Vec<(Vec<Token>, Variable)>,
        separator: u8,
    },
}

impl Matcher {
    pub(super) fn new(pieces: &[Piece]) -> Result<Matcher, TemplateError> {
        let mut names = HashSet::new();
        if let Some(twice) = variables(pieces).find(|variable| !names.insert(&variable.name)) {
            let name = &twice.name;
            return Err(TemplateError::new(format!(
                "`{name}` is there twice: give each variable a name of its own"
            )));
        }
        let pieces = merge_queries(pieces);
        let mut builder = Builder::default();
        for (at, piece) in pieces.iter().enumerate().rev() {
            match piece {
                Piece::Literal(text) => builder.literal(text),
                Piece::Expression(expression) => {
                    let opens_query =
                        |piece: &Piece| matches!(piece, Piece::Literal(text) if text.contains('?'));
                    builder.expression(expression, pieces[..at].iter().any(opens_query))?;
                }
            }
        }
        let Builder { mut parts, mut captures, .. } = builder;
        parts.reverse();
        captures.reverse();
        Ok(Matcher { parts, captures })
    }

    /// Returns whether the templates differ in the names and the number of their variables only.
    pub(super) fn has_shape_of(&self, other: &Matcher) -> bool {
        self.parts == other.parts
    }

    /// Returns the number of literal characters.
    pub(super) fn literal_length(&self) -> usize {
        let length = |part: &TemplatePart| match part {
            TemplatePart::Literal(text) => text.len(),
            TemplatePart::Value { .. } => 0,
        };
        self.parts.iter().map(length).sum()
    }

    /// Returns the values of the variables, or `None` if the URI does not match.
    pub(super) fn read(&self, uri: &[Token]) -> Option<Variables> {
        // Most templates of a server differ in the text that they begin with.
        let (uri, parts) = match &self.parts[..] {
            [TemplatePart::Literal(text), rest @ ..] => (uri.strip_prefix(&text[..])?, rest),
            parts => (uri, parts),
        };
        let fits = fits(parts, uri);
        if !fits[0][0] {
            return None;
        }
        let (mut variables, mut captures, mut at) = (Variables::new(), self.captures.iter(), 0);
        for (part, next) in parts.iter().zip(&fits[1..]) {
            let (mark, excluded) = match part {
                TemplatePart::Literal(text) => {
                    at += text.len();
                    continue;
                }
                TemplatePart::Value { mark, excluded } => (*mark, *excluded),
            };
            let capture = captures.next()?;
            let Some((start, end)) = longest(uri, at, mark, excluded, next) else { continue };
            capture.read(&uri[start..end], &mut variables)?;
            at = end;
        }
        Some(variables)
    }
}

/// Joins `{?x}{&y}` to one expression: the parameters of a query come in any order.
fn merge_queries(pieces: &[Piece]) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (merged.last_mut(), piece) {
            (Some(Piece::Expression(last)), Piece::Expression(more))
                if more.operator == Operator::Continuation
                    && matches!(last.operator, Operator::Query | Operator::Continuation) =>
            {
                last.variables.extend(more.variables.iter().cloned());
            }
            _ => merged.push(piece.clone()),
        }
    }
    merged
}

/// Returns for each part, and for the end, the positions from which on all that follows matches.
fn fits(parts: &[TemplatePart], uri: &[Token]) -> Vec<Vec<bool>> {
    let mut rows = vec![vec![false; uri.len() + 1]; parts.len() + 1];
    rows[parts.len()][uri.len()] = true;
    for (at, part) in parts.iter().enumerate().rev() {
        let (rows, following) = rows.split_at_mut(at + 1);
        let (row, next) = (&mut rows[at], &following[0]);
        match part {
            TemplatePart::Literal(text) => {
                for start in 0..=uri.len().saturating_sub(text.len()) {
                    row[start] = next.get(start + text.len()) == Some(&true)
                        && uri[start..].starts_with(text);
                }
            }
            TemplatePart::Value { mark, excluded } => {
                // Whether a value may go on at the position after this one.
                let mut goes_on = next[uri.len()];
                row[uri.len()] = mark.is_some() && goes_on;
                for (position, token) in uri.iter().enumerate().rev() {
                    let continues = goes_on && !excluded.contains(*token);
                    row[position] = match mark {
                        Some(mark) => next[position] || goes_on && *token == Token::from(*mark),
                        None => continues,
                    };
                    goes_on = next[position] || continues;
                }
            }
        }
    }
    rows
}

/// Returns the longest text of a value that leaves a match; `None` if the value is absent.
fn longest(
    uri: &[Token],
    at: usize,
    mark: Option<u8>,
    excluded: AsciiSet,
    next: &[bool],
) -> Option<(usize, usize)> {
    let (start, shortest) = match mark {
        Some(mark) if uri.get(at) == Some(&Token::from(mark)) => (at + 1, at + 1),
        Some(_) => return None,
        None => (at, at + 1),
    };
    let length = uri[start..].iter().position(|token| excluded.contains(*token));
    let limit = length.map_or(uri.len(), |length| start + length);
    let end = (shortest..=limit).rev().find(|end| next[*end])?;
    Some((start, end))
}

impl Capture {
    fn read(&self, text: &[Token], variables: &mut Variables) -> Option<()> {
        match self {
            Capture::One(variable) => insert(variable, text, variables),
            Capture::List { variable, separator } => {
                (text.split(is(*separator))).try_for_each(|item| insert(variable, item, variables))
            }
            Capture::Pairs { variables: known, separator } => {
                for pair in text.split(is(*separator)) {
                    let end = pair.iter().position(is(b'=')).unwrap_or(pair.len());
                    let (name, value) = (&pair[..end], pair.get(end + 1..).unwrap_or_default());
                    match known.iter().find(|(known, _)| known == name) {
                        Some((_, variable)) => insert(variable, value, variables)?,
                        None if *separator == b';' => return None,
                        // Unknown parameters of a query are ignored.
                        None => drop(decode(pair)?),
                    }
                }
                Some(())
            }
        }
    }
}

fn is(byte: u8) -> impl FnMut(&Token) -> bool {
    move |token| *token == Token::from(byte)
}

/// Adds a value, unless it is not UTF-8, is too long, or the variable has one already.
fn insert(variable: &Variable, text: &[Token], variables: &mut Variables) -> Option<()> {
    let text = decode(text)?;
    match variable.modifier {
        Modifier::Prefix(longest) if text.chars().nth(longest).is_some() => None,
        Modifier::Explode => {
            variables.push(&variable.name, text);
            Some(())
        }
        _ => variables.add(&variable.name, text),
    }
}

/// The characters that no value of `{x}`, `{.x}`, `{/x}` and `{;x}` holds.
const SEPARATORS: AsciiSet = AsciiSet::of(b"/?#");

/// Collects the parts of a template, from its end.
#[derive(Default)]
struct Builder {
    parts: Vec<TemplatePart>,
    captures: Vec<Capture>,
    /// The characters that may come next in the template. A plain value holds none of them.
    next: AsciiSet,
    /// Those of them that begin a value which directly follows.
    marks: AsciiSet,
    /// The marks of a query and a fragment anywhere after this place.
    suffixes: AsciiSet,
}

impl Builder {
    fn literal(&mut self, text: &str) {
        if let Some(first) = text.bytes().find(|byte| AsciiSet::RESERVED.contains((*byte).into())) {
            self.next = AsciiSet::of(&[first]);
        }
        self.marks = AsciiSet::default();
        // The syntax has checked the escapes.
        self.parts.push(TemplatePart::Literal(tokens(text).unwrap_or_default()));
    }

    fn expression(&mut self, expression: &Expression, in_query: bool) -> Result<(), TemplateError> {
        let Expression { text, operator, variables } = expression;
        if let Some(TemplatePart::Value { mark: None, .. }) = self.parts.last() {
            return Err(TemplateError::new(format!(
                "nothing separates `{text}` from the variable after it: write a `/` or other \
                 text between them"
            )));
        }
        let separator = operator.separator().as_bytes()[0];
        let own = AsciiSet::of(&[separator]);
        let plain =
            SEPARATORS.with(if in_query { AsciiSet::of(b"&") } else { AsciiSet::default() });
        let first = operator.first().bytes().next();
        if let Operator::Parameter | Operator::Query | Operator::Continuation = operator {
            let excluded = match operator {
                Operator::Parameter => plain.with(self.next).without(AsciiSet::of(b";=")),
                _ => AsciiSet::of(b"#"),
            };
            let known = |variable: &Variable| {
                (tokens(&variable.name).unwrap_or_default(), variable.clone())
            };
            let variables = variables.iter().map(known).collect();
            self.value(first, excluded, Capture::Pairs { variables, separator });
        } else {
            for (at, variable) in variables.iter().enumerate().rev() {
                let explodes = variable.modifier == Modifier::Explode;
                if explodes && at + 1 < variables.len() {
                    return Err(TemplateError::new(format!(
                        "`{}*` in `{text}` takes all values that follow: write it last",
                        variable.name
                    )));
                }
                let excluded = match operator {
                    Operator::Reserved | Operator::Fragment => self.suffixes.with(self.marks),
                    Operator::Simple if variables.len() == 1 => plain.with(self.next),
                    _ => plain.with(self.next).with(own),
                };
                let (excluded, capture) = match variable.clone() {
                    variable if explodes => {
                        (excluded.without(own), Capture::List { variable, separator })
                    }
                    variable => (excluded, Capture::One(variable)),
                };
                let mark = if at == 0 { first } else { Some(separator) };
                self.value(mark, excluded, capture);
            }
        }
        self.suffixes = self.suffixes.with(match operator {
            Operator::Query | Operator::Continuation => AsciiSet::of(b"?"),
            Operator::Fragment => AsciiSet::of(b"#"),
            _ => AsciiSet::default(),
        });
        Ok(())
    }

    fn value(&mut self, mark: Option<u8>, excluded: AsciiSet, capture: Capture) {
        self.parts.push(TemplatePart::Value { mark, excluded });
        self.captures.push(capture);
        match mark {
            Some(mark) => {
                self.next = self.next.with(AsciiSet::of(&[mark]));
                self.marks = self.marks.with(AsciiSet::of(&[mark]));
            }
            None => (self.next, self.marks) = Default::default(),
        }
    }
}
