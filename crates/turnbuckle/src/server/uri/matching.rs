//! Owns reading the values out of an address, by a plan. Each character is looked at a fixed number
//! of times, whatever the template and the address. Does not own which templates can be matched.

use super::characters::{Set, Token, decode};
use super::plan::{Fragment, Plan, Query, Slot, Step};
use super::syntax::Modifier;
use super::variables::{TextValue, Value, Variables};

/// The longest address.
pub(super) const LONGEST: usize = 8192;

/// What an address says, and how many characters were looked at to know it.
pub(super) fn read(plan: &Plan, uri: &[Token]) -> (Option<Variables>, usize) {
    let mut reader = Reader { variables: Variables::new(), looks: 0 };
    let found = reader.address(plan, uri);
    (found.map(|()| reader.variables), reader.looks)
}

struct Reader {
    variables: Variables,
    looks: usize,
}

/// The order in which the characters of a slice were written.
#[derive(Clone, Copy)]
enum Order {
    Forwards,
    Backwards,
}

impl Reader {
    fn address(&mut self, plan: &Plan, uri: &[Token]) -> Option<()> {
        let uri = self.fragment(&plan.fragment, uri)?;
        let body = self.query(&plan.query, uri)?;
        let rest = self.steps(&plan.before, body, Order::Forwards)?;
        let Some(wide) = &plan.wide else { return rest.is_empty().then_some(()) };
        // Nothing after it, as a rule.
        if plan.after.is_empty() {
            return self.plain(wide, rest, Order::Forwards);
        }
        let reversed: Vec<_> = rest.iter().rev().copied().collect();
        self.looks += reversed.len();
        let rest = self.steps(&plan.after, &reversed, Order::Backwards)?;
        self.plain(wide, rest, Order::Backwards)
    }

