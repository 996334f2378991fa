//! Owns whether and how a template can be matched: each value's end is known by what follows it, so
//! that no address can be read in two ways, nor needs a second look. Does not own the looking.
//!
//! The part before `{?…}` and `{#…}` is read from the front up to a `{+x}`, if there is one, and from
//! the back down to it; `{+x}` is what remains.

use super::characters::{RESERVED, Set, Token, tokens};
use super::syntax::{Expression, Modifier, Operator, Piece, Variable, variables};
use super::template::TemplateError;

#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// From the front.
    pub(super) before: Vec<Step>,
    /// What `{+x}` takes.
    pub(super) wide: Option<Slot>,
    /// From the back, with all texts reversed. Invariant: literals and plain values only, and none
    /// unless there is something wide.
    pub(super) after: Vec<Step>,
    pub(super) query: Query,
    pub(super) fragment: Fragment,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Literal(Vec<Token>),
    /// `{x}`, or with commas in between `{x,y}` and `{x*}`.
    Run {
        slots: Vec<Slot>,
        stops: Set,
        ending: Vec<Token>,
    },
    /// `{/x,y}`, `{.x,y}`: each has its mark, and the last ones may be absent.
    Marked {
        slots: Vec<Slot>,
        mark: Token,
        stops: Set,
    },
    /// `{;x,y}`: each has its name.
    Named {
        slots: Vec<Slot>,
        stops: Set,
    },
}

#[derive(Debug, Clone)]
pub(super) enum Query {
    None,
    /// `{?x}`, perhaps with `{&y}`.
    Whole(Vec<Slot>),
    /// `?a=b{&x}`: the query of the template itself has as many `&`.
    Rest {
        ampersands: usize,
        slots: Vec<Slot>,
    },
}

#[derive(Debug, Clone)]
pub(super) enum Fragment {
    None,
    Literal(Vec<Token>),
    Variable(Slot),
}

/// Where a value goes.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) spelled: Vec<Token>,
    pub(super) modifier: Modifier,
}

/// What no plain value holds as such.
const SEPARATORS: Set = Set::of(b"/?#");
const QUESTION_MARK: Token = b'?' as Token;
const HASH: Token = b'#' as Token;

/// How a template is matched, or why it cannot be.
pub(super) fn plan(pieces: &[Piece]) -> Result<Plan, TemplateError> {
    refuse_repeated_names(pieces)?;
    let mut items = Vec::new();
    for piece in pieces {
        items.push(match piece {
            // An escape in a literal was checked when it was read.
            Piece::Literal(text) => Item::Literal(tokens(text).unwrap_or_default()),
            Piece::Expression(expression) => Item::Expression(expression),
        });
    }
    let (body, query, rest) = split(&items);
    let fragment = plan_fragment(rest)?;
    let query = plan_query(body, query)?;
    if !matches!((&query, &fragment), (Query::None, Fragment::None)) && literal_has(body, HASH) {
        return refuse("`#` stands before a query or a fragment: write it last, as in `{?q}{#f}`");
    }
    let mut wide = body.iter().enumerate().filter(|(_, item)| item.is(Operator::Reserved));
    let Some((at, item)) = wide.next() else {
        let before = Steps { items: body, end: End::Anchored }.plan()?;
        return Ok(Plan { before, wide: None, after: Vec::new(), query, fragment });
    };
    if let Some((_, second)) = wide.next() {
        return refuse(format!(
            "{item} and {second} both take any text, so that nobody can tell where the first \
             ends: keep one, and write the other as `{{name}}`"
        ));
    }
    if matches!(query, Query::Rest { .. }) {
        return refuse(format!(
            "{item} may hold `?` and `&`, so that `{{&…}}` cannot follow: write `{{?…}}` without \
             a `?` of your own"
        ));
    }
    let reversed: Vec<_> = body[at + 1..].iter().rev().map(Item::reversed).collect();
    if let Some(other) = reversed.iter().find(|item| !item.is_plain()) {
        return refuse(format!(
            "{other} follows {item}, which takes any text: only literal text, `{{name}}`, \
             `{{?…}}` and `{{#…}}` may"
        ));
    }
    Ok(Plan {
        before: Steps { items: &body[..at], end: End::Wide(item) }.plan()?,
        wide: Some(item.only_slot()?),
        after: Steps { items: &reversed, end: End::Wide(item) }.plan()?,
        query,
        fragment,
    })
}

fn refuse<T>(sentence: impl Into<String>) -> Result<T, TemplateError> {
    Err(TemplateError::new(sentence))
}

fn refuse_repeated_names(pieces: &[Piece]) -> Result<(), TemplateError> {
    let mut names: Vec<_> = variables(pieces).map(|variable| &variable.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            refuse(format!("`{}` is there twice: give each variable a name of its own", pair[0]))
        }
    }
}

