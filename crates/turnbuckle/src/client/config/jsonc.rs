//! Owns what editors allow in JSON and JSON does not: comments, and a comma before a closing
//! bracket. Does not own JSON: what is left is read by the JSON parser, which finds every other
//! mistake at the line and column where it stands in the file.

/// The text with comments and trailing commas blanked out.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut state = State::Between;
    // Where the last character that means something stands, and whether it may be a comma too many.
    let mut comma = None;
    let mut before = '[';
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match state {
            State::Text => {
                if character == '\\' {
                    out.push(character);
                    out.extend(rest.next());
                    continue;
                }
                if character == '"' {
                    state = State::Between;
                }
            }
            State::Line if matches!(character, '\n' | '\r') => state = State::Between,
            State::Block if character == '*' && rest.peek() == Some(&'/') => {
                rest.next();
                state = State::Between;
                out.push_str("  ");
                continue;
            }
            State::Line | State::Block => {
                out.push(blank(character));
                continue;
            }
            State::Between => match (character, rest.peek()) {
                ('/', Some('/')) => state = State::Line,
                ('/', Some('*')) => {
                    rest.next();
                    out.push_str("  ");
                    state = State::Block;
                    continue;
                }
                _ if character.is_ascii_whitespace() => {}
                _ => {
                    if let ('}' | ']', Some(at)) = (character, comma) {
                        out.replace_range(at..at + 1, " ");
                    }
                    // One that follows nothing is a mistake, not a matter of taste.
                    let ends_a_value = !matches!(before, '{' | '[' | ',' | ':');
                    comma = (character == ',' && ends_a_value).then_some(out.len());
                    before = character;
                    if character == '"' {
                        state = State::Text;
                    }
                }
            },
        }
        out.push(if matches!(state, State::Line) { ' ' } else { character });
    }
    out
}

/// Where in the text we are.
enum State {
    Between,
    Text,
    Line,
    Block,
}

/// Line breaks stay, so that lines keep their numbers.
fn blank(character: char) -> char {
    if matches!(character, '\n' | '\r') { character } else { ' ' }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str(&plain(text))
    }

    #[test]
    fn comments_and_trailing_commas_go() {
        let text = r#"// first
        {
            /* a, "b" ] */ "a": [1, 2, /* none */ ], // the rest } of the line
            "b": {"c": "x", },
        } // no line break at the end"#;
        assert_eq!(read(text).unwrap(), json!({"a": [1, 2], "b": {"c": "x"}}));
    }

    #[test]
    fn texts_are_left_alone() {
        let text = r#"{"a": "// no", "b": "/* no */ ,}", "c\"//": "\\", "d": ",]"}"#;
        assert_eq!(plain(text), text);
    }

    #[test]
    fn a_comma_that_follows_nothing_stays_a_mistake() {
        for text in ["[,]", "{,}", "[1,,]", r#"{"a":,}"#, "[1,", "[1 /", "/* [1]", "[1] /* */ x"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(read("[[],[],]").unwrap(), json!([[], []]));
        assert_eq!(read(r#"["a",]"#).unwrap(), json!(["a"]));
    }

    #[test]
    fn mistakes_keep_their_place() {
        let error = read("{ // ä\n /* x\n y */ \"a\": nope }").unwrap_err();
        assert_eq!((error.line(), error.column()), (3, 13));
    }

    proptest! {
        #[test]
        fn what_is_json_already_is_not_changed(text in "[ \\[\\]{},:\"/*\\\\a\n]{0,24}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(read(&text).unwrap(), value);
            }
            prop_assert_eq!(plain(&text).lines().count(), text.lines().count());
        }
    }
}
