//! The syntax of RFC 6570 URI templates, all four levels.

use super::{characters::unescape, template::TemplateError};

/// The most bytes of a template.
const MAX_TEMPLATE: usize = 2048;
const MAX_VARIABLES: usize = 32;
const SPECIFICATION: &str =
    "an expression is `{`, perhaps one of `+#./;?&`, names with commas between them, and `}`";

#[derive(Debug, Clone)]
pub(super) enum Piece {
    Literal(String),
    Expression(Expression),
}

/// Invariant: it has at least one variable.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    /// Its text in the template, for messages.
    pub(super) text: String,
    pub(super) operator: Operator,
    pub(super) variables: Vec<Variable>,
}

#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) modifier: Modifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modifier {
    None,
    /// `*`
    Explode,
    /// `:3`
    Prefix(usize),
}

/// RFC 6570 §2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `{x}`
    Simple,
    /// `{+x}`
    Reserved,
    /// `{#x}`
    Fragment,
    /// `{.x}`
    Label,
    /// `{/x}`
    Segment,
    /// `{;x}`
    Parameter,
    /// `{?x}`
    Query,
    /// `{&x}`
    Continuation,
}

impl Operator {
    /// Returns the text before the first value: RFC 6570, appendix A.
    pub(super) fn first(self) -> &'static str {
        match self {
            Operator::Simple | Operator::Reserved => "",
            Operator::Fragment => "#",
            Operator::Label => ".",
            Operator::Segment => "/",
            Operator::Parameter => ";",
            Operator::Query => "?",
            Operator::Continuation => "&",
        }
    }

    /// Returns the character between values.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Operator::Simple | Operator::Reserved | Operator::Fragment => ",",
            Operator::Query => "&",
            operator => operator.first(),
        }
    }
}

/// Parses a template.
pub(super) fn parse(text: &str) -> Result<Vec<Piece>, TemplateError> {
    if text.len() > MAX_TEMPLATE {
        return Err(TemplateError::new(format!("a template has at most {MAX_TEMPLATE} bytes")));
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (literal, after) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
        if !literal.is_empty() {
            pieces.push(Piece::Literal(parse_literal(literal)?));
        }
        let Some(after) = after.strip_prefix('{') else { break };
        let Some((inside, after)) = after.split_once('}') else {
            let sentence = format!("`{{{after}` has no `}}`: {SPECIFICATION}");
            return Err(TemplateError::new(sentence));
        };
        pieces.push(Piece::Expression(parse_expression(inside)?));
        rest = after;
    }
    if variables(&pieces).count() > MAX_VARIABLES {
        return Err(TemplateError::new(format!(
            "a template has at most {MAX_VARIABLES} variables"
        )));
    }
    Ok(pieces)
}

/// Returns the variables of a template, in order.
pub(super) fn variables(pieces: &[Piece]) -> impl Iterator<Item = &Variable> {
    pieces.iter().flat_map(|piece| match piece {
        Piece::Literal(_) => &[][..],
        Piece::Expression(expression) => &expression.variables,
    })
}

/// RFC 6570 §2.1. The apostrophe is let through, as its errata ask.
fn parse_literal(text: &str) -> Result<String, TemplateError> {
    for (at, char) in text.char_indices() {
        let sentence = match char {
            '}' => "`}` has no `{`: write `%7D` for the character itself".to_owned(),
            '%' if unescape(&text.as_bytes()[at + 1..]).is_none() => {
                "`%` is not followed by two hexadecimal digits: write `%25` for the character itself"
                    .to_owned()
            }
            ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '\0'..='\x1f' | '\x7f' => {
                let code = u32::from(char);
                format!("{char:?} cannot stand in an address: write `%{code:02X}`")
            }
            _ => continue,
        };
        return Err(TemplateError::new(sentence));
    }
    Ok(text.to_owned())
}

fn parse_expression(inside: &str) -> Result<Expression, TemplateError> {
    let text = format!("{{{inside}}}");
    let operator = match inside.bytes().next() {
        Some(b'+') => Operator::Reserved,
        Some(b'#') => Operator::Fragment,
        Some(b'.') => Operator::Label,
        Some(b'/') => Operator::Segment,
        Some(b';') => Operator::Parameter,
        Some(b'?') => Operator::Query,
        Some(b'&') => Operator::Continuation,
        Some(b'=' | b',' | b'!' | b'@' | b'|') => {
            let sentence = format!("`{text}`: no operator is written `{}`", &inside[..1]);
            return Err(TemplateError::new(sentence));
        }
        _ => Operator::Simple,
    };
    let list = if operator == Operator::Simple { inside } else { &inside[1..] };
    let variables = list.split(',').map(|text| {
        let problem = |sentence| TemplateError::new(format!("`{text}`: {sentence}"));
        parse_variable(text).map_err(problem)
    });
    let variables = variables.collect::<Result<_, _>>()?;
    Ok(Expression { text, operator, variables })
}

fn parse_variable(text: &str) -> Result<Variable, &'static str> {
    let (name, modifier) = if let Some(name) = text.strip_suffix('*') {
        (name, Modifier::Explode)
    } else if let Some((name, length)) = text.split_once(':') {
        let is_length = matches!(length.len(), 1..=4)
            && length.bytes().all(|byte| byte.is_ascii_digit())
            && !length.starts_with('0');
        let length = if is_length { length.parse().ok() } else { None };
        let length = length.ok_or("the length after `:` is a number from 1 to 9999")?;
        (name, Modifier::Prefix(length))
    } else {
        (text, Modifier::None)
    };
    if name.is_empty() {
        return Err("a name is missing");
    }
    if !is_name(name) {
        return Err("a name has letters, digits, `_` and single dots inside it");
    }
    Ok(Variable { name: name.to_owned(), modifier })
}

/// RFC 6570 §2.3.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let is_fine = |(at, byte): (usize, &u8)| match byte {
            b'%' => unescape(&bytes[at + 1..]).is_some(),
            byte => byte.is_ascii_alphanumeric() || *byte == b'_',
        };
        !bytes.is_empty() && bytes.iter().enumerate().all(is_fine)
    };
    name.split('.').all(is_part)
}