#[derive(Debug, Clone)]
enum Item<'t> {
    Literal(Vec<Token>),
    Expression(&'t Expression),
}

impl Item<'_> {
    fn is(&self, operator: Operator) -> bool {
        matches!(self, Item::Expression(expression) if expression.operator == operator)
    }

    /// Literal text or one plain value.
    fn is_plain(&self) -> bool {
        match self {
            Item::Literal(_) => true,
            Item::Expression(expression) => {
                expression.operator == Operator::Simple
                    && expression.variables.len() == 1
                    && expression.variables[0].modifier != Modifier::Explode
            }
        }
    }

    fn reversed(&self) -> Self {
        match self {
            Item::Literal(text) => Item::Literal(text.iter().rev().copied().collect()),
            item => item.clone(),
        }
    }

    /// The variable of an expression whose values may hold commas.
    fn only_slot(&self) -> Result<Slot, TemplateError> {
        match self {
            Item::Expression(Expression { variables, .. })
                if variables.len() == 1 && variables[0].modifier != Modifier::Explode =>
            {
                Ok(Slot::new(&variables[0]))
            }
            item => refuse(format!(
                "the values in {item} may hold commas, so that nobody can tell where one ends: \
                 write one variable without `*`"
            )),
        }
    }
}

impl std::fmt::Display for Item<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Item::Literal(_) => f.write_str("text"),
            Item::Expression(expression) => write!(f, "`{expression}`"),
        }
    }
}

impl Slot {
    fn new(variable: &Variable) -> Slot {
        // An escape in a name was checked when it was read.
        let spelled = tokens(&variable.name).unwrap_or_default();
        Slot { name: variable.name.clone(), spelled, modifier: variable.modifier }
    }
}

/// What comes before the query, the query, and what comes after it.
fn split<'i, 't>(items: &'i [Item<'t>]) -> (&'i [Item<'t>], &'i [Item<'t>], &'i [Item<'t>]) {
    let is_query = |item: &Item<'_>| item.is(Operator::Query) || item.is(Operator::Continuation);
    let body = items.iter().position(|item| is_query(item) || item.is(Operator::Fragment));
    let (body, rest) = items.split_at(body.unwrap_or(items.len()));
    let query = rest.iter().position(|item| !is_query(item));
    let (query, rest) = rest.split_at(query.unwrap_or(rest.len()));
    (body, query, rest)
}

