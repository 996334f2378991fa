//! The names under which a model sees the tools and prompts of many servers.
//!
//! An item keeps its own name if no other item has it. If several items have one name, all of them get
//! their server's name as a prefix, so that names do not depend on the order in which servers answer. A name
//! has at most 64 characters of `A-Z a-z 0-9 _ -`, which models accept; other names are cut, and end with
//! a hash of the original.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The longest name that models accept.
pub(super) const LONGEST: usize = 64;
/// The longest prefix of a server in a name that is cut.
const SERVER: usize = 20;
/// The digits of a hash at the end of a name.
const DIGITS: usize = 10;

/// A server, and the name of an item there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Origin {
    pub(super) server: String,
    pub(super) name: String,
}

/// The names of all items.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_origin: BTreeMap<Origin, String>,
    by_name: HashMap<String, Origin>,
}

/// The items of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    One(&'a Origin),
    /// Several items, which have these names instead.
    Several(Vec<&'a str>),
    None,
}

impl Names {
    /// Names these items. Neither order nor duplicates matter.
    pub(super) fn of(origins: impl IntoIterator<Item = Origin>) -> Names {
        let origins: BTreeSet<Origin> = origins.into_iter().collect();
        let plain: BTreeMap<&Origin, String> =
            origins.iter().map(|origin| (origin, own(&origin.name))).collect();
        let mut qualified = colliding(&plain);
        // A server-prefixed name always wins. An item whose plain name equals it is prefixed as well,
        // which may collide again: each turn prefixes at least one more item.
        let names = loop {
            let names = with_servers(&qualified);
            let taken: HashSet<&str> = names.values().map(String::as_str).collect();
            let before = qualified.len();
            let in_the_way = plain.iter().filter(|(_, name)| taken.contains(name.as_str()));
            let more: Vec<&Origin> = in_the_way.map(|(origin, _)| *origin).collect();
            qualified.extend(more);
            if qualified.len() == before {
                break names;
            }
        };
        let name_of = |origin: &Origin| names.get(origin).unwrap_or(&plain[origin]).clone();
        let by_origin: BTreeMap<Origin, String> =
            origins.iter().map(|origin| (origin.clone(), name_of(origin))).collect();
        let by_name =
            by_origin.iter().map(|(origin, name)| (name.clone(), origin.clone())).collect();
        Names { by_origin, by_name }
    }

    /// Returns the name of an item.
    pub(super) fn name(&self, origin: &Origin) -> Option<&str> {
        self.by_origin.get(origin).map(String::as_str)
    }

    /// Returns the items of a name. A plain or prefixed name that is not in use is found, too, if it is
    /// unambiguous.
    pub(super) fn find(&self, name: &str) -> Found<'_> {
        if let Some(origin) = self.by_name.get(name) {
            return Found::One(origin);
        }
        let meant = |origin: &Origin| {
            origin.name == name || own(&origin.name) == name || with_server(origin) == name
        };
        let mut found = self.by_origin.iter().filter(|(origin, _)| meant(origin));
        match (found.next(), found.next()) {
            (None, _) => Found::None,
            (Some((origin, _)), None) => Found::One(origin),
            (Some((_, first)), Some((_, second))) => {
                let others = found.map(|(_, name)| name.as_str());
                Found::Several([first.as_str(), second].into_iter().chain(others).collect())
            }
        }
    }

    /// Returns all names, ordered by server.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = &str> {
        self.by_origin.values().map(String::as_str)
    }

    /// Returns up to three similar names, the most similar first.
    pub(super) fn near(&self, name: &str) -> Vec<&str> {
        let wanted = name.to_ascii_lowercase();
        // A text that is much longer than any name is similar to none, and slow to compare.
        if wanted.chars().count() > 2 * LONGEST {
            return Vec::new();
        }
        let distance = |origin: &Origin, known: &str| {
            // Other hosts have other separators and prefixes.
            if behind_its_server(&wanted, origin) {
                return Some(0);
            }
            let spelt = [known, &own(&origin.name)].map(str::to_ascii_lowercase);
            spelt.iter().filter_map(|known| close(&wanted, known)).min()
        };
        let known = self.by_origin.iter();
        let mut near: Vec<(usize, &str)> = known
            .filter_map(|(origin, known)| Some((distance(origin, known)?, known.as_str())))
            .collect();
        near.sort();
        near.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

/// Returns the items whose plain name is not unique.
fn colliding<'a>(plain: &BTreeMap<&'a Origin, String>) -> BTreeSet<&'a Origin> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for name in plain.values() {
        *count.entry(name).or_default() += 1;
    }
    plain.iter().filter(|(_, name)| count[name.as_str()] > 1).map(|(origin, _)| *origin).collect()
}

