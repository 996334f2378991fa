//! Owns the syntax of RFC 6570, all four levels. Does not own whether a template can be matched.

use super::characters::unescape;
use super::template::TemplateError;

/// The longest template.
const LONGEST: usize = 2048;
const MOST_VARIABLES: usize = 32;
const SPECIFICATION: &str =
    "an expression is `{`, perhaps one of `+#./;?&`, names with commas between them, and `}`";

#[derive(Debug, Clone)]
pub(super) enum Piece {
    Literal(String),
    Expression(Expression),
}

/// Invariant: there is a variable.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    pub(super) operator: Operator,
    pub(super) variables: Vec<Variable>,
}

impl std::fmt::Display for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}", self.operator.sign())?;
        for (at, variable) in self.variables.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}", variable.name)?;
            match variable.modifier {
                Modifier::None => {}
                Modifier::Explode => write!(f, "*")?,
                Modifier::Prefix(length) => write!(f, ":{length}")?,
            }
        }
        write!(f, "}}")
    }
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
    const SIGNED: [(char, Operator); 7] = [
        ('+', Operator::Reserved),
        ('#', Operator::Fragment),
        ('.', Operator::Label),
        ('/', Operator::Segment),
        (';', Operator::Parameter),
        ('?', Operator::Query),
        ('&', Operator::Continuation),
    ];

    pub(super) fn sign(self) -> &'static str {
        match self {
            Operator::Simple => "",
            Operator::Reserved => "+",
            Operator::Fragment => "#",
            Operator::Label => ".",
            Operator::Segment => "/",
            Operator::Parameter => ";",
            Operator::Query => "?",
            Operator::Continuation => "&",
        }
    }
}

/// Reads a template.
pub(super) fn read(text: &str) -> Result<Vec<Piece>, TemplateError> {
    if text.len() > LONGEST {
        return Err(TemplateError::new(format!("a template has at most {LONGEST} bytes")));
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (literal, after) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
        if !literal.is_empty() {
            pieces.push(Piece::Literal(read_literal(literal)?));
        }
        let Some(after) = after.strip_prefix('{') else { break };
        let Some((inside, after)) = after.split_once('}') else {
            let sentence = format!("`{{{after}` has no `}}`: {SPECIFICATION}");
            return Err(TemplateError::new(sentence));
        };
        pieces.push(Piece::Expression(read_expression(inside)?));
        rest = after;
    }
    if variables(&pieces).count() > MOST_VARIABLES {
        return Err(TemplateError::new(format!(
            "a template has at most {MOST_VARIABLES} variables"
        )));
    }
    Ok(pieces)
}

/// The variables of a template, in order.
pub(super) fn variables(pieces: &[Piece]) -> impl Iterator<Item = &Variable> {
    pieces.iter().flat_map(|piece| match piece {
        Piece::Literal(_) => &[][..],
        Piece::Expression(expression) => &expression.variables,
    })
}

/// RFC 6570 §2.1. The apostrophe is let through, as its errata ask.
fn read_literal(text: &str) -> Result<String, TemplateError> {
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

fn read_expression(inside: &str) -> Result<Expression, TemplateError> {
    let signed = Operator::SIGNED.iter().find(|(sign, _)| inside.starts_with(*sign));
    let (operator, list) = match signed {
        Some((_, operator)) => (*operator, &inside[1..]),
        None if inside.starts_with(['=', ',', '!', '@', '|']) => {
            let sentence = format!("`{{{inside}}}`: no operator is written `{}`", &inside[..1]);
            return Err(TemplateError::new(sentence));
        }
        None => (Operator::Simple, inside),
    };
    let variables = list.split(',').map(|text| {
        let problem = |sentence| TemplateError::new(format!("`{{{inside}}}`: {sentence}"));
        read_variable(text).map_err(problem)
    });
    Ok(Expression { operator, variables: variables.collect::<Result<_, _>>()? })
}

fn read_variable(text: &str) -> Result<Variable, &'static str> {
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