fn plan_fragment(rest: &[Item<'_>]) -> Result<Fragment, TemplateError> {
    match rest {
        [] => Ok(Fragment::None),
        [Item::Literal(text)] if text[0] == HASH => Ok(Fragment::Literal(text.clone())),
        [item] if item.is(Operator::Fragment) => Ok(Fragment::Variable(item.only_slot()?)),
        [first, second, ..] if first.is(Operator::Fragment) => {
            refuse(format!("{second} follows {first}, which takes the rest: write it last"))
        }
        [item, ..] => refuse(format!(
            "{item} follows the query: write `{{?…}}` and `{{&…}}` after everything but `{{#…}}`"
        )),
    }
}

fn plan_query(body: &[Item<'_>], query: &[Item<'_>]) -> Result<Query, TemplateError> {
    let [first, others @ ..] = query else { return Ok(Query::None) };
    let has_question_mark = literal_has(body, QUESTION_MARK);
    let slots = query.iter().flat_map(|item| match item {
        Item::Literal(_) => &[][..],
        Item::Expression(expression) => &expression.variables,
    });
    let slots = slots.map(Slot::new).collect();
    if let Some(second) = others.iter().find(|item| item.is(Operator::Query)) {
        return refuse(format!("{second} is a second query: write `&` in place of its `?`"));
    }
    match (first.is(Operator::Query), has_question_mark) {
        (true, false) => Ok(Query::Whole(slots)),
        (false, true) => {
            let literals = body.iter().flat_map(|item| match item {
                Item::Literal(text) => &text[..],
                Item::Expression(_) => &[],
            });
            let query = literals.skip_while(|token| **token != QUESTION_MARK);
            let ampersands = query.filter(|token| **token == Token::from(b'&')).count();
            Ok(Query::Rest { ampersands, slots })
        }
        (true, true) => {
            refuse(format!("there is a `?` before {first}: write `&` in place of its `?`"))
        }
        (false, false) => {
            refuse(format!("there is no `?` before {first}: write `?` in place of its `&`"))
        }
    }
}

fn literal_has(items: &[Item<'_>], token: Token) -> bool {
    items.iter().any(|item| matches!(item, Item::Literal(text) if text.contains(&token)))
}

/// What comes after the last item.
#[derive(Clone, Copy)]
enum End<'i, 't> {
    /// Nothing.
    Anchored,
    /// Any text.
    Wide(&'i Item<'t>),
}

struct Steps<'i, 't> {
    items: &'i [Item<'t>],
    end: End<'i, 't>,
}

impl Steps<'_, '_> {
    fn plan(&self) -> Result<Vec<Step>, TemplateError> {
        let mut steps = Vec::new();
        let mut in_query = false;
        // How much of the next literal belongs to the run before it.
        let mut taken = 0;
        for (at, item) in self.items.iter().enumerate() {
            match item {
                Item::Literal(text) => {
                    in_query |= text.contains(&QUESTION_MARK);
                    if taken < text.len() {
                        steps.push(Step::Literal(text[taken..].to_vec()));
                    }
                    taken = 0;
                }
                Item::Expression(expression) => {
                    let mut step = self.plan_expression(expression, at)?;
                    if let Step::Run { stops, ending, .. } = &mut step {
                        taken = ending.len();
                        if in_query {
                            *stops = stops.and(Set::of(b"&"));
                        }
                    }
                    steps.push(step);
                }
            }
        }
        Ok(steps)
    }

    fn plan_expression(&self, expression: &Expression, at: usize) -> Result<Step, TemplateError> {
        let slots: Vec<_> = expression.variables.iter().map(Slot::new).collect();
        let (mark, own) = match expression.operator {
            Operator::Label => (b'.', Set::of(b".")),
            Operator::Segment => (b'/', Set::of(b"/")),
            Operator::Parameter => (b';', Set::of(b";=")),
            // The other operators are not in the body.
            _ if is_list(expression) => (b',', Set::of(b",")),
            _ => (b',', Set::NONE),
        };
        let (ending, next) = match self.next(at + 1) {
            Some((ending, next)) if expression.operator == Operator::Simple => (ending, next),
            Some((ending, next)) if ending.is_empty() => (ending, next),
            _ => return Err(self.no_end(expression, at)),
        };
        if next.meets(own) {
            return refuse(format!(
                "what comes after `{expression}` also comes in it, so that nobody can tell where it \
                 ends: write something else after it"
            ));
        }
        if expression.operator != Operator::Parameter {
            refuse_early_list(expression)?;
        }
        let stops = SEPARATORS.and(next);
        Ok(match expression.operator {
            Operator::Parameter => Step::Named { slots, stops },
            Operator::Label | Operator::Segment => {
                Step::Marked { slots, mark: mark.into(), stops: stops.and(own) }
            }
            _ => Step::Run { slots, stops, ending },
        })
    }

    /// How a value that ends before this item is told from what follows: by the text that it is
    /// followed by, and by the reserved characters of which one comes then, or by the end.
    fn next(&self, at: usize) -> Option<(Vec<Token>, Set)> {
        let Some(Item::Literal(text)) = self.items.get(at) else {
            return Some((Vec::new(), self.first(at)?));
        };
        match text.iter().position(|token| RESERVED.contains(*token)) {
            Some(end) => Some((text[..end].to_vec(), Set::one(text[end]))),
            None => Some((text.clone(), self.first(at + 1)?)),
        }
    }

    /// The reserved characters that this item and those after it can begin with; `None` if they can
    /// begin with others.
    fn first(&self, at: usize) -> Option<Set> {
        match (self.items.get(at), self.end) {
            (None, End::Anchored) => Some(Set::NONE),
            (None, End::Wide(_)) => None,
            (Some(Item::Literal(text)), _) => RESERVED.contains(text[0]).then(|| Set::one(text[0])),
            (Some(Item::Expression(expression)), _) => {
                let own = match expression.operator {
                    Operator::Segment => Set::of(b"/"),
                    Operator::Parameter => Set::of(b";"),
                    _ => return None,
                };
                Some(own.and(self.first(at + 1)?))
            }
        }
    }

    fn no_end(&self, expression: &Expression, at: usize) -> TemplateError {
        let end = match self.end {
            End::Wide(item) => Some(item),
            End::Anchored => None,
        };
        let is_expression = |item: &&Item<'_>| matches!(item, Item::Expression(_));
        let next = self.items[at + 1..].iter().find(is_expression).or(end);
        let whose = next.map(|next| format!(" and {next}")).unwrap_or_default();
        TemplateError::new(format!(
            "nobody can tell where `{expression}` ends, because what follows could be part of its \
             value: write a `/` or another of `:?#@!$&()*+,;=` after it, between it{whose}"
        ))
    }
}

fn is_list(expression: &Expression) -> bool {
    expression.variables.len() > 1 || expression.variables[0].modifier == Modifier::Explode
}

fn refuse_early_list(expression: &Expression) -> Result<(), TemplateError> {
    let [others @ .., _] = &expression.variables[..] else { return Ok(()) };
    match others.iter().find(|variable| variable.modifier == Modifier::Explode) {
        None => Ok(()),
        Some(variable) => refuse(format!(
            "`{}*` in `{expression}` takes all values that follow: write it last",
            variable.name
        )),
    }
}
