//! Owns how a schema becomes that of one member of an object, so that its references still hold.
//! Does not own when that is needed.

use std::fmt::Write as _;

use crate::protocol::json_schema::rewrite::{Inside, rewrite};
use turnbuckle_types::{At, Named, Raw};

/// The schema of an object whose one member is a value of `schema`. Everything keeps its order.
pub(crate) fn wrap(schema: &Raw, property: &str) -> Raw {
    let mut wrapper = Named::<Raw>::new();
    let place = place(property);
    let mut dialect = None;
    let inner = rewrite(schema, &mut |members| {
        // The root comes first, and the dialect is a statement about the whole document.
        dialect.get_or_insert_with(|| members.remove("$schema"));
        move_to(&place, members)
    });
    if let Some(dialect) = dialect.flatten() {
        wrapper.insert("$schema", dialect);
    }
    wrapper.insert("type", string("object"));
    wrapper.insert("properties", text(&Named::from([(property, inner)])));
    wrapper.insert("required", Raw::at(&vec![property], At::Everything));
    text(&wrapper)
}

/// Repoints what refers to the document, which now begins at `place`.
fn move_to(place: &str, members: &mut Named<Raw>) -> Inside {
    // It is a document of its own: what it refers to has not moved.
    if members.value("$id").is_some_and(|id| !id.as_str().starts_with("\"#")) {
        return Inside::Stays;
    }
    // 2019-09 has this word for what `$ref` says when nothing extends the schema.
    if members.value("$ref").is_none()
        && let Some(target) = members.remove("$recursiveRef")
    {
        members.insert("$ref", target);
    }
    for keyword in ["$ref", "$dynamicRef"] {
        if let Some(target) = members.value(keyword).and_then(|target| reference(target, place)) {
            members.insert(keyword, target);
        }
    }
    Inside::Changes
}

/// Where a reference within the document points now. Those that name an anchor or another
/// document still hold.
fn reference(target: &Raw, place: &str) -> Option<Raw> {
    let target = target.decode::<String>().ok()?;
    let within = target == "#" || target.starts_with("#/");
    within.then(|| string(&format!("{place}{}", &target[1..])))
}

/// Where the member is: a JSON pointer, spelled as a URI's fragment.
fn place(property: &str) -> String {
    let mut place = "#/properties/".to_owned();
    for byte in property.replace('~', "~0").replace('/', "~1").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            place.push(byte.into());
        } else {
            // Writing into a `String` does not fail.
            let _ = write!(place, "%{byte:02X}");
        }
    }
    place
}

fn text(members: &Named<Raw>) -> Raw {
    Raw::at(members, At::Everything)
}

fn string(text: &str) -> Raw {
    Raw::at(text, At::Everything)
}

#[cfg(test)]
mod tests;
