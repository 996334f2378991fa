//! Owns the text of a file of variables (`.env`): pure. Does not own where the file is.

use std::{iter::Peekable, str::Chars};

/// The variables of a text, in its order; or in which line something is wrong.
///
/// `NAME=value`, one in a line; `export` may stand before it, `#` begins a comment at the start of a
/// line or after a blank. A value in quotes may hold anything, line breaks too; in double quotes
/// `\n`, `\r`, `\t`, `\"`, `\\` and `\$` are what they are elsewhere. Nothing is expanded.
///
/// The sentence names lines and never values.
pub(super) fn variables(text: &str) -> Result<Vec<(String, String)>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let mut variables = Vec::new();
    while reader.next_statement() {
        let line = reader.line;
        let variable = reader.variable().map_err(|why| format!("line {line}: {why}"))?;
        variables.push(variable);
    }
    Ok(variables)
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    /// Counted from one.
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        if next == '\n' {
            self.line += 1;
        }
        Some(next)
    }

    fn next_if(&mut self, fits: impl FnOnce(&char) -> bool) -> Option<char> {
        if self.rest.peek().is_some_and(fits) { self.next() } else { None }
    }

    fn skip_while(&mut self, fits: impl Fn(&char) -> bool) {
        while self.next_if(&fits).is_some() {}
    }

    /// Goes to where the next variable begins; whether there is one.
    fn next_statement(&mut self) -> bool {
        loop {
            self.skip_while(|character| character.is_whitespace());
            match self.rest.peek() {
                None => return false,
                Some('#') => self.skip_while(|character| *character != '\n'),
                Some(_) => return true,
            }
        }
    }

    fn variable(&mut self) -> Result<(String, String), &'static str> {
        let mut name = self.word();
        self.skip_while(is_blank);
        if name == "export" && self.rest.peek() != Some(&'=') {
            name = self.word();
            self.skip_while(is_blank);
        }
        if name.is_empty() || self.next_if(|character| *character == '=').is_none() {
            return Err("`NAME=value` is expected");
        }
        self.skip_while(is_blank);
        let value = match self.rest.peek().copied() {
            Some(quote @ ('"' | '\'')) => {
                self.next();
                let value = self.quoted(quote)?;
                self.end_of_line()?;
                value
            }
            _ => self.unquoted(),
        };
        if value.contains('\0') {
            return Err("holds a zero character");
        }
        Ok((name, value))
    }

    fn word(&mut self) -> String {
        let fits = |character: &char| {
            character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')
        };
        std::iter::from_fn(|| self.next_if(fits)).collect()
    }

    fn quoted(&mut self, quote: char) -> Result<String, &'static str> {
        let mut value = String::new();
        loop {
            match self.next() {
                None => return Err("a quotation mark is never closed"),
                Some(character) if character == quote => return Ok(value),
                Some('\\') if quote == '"' => match self.next() {
                    Some('n') => value.push('\n'),
                    Some('r') => value.push('\r'),
                    Some('t') => value.push('\t'),
                    Some(character @ ('"' | '\\' | '$')) => value.push(character),
                    Some(character) => value.extend(['\\', character]),
                    None => return Err("a quotation mark is never closed"),
                },
                // As an editor of another system ends its lines.
                Some('\r') if self.rest.peek() == Some(&'\n') => {}
                Some(character) => value.push(character),
            }
        }
    }

    /// Up to the end of the line, or to a comment.
    fn unquoted(&mut self) -> String {
        let mut value = String::new();
        while let Some(character) = self.next_if(|character| *character != '\n') {
            if character == '#' && value.chars().next_back().is_none_or(|last| is_blank(&last)) {
                self.skip_while(|character| *character != '\n');
                break;
            }
            value.push(character);
        }
        value.trim_end().to_owned()
    }

    /// Nothing may follow but a comment.
    fn end_of_line(&mut self) -> Result<(), &'static str> {
        self.skip_while(|character| is_blank(character) || *character == '\r');
        match self.rest.peek() {
            None | Some('\n') => Ok(()),
            Some('#') => {
                self.skip_while(|character| *character != '\n');
                Ok(())
            }
            Some(_) => Err("something follows the closing quotation mark"),
        }
    }
}

fn is_blank(character: &char) -> bool {
    matches!(character, ' ' | '\t')
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
        let found = variables(text).unwrap();
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(found, expected);
        assert_eq!(variables("").unwrap(), []);
        assert_eq!(variables("# only this").unwrap(), []);
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
            let error = variables(text).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains("s3cret"), "{text:?}: {error}");
        }
    }
}
