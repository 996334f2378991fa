//! Parses files of environment variables (`.env`).
//!
//! The crates for this expand variables of the process in the values, or show a value in their errors,
//! which may be a secret.

/// Returns the variables of a file in their order, or a sentence that names the line of a mistake and
/// never a value.
///
/// Each variable is `NAME=value`, optionally after `export`. `#` begins a comment at the start of a
/// line or after a blank. Quoted values may span lines; in double quotes `\n`, `\r`, `\t`, `\"`, `\\`
/// and `\$` are escapes. Nothing is expanded.
pub(super) fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut variables = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
            continue;
        }
        let line = 1 + text[..text.len() - rest.len()].matches('\n').count();
        let (variable, after) =
            parse_variable(rest).map_err(|reason| format!("line {line}: {reason}"))?;
        variables.push(variable);
        rest = after.trim_start();
    }
    Ok(variables)
}

/// Returns the variable at the start of a text, and the text after it.
fn parse_variable(text: &str) -> Result<((String, String), &str), &'static str> {
    let (name, value) = text.split_once('=').ok_or("`NAME=value` is expected")?;
    let name = match name.strip_prefix("export") {
        Some(name) if name.starts_with([' ', '\t']) && !name.trim().is_empty() => name,
        _ => name,
    };
    let name = name.trim_matches([' ', '\t']);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err("`NAME=value` is expected");
    }
    let value = value.trim_start_matches([' ', '\t']);
    let (value, after) = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let (value, after) = parse_quoted(&value[1..], quote)?;
            let (tail, after) = after.split_once('\n').unwrap_or((after, ""));
            if !without_comment(tail).is_empty() {
                return Err("something follows the closing quotation mark");
            }
            (value, after)
        }
        _ => {
            let (value, after) = value.split_once('\n').unwrap_or((value, ""));
            (without_comment(value).to_owned(), after)
        }
    };
    if value.contains('\0') {
        return Err("holds a zero character");
    }
    Ok(((name.to_owned(), value), after))
}

/// Returns a line without its comment and the blanks at its end.
fn without_comment(line: &str) -> &str {
    let is_comment = |(at, _): &(usize, &str)| *at == 0 || line[..*at].ends_with([' ', '\t']);
    let comment = line.match_indices('#').find(is_comment);
    line[..comment.map_or(line.len(), |(at, _)| at)].trim_end()
}

/// Returns the value before the closing quotation mark, and the text after it.
fn parse_quoted(text: &str, quote: char) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            _ if character == quote => return Ok((value, characters.as_str())),
            '\\' if quote == '"' => match characters.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(escaped @ ('"' | '\\' | '$')) => value.push(escaped),
                Some(other) => value.extend(['\\', other]),
                None => break,
            },
            _ => value.push(character),
        }
    }
    Err("a quotation mark is never closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_variable() {
        let text = "\u{feff}# of the project\r\n\
            PLAIN=a b\r\n\
            \n  export  SPACED = x = y  # why\n\
            HASH=a#b\n\
            NONE=\n\
            EMPTY= # nothing\n\
            DOUBLE=\"a # b\\n\\\"c\\\" \\\\ \\$X \\d\" # why\n\
            SINGLE='a \\n \"b\"'\n\
            LINES=\"one\r\ntwo\"\n\
            with.dots-1=${PLAIN}\n\
            export=1";
        let expected = [
            ("PLAIN", "a b"),
            ("SPACED", "x = y"),
            ("HASH", "a#b"),
            ("NONE", ""),
            ("EMPTY", ""),
            ("DOUBLE", "a # b\n\"c\" \\ $X \\d"),
            ("SINGLE", "a \\n \"b\""),
            ("LINES", "one\ntwo"),
            ("with.dots-1", "${PLAIN}"),
            ("export", "1"),
        ];
        let found = parse(text).unwrap();
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(found, expected);
        assert_eq!(parse("").unwrap(), []);
        assert_eq!(parse("# only this").unwrap(), []);
    }

    #[test]
    fn what_is_wrong_is_told_by_its_line_and_never_by_its_value() {
        for (text, expected) in [
            ("A=1\ns3cret", "line 2: `NAME=value`"),
            ("=s3cret", "line 1: `NAME=value`"),
            ("A B=s3cret", "line 1: `NAME=value`"),
            ("A='1\n2'\nB=\"s3cret", "line 3: a quotation mark is never closed"),
            ("A=\"s3cret\\", "line 1: a quotation mark is never closed"),
            ("A='1' s3cret", "line 1: something follows"),
            ("A=s3cret\0", "line 1: holds a zero character"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains("s3cret"), "{text:?}: {error}");
        }
    }
}
