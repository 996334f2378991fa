//! Owns whether two templates can both match one address. Does not own what follows from that.

use super::characters::{Set, Token};
use super::plan::{Fragment, Plan, Query, Step};
use super::syntax::Modifier;

/// One place in the addresses that a template matches.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// One of these characters.
    One(Set),
    /// Any number of them.
    Many(Set),
    /// Perhaps nothing before the place with that number.
    Optional(usize),
}

/// The addresses that a plan matches. What they may hold beside that (an escape that is no text, a
/// value longer than `:3` allows, a name that is there twice) is not told apart.
pub(super) fn places(plan: &Plan) -> Vec<Place> {
    let mut places = Vec::new();
    plan.before.iter().for_each(|step| push_step(step, &mut places));
    if plan.wide.is_some() {
        places.extend([Place::One(Set::ALL), Place::Many(Set::ALL)]);
        let mut after = Vec::new();
        plan.after.iter().for_each(|step| push_step(step, &mut after));
        // `Many` follows `One` of the same set, so that their order does not matter.
        places.extend(after.iter().rev());
    }
    match &plan.query {
        Query::None => {}
        Query::Whole(_) => push_optional(&[one(b'?'), Place::Many(Set::ALL)], &mut places),
        Query::Rest { .. } => push_optional(&[one(b'&'), Place::Many(Set::ALL)], &mut places),
    }
    match &plan.fragment {
        Fragment::None => {}
        Fragment::Literal(text) => push_text(text, &mut places),
        Fragment::Variable(_) => push_optional(&[one(b'#'), Place::Many(Set::ALL)], &mut places),
    }
    places
}

/// Whether some address is among both. Each pair of places is looked at once.
pub(super) fn overlap(left: &[Place], right: &[Place]) -> bool {
    let width = right.len() + 1;
    let mut seen = vec![0_u64; ((left.len() + 1) * width).div_ceil(64)];
    let mut pairs = vec![(0, 0)];
    while let Some((i, j)) = pairs.pop() {
        let number = i * width + j;
        if seen[number / 64] >> (number % 64) & 1 == 1 {
            continue;
        }
        seen[number / 64] |= 1 << (number % 64);
        if (i, j) == (left.len(), right.len()) {
            return true;
        }
        pairs.extend(skips(left, i).map(|i| (i, j)));
        pairs.extend(skips(right, j).map(|j| (i, j)));
        if let (Some((a, i)), Some((b, j))) = (taken(left, i), taken(right, j))
            && a.meets(b)
        {
            pairs.push((i, j));
        }
    }
    false
}

/// Where one can go from a place without a character.
fn skips(places: &[Place], at: usize) -> impl Iterator<Item = usize> {
    let (next, far) = match places.get(at) {
        None | Some(Place::One(_)) => (None, None),
        Some(Place::Many(_)) => (Some(at + 1), None),
        Some(Place::Optional(end)) => (Some(at + 1), Some(*end)),
    };
    next.into_iter().chain(far)
}

/// The characters that a place takes, and where one is then.
fn taken(places: &[Place], at: usize) -> Option<(Set, usize)> {
    match places.get(at)? {
        Place::One(set) => Some((*set, at + 1)),
        Place::Many(set) => Some((*set, at)),
        Place::Optional(_) => None,
    }
}

fn push_step(step: &Step, places: &mut Vec<Place>) {
    match step {
        Step::Literal(text) => push_text(text, places),
        Step::Run { stops, ending, .. } => {
            places.extend([Place::One(stops.except()), Place::Many(stops.except())]);
            push_text(ending, places);
        }
        Step::Marked { slots, mark, stops } => {
            // The last ones may be absent, so each may be left for the end of all.
            let end = places.len() + 3 * slots.len();
            for slot in slots {
                let value = match slot.modifier {
                    Modifier::Explode => stops.except().and(Set::one(*mark)),
                    Modifier::None | Modifier::Prefix(_) => stops.except(),
                };
                places.push(Place::Optional(end));
                places.extend([Place::One(Set::one(*mark)), Place::Many(value)]);
            }
        }
        Step::Named { stops, .. } => {
            push_optional(&[one(b';'), Place::Many(stops.except().and(Set::of(b";")))], places);
        }
    }
}

fn push_text(text: &[Token], places: &mut Vec<Place>) {
    places.extend(text.iter().map(|token| Place::One(Set::one(*token))));
}

fn push_optional(inner: &[Place], places: &mut Vec<Place>) {
    places.push(Place::Optional(places.len() + 1 + inner.len()));
    places.extend(inner);
}

fn one(byte: u8) -> Place {
    Place::One(Set::of(&[byte]))
}