/// Returns unique prefixed names: `b_c` of `a` and `c` of `a_b` would be the same, and get a hash.
fn with_servers<'a>(origins: &BTreeSet<&'a Origin>) -> BTreeMap<&'a Origin, String> {
    let mut count: HashMap<String, usize> = HashMap::new();
    for origin in origins {
        *count.entry(with_server(origin)).or_default() += 1;
    }
    let mut names: BTreeMap<&Origin, String> = BTreeMap::new();
    let mut taken: HashSet<String> =
        count.iter().filter(|(_, count)| **count == 1).map(|(name, _)| name.clone()).collect();
    for origin in origins {
        let name = with_server(origin);
        if count[&name] == 1 {
            names.insert(origin, name);
            continue;
        }
        // Hashes may collide; then the next one is tried, always in the same order.
        let mut tries = 0u32;
        let name = loop {
            let name = hashed(&origin.server, &origin.name, tries);
            if taken.insert(name.clone()) {
                break name;
            }
            tries += 1;
        };
        names.insert(origin, name);
    }
    names
}

/// Returns the plain name, changed where models do not accept it.
fn own(name: &str) -> String {
    if fits(name) && name.len() <= LONGEST {
        return name.to_owned();
    }
    let end = digits(&[name.as_bytes()]);
    format!("{}_{end}", cut(&clean(name), LONGEST - 1 - DIGITS))
}

/// Returns the name with the server's as a prefix.
fn with_server(origin: &Origin) -> String {
    let Origin { server, name } = origin;
    let joined = format!("{}_{name}", clean(server));
    if fits(name) && joined.len() <= LONGEST { joined } else { hashed(server, name, 0) }
}

fn hashed(server: &str, name: &str, tries: u32) -> String {
    let end = digits(&[server.as_bytes(), &[0], name.as_bytes(), &tries.to_le_bytes()]);
    let (server, name) = (clean(server), clean(name));
    let room = LONGEST - 2 - DIGITS;
    // A short name leaves more characters to the server.
    let server = cut(&server, SERVER.max(room.saturating_sub(name.len())));
    format!("{server}_{}_{end}", cut(&name, room - server.len()))
}

fn fits(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Replaces each character that models do not accept by `_`.
fn clean(name: &str) -> String {
    let plain = |character: char| u8::try_from(character).ok().filter(|byte| is_plain(*byte));
    name.chars().map(|character| plain(character).map_or('_', char::from)).collect()
}

fn cut(name: &str, longest: usize) -> &str {
    &name[..name.len().min(longest)]
}

/// Returns digits of an FNV-1a hash, which is the same on every machine and in every version. It does not
/// have to resist attacks.
fn digits(parts: &[&[u8]]) -> String {
    let bytes = parts.iter().flat_map(|part| part.iter());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // Folded, because the upper bits of a short text's hash differ more.
    let hash = (hash >> 40) ^ (hash & ((1 << (4 * DIGITS)) - 1));
    format!("{hash:0width$x}", width = DIGITS)
}

/// Returns whether a name is an item's with its server's before it: `mcp__notes__search`.
fn behind_its_server(wanted: &str, origin: &Origin) -> bool {
    let clean = |name: &str| clean(name).to_ascii_lowercase();
    let (wanted, server, name) = (clean(wanted), clean(&origin.server), clean(&origin.name));
    let is_between = |character: char| !character.is_ascii_alphanumeric();
    let front = wanted.strip_suffix(&name).filter(|front| front.ends_with(is_between));
    let front = front.and_then(|front| front.trim_end_matches(is_between).strip_suffix(&server));
    !name.is_empty() && front.is_some_and(|rest| rest.is_empty() || rest.ends_with(is_between))
}

/// Returns the distance of two names if they are similar: one edit in a short name, a third of the
/// characters in a long one, and never all of them.
fn close(one: &str, other: &str) -> Option<usize> {
    let shorter = one.chars().count().min(other.chars().count());
    let most = if shorter <= 5 { 1 } else { shorter / 3 };
    Some(strsim::osa_distance(one, other)).filter(|steps| *steps <= most && *steps < shorter)
}

#[cfg(test)]
mod tests;
