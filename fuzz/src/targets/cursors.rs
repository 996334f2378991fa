//! Cursors of lists.

use std::sync::Once;

use serde_json::{Value, json};
use turnbuckle::__seam::fuzzing::seal;

use crate::endpoint::{Endpoint, KEYS};

const LISTS: [(&str, &str, &str); 2] =
    [("tool", "tools/list", "tools"), ("resource", "resources/list", "resources")];

/// The first byte chooses the list, and whether the rest is a cursor or the content of one.
pub fn run(data: &[u8]) {
    static CHECKED: Once = Once::new();
    // The seal below has to be the one of the server, or the target finds nothing.
    CHECKED.call_once(|| {
        LISTS.iter().for_each(|list| assert!(page(list, &sealed(list, &[0; 25])).is_some()));
    });
    let Some((choice, rest)) = data.split_first() else { return };
    let list = &LISTS[usize::from(choice % 2)];
    if choice % 4 < 2 {
        if let Ok(cursor) = std::str::from_utf8(rest) {
            assert_eq!(page(list, cursor), None, "a cursor is accepted that was not given out");
        }
        return;
    }
    let cursor = sealed(list, rest);
    if let Some(items) = page(list, &cursor) {
        assert!(rest.len() == 25 && items <= 2);
        let other = &LISTS[usize::from(choice % 2 == 0)];
        assert_eq!(page(other, &cursor), None, "a cursor of another list is accepted");
    }
}

/// Returns the number of items of the page at a cursor, or `None` if it is refused.
fn page((_, method, member): &(&str, &str, &str), cursor: &str) -> Option<usize> {
    let params = json!({"cursor": cursor}).to_string();
    let answer: Value = Endpoint::new().call(method, None, &params);
    if let Some(items) = answer["result"][member].as_array() {
        return Some(items.len());
    }
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    None
}

fn sealed((kind, _, _): &(&str, &str, &str), content: &[u8]) -> String {
    seal(&KEYS, format!("cursor {kind}\0").as_bytes(), content)
}
