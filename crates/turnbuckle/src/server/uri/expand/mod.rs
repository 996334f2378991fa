//! Expands templates: RFC 6570 §3.

use super::{
    characters::{escape, escape_but_reserved},
    syntax::{Expression, Modifier, Operator, Piece, Variable},
    variables::{TextValue, VariableValue, Variables},
};

/// Returns the URI that a template has with some values. A variable without a value adds nothing.
pub(super) fn expand(pieces: &[Piece], variables: &Variables) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => escape_but_reserved(text, &mut out),
            Piece::Expression(expression) => expand_one(expression, variables, &mut out),
        }
    }
    out
}

/// How an operator writes its values: RFC 6570, appendix A.
struct Style {
    first: &'static str,
    between: &'static str,
    names: Names,
    escape: fn(&str, &mut String),
}

#[derive(Clone, Copy)]
enum Names {
    None,
    /// Before each value, with this text after the name of an empty value.
    Before(&'static str),
}

impl Style {
    fn of(operator: Operator) -> Style {
        let names = match operator {
            Operator::Parameter => Names::Before(""),
            Operator::Query | Operator::Continuation => Names::Before("="),
            _ => Names::None,
        };
        let escape: fn(&str, &mut String) = match operator {
            Operator::Reserved | Operator::Fragment => escape_but_reserved,
            _ => escape,
        };
        Style { first: operator.first(), between: operator.separator(), names, escape }
    }

    fn named(&self, name: &str, value: &str, out: &mut String) {
        if let Names::Before(when_empty) = self.names {
            out.push_str(name);
            out.push_str(if value.is_empty() { when_empty } else { "=" });
        }
        (self.escape)(value, out);
    }

    fn pair(&self, name: &str, value: &str, out: &mut String) {
        (self.escape)(name, out);
        match self.names {
            Names::Before(when_empty) if value.is_empty() => out.push_str(when_empty),
            _ => out.push('='),
        }
        (self.escape)(value, out);
    }
}

fn expand_one(expression: &Expression, variables: &Variables, out: &mut String) {
    let style = Style::of(expression.operator);
    let mut before = style.first;
    for variable in &expression.variables {
        // A list without members is undefined: RFC 6570 §2.3.
        let Some(value) = variables.any(&variable.name).filter(|value| !is_bare(value)) else {
            continue;
        };
        out.push_str(before);
        before = style.between;
        expand_value(variable, value, &style, out);
    }
}

fn is_bare(value: &VariableValue) -> bool {
    match value {
        VariableValue::Text(TextValue::One(_)) => false,
        VariableValue::Text(TextValue::Many(texts)) => texts.is_empty(),
        VariableValue::Pairs(pairs) => pairs.is_empty(),
    }
}

fn expand_value(variable: &Variable, value: &VariableValue, style: &Style, out: &mut String) {
    let name = &variable.name;
    match (value, variable.modifier) {
        (VariableValue::Text(TextValue::One(text)), Modifier::Prefix(length)) => {
            let end = text.char_indices().nth(length).map_or(text.len(), |(end, _)| end);
            style.named(name, &text[..end], out);
        }
        (VariableValue::Text(TextValue::One(text)), _) => style.named(name, text, out),
        (VariableValue::Text(TextValue::Many(texts)), Modifier::Explode) => {
            join(texts, style.between, out, |text, out| style.named(name, text, out));
        }
        (VariableValue::Pairs(pairs), Modifier::Explode) => {
            join(pairs, style.between, out, |(key, text), out| style.pair(key, text, out));
        }
        (VariableValue::Text(TextValue::Many(texts)), _) => {
            open(name, style, out);
            join(texts, ",", out, |text, out| (style.escape)(text, out));
        }
        (VariableValue::Pairs(pairs), _) => {
            open(name, style, out);
            join(pairs, ",", out, |(key, text), out| {
                (style.escape)(key, out);
                out.push(',');
                (style.escape)(text, out);
            });
        }
    }
}

/// Appends the name of a value that is not empty.
fn open(name: &str, style: &Style, out: &mut String) {
    if let Names::Before(_) = style.names {
        out.push_str(name);
        out.push('=');
    }
}

fn join<T>(items: &[T], between: &str, out: &mut String, mut push: impl FnMut(&T, &mut String)) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push_str(between);
        }
        push(item, out);
    }
}

#[cfg(test)]
mod tests;