    /// Reads the fragment and leaves what is before it.
    fn fragment<'u>(&mut self, fragment: &Fragment, uri: &'u [Token]) -> Option<&'u [Token]> {
        if let Fragment::None = fragment {
            return Some(uri);
        }
        let (before, rest) = self.split_before(uri, Set::of(b"#"));
        match fragment {
            Fragment::None => {}
            Fragment::Literal(text) if rest == text => {}
            Fragment::Literal(_) => return None,
            Fragment::Variable(_) if rest.is_empty() => {}
            Fragment::Variable(slot) => self.put(slot, &rest[1..], Order::Forwards)?,
        }
        Some(before)
    }

    /// Reads the query and leaves what is before it.
    fn query<'u>(&mut self, query: &Query, uri: &'u [Token]) -> Option<&'u [Token]> {
        let (slots, before) = match query {
            Query::None => return Some(uri),
            Query::Whole(slots) => (slots, self.split_before(uri, Set::of(b"?")).0.len()),
            Query::Rest { ampersands, slots } => {
                let mut before = self.split_before(uri, Set::of(b"?")).0.len();
                for _ in 0..=*ampersands {
                    // From behind the `?`, or the `&` that the template itself has.
                    let start = (before + 1).min(uri.len());
                    before = start + self.split_before(&uri[start..], Set::of(b"&")).0.len();
                }
                (slots, before.min(uri.len()))
            }
        };
        let (before, rest) = uri.split_at(before);
        self.looks += rest.len();
        if rest.contains(&Token::from(b'#')) {
            return None;
        }
        let parameters =
            rest.get(1..).unwrap_or_default().split(|token| *token == Token::from(b'&'));
        for parameter in parameters {
            self.looks += parameter.len();
            let (name, value) = split_name(parameter);
            // Others are not for us, as is usual with queries.
            if let Some(slot) = slots.iter().find(|slot| slot.spelled == name) {
                self.put(slot, value, Order::Forwards)?;
            } else {
                decode(parameter.iter().copied())?;
            }
        }
        Some(before)
    }

    /// Takes the steps and leaves what is behind them.
    fn steps<'u>(
        &mut self,
        steps: &[Step],
        mut rest: &'u [Token],
        order: Order,
    ) -> Option<&'u [Token]> {
        for step in steps {
            rest = match step {
                Step::Literal(text) => {
                    self.looks += text.len();
                    rest.strip_prefix(&text[..])?
                }
                Step::Run { slots, stops, ending } => {
                    let (run, rest) = self.split_before(rest, *stops);
                    let run = run.strip_suffix(&ending[..])?;
                    self.looks += ending.len();
                    self.run(slots, run, order)?;
                    rest
                }
                Step::Marked { slots, mark, stops } => self.marked(slots, *mark, *stops, rest)?,
                Step::Named { slots, stops } => self.named(slots, *stops, rest)?,
            };
        }
        Some(rest)
    }

    /// `{x}`, `{x,y}`, `{x*}`.
    fn run(&mut self, slots: &[Slot], run: &[Token], order: Order) -> Option<()> {
        match slots {
            [slot] if slot.modifier != Modifier::Explode => self.plain(slot, run, order),
            _ if run.is_empty() => None,
            slots => {
                self.looks += run.len();
                let mut slots = slots.iter();
                let mut slot = slots.next()?;
                for (at, item) in run.split(|token| *token == Token::from(b',')).enumerate() {
                    if at > 0 && slot.modifier != Modifier::Explode {
                        slot = slots.next()?;
                    }
                    self.put(slot, item, order)?;
                }
                Some(())
            }
        }
    }

    /// `{/x,y}`, `{.x}`.
    fn marked<'u>(
        &mut self,
        slots: &[Slot],
        mark: Token,
        stops: Set,
        mut rest: &'u [Token],
    ) -> Option<&'u [Token]> {
        let mut slots = slots.iter();
        let mut last: Option<&Slot> = None;
        while let Some(behind) = rest.strip_prefix(&[mark]) {
            let slot = match last {
                Some(slot) if slot.modifier == Modifier::Explode => slot,
                _ => slots.next()?,
            };
            let (value, behind) = self.split_before(behind, stops);
            self.put(slot, value, Order::Forwards)?;
            (last, rest) = (Some(slot), behind);
        }
        Some(rest)
    }

    /// `{;x,y}`.
    fn named<'u>(
        &mut self,
        slots: &[Slot],
        stops: Set,
        mut rest: &'u [Token],
    ) -> Option<&'u [Token]> {
        let stops = stops.and(Set::of(b";"));
        while let Some(behind) = rest.strip_prefix(&[Token::from(b';')]) {
            let (parameter, behind) = self.split_before(behind, stops);
            let (name, value) = split_name(parameter);
            let slot = slots.iter().find(|slot| slot.spelled == name)?;
            self.put(slot, value, Order::Forwards)?;
            rest = behind;
        }
        Some(rest)
    }

    fn split_before<'u>(&mut self, text: &'u [Token], stops: Set) -> (&'u [Token], &'u [Token]) {
        let end = text.iter().position(|token| stops.contains(*token)).unwrap_or(text.len());
        self.looks += end;
        text.split_at(end)
    }

    /// A value that nothing marks is there only if it has a character.
    fn plain(&mut self, slot: &Slot, text: &[Token], order: Order) -> Option<()> {
        if text.is_empty() { None } else { self.put(slot, text, order) }
    }

    /// Keeps a value; not if it is no text, is too long, or is there already.
    fn put(&mut self, slot: &Slot, text: &[Token], order: Order) -> Option<()> {
        self.looks += text.len();
        let text = match order {
            Order::Forwards => decode(text.iter().copied())?,
            Order::Backwards => decode(text.iter().rev().copied())?,
        };
        let place = self.variables.place(&slot.name);
        match slot.modifier {
            Modifier::Explode => {
                let value = place.or_insert(Value::Text(TextValue::Many(Vec::new())));
                if let Value::Text(TextValue::Many(texts)) = value {
                    texts.push(text);
                }
                return Some(());
            }
            Modifier::Prefix(longest) if text.chars().nth(longest).is_some() => return None,
            Modifier::None | Modifier::Prefix(_) => {}
        }
        match place {
            std::collections::btree_map::Entry::Occupied(_) => None,
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Value::Text(TextValue::One(text)));
                Some(())
            }
        }
    }
}

/// `name=value`, or a name alone.
fn split_name(parameter: &[Token]) -> (&[Token], &[Token]) {
    let end = parameter.iter().position(|token| *token == Token::from(b'='));
    let (name, value) = parameter.split_at(end.unwrap_or(parameter.len()));
    (name, value.get(1..).unwrap_or_default())
}
