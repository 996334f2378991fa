//! The grammar of `WWW-Authenticate` (RFC 9110 §11.6.1), within limits.

/// How many headers of that name are looked at.
pub(super) const MOST_HEADERS: usize = 16;
/// How many scopes a challenge may name.
pub(super) const MOST_SCOPES: usize = 64;
const MOST_CHALLENGES: usize = 16;
const MOST_PARAMETERS: usize = 32;
const LONGEST: usize = 16 * 1024;

/// A scheme and its parameters.
pub(super) type Read<'a> = (&'a str, Vec<(&'a str, String)>);

/// The challenges of one header, up to where it stops making sense. One that is too long has none.
pub(super) fn challenges(text: &str) -> Vec<Read<'_>> {
    let mut found: Vec<Read<'_>> = Vec::new();
    if text.len() > LONGEST {
        return found;
    }
    let mut rest = Rest(text);
    loop {
        rest.skip(|char| matches!(char, ' ' | '\t' | ','));
        let name = rest.take(is_token);
        if name.is_empty() {
            return found;
        }
        if let Some((_, parameters)) = found.last_mut()
            && rest.takes_equals()
        {
            let Some(value) = rest.value() else { return found };
            if parameters.len() < MOST_PARAMETERS {
                parameters.push((name, value));
            }
        } else {
            if found.len() == MOST_CHALLENGES {
                return found;
            }
            rest.skip_token68();
            found.push((name, Vec::new()));
        }
    }
}

struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(skipped);
    }

    fn take(&mut self, taken: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|char| !taken(char)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        token
    }

    /// Whether the name just read is a parameter's. If not, nothing is consumed.
    fn takes_equals(&mut self) -> bool {
        match self.0.trim_start_matches(is_space).strip_prefix('=') {
            Some(rest) => {
                self.0 = rest.trim_start_matches(is_space);
                true
            }
            None => false,
        }
    }

    /// A quoted string or a token. Nothing if a quoted string has no end.
    fn value(&mut self) -> Option<String> {
        let Some(quoted) = self.0.strip_prefix('"') else {
            // Addresses and scopes are sometimes sent without quotes, against the grammar.
            return Some(self.take(|char| !is_space(char) && char != ',').to_owned());
        };
        let mut value = String::new();
        let mut chars = quoted.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => value.push(chars.next()?),
                char => value.push(char),
            }
        }
        self.0 = chars.as_str();
        Some(value)
    }

    /// What some schemes have instead of parameters, such as `Negotiate`.
    fn skip_token68(&mut self) {
        let start = self.0;
        self.skip(is_space);
        let text = self.take(|char| char.is_ascii_alphanumeric() || "-._~+/".contains(char));
        self.skip(|char| char == '=');
        self.skip(is_space);
        let ends = self.0.is_empty() || self.0.starts_with(',');
        if text.is_empty() || !ends {
            self.0 = start;
        }
    }
}

fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t')
}

fn is_token(char: char) -> bool {
    char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char)
}
