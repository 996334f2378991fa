//! Owns media types in headers, read as RFC 9110 writes them. Does not own which types a request
//! or a response must have.

/// What both sides send.
pub(crate) const JSON: &str = "application/json";
/// What a response is when it is a stream.
pub(crate) const EVENTS: &str = "text/event-stream";

/// Whether the value of a `Content-Type` names this type (in lower case). Case and parameters do
/// not count.
pub(crate) fn is(value: &[u8], media_type: &str) -> bool {
    let mut scan = Scan(value);
    scan.white_space();
    let Some((range, _)) = scan.range() else {
        return false;
    };
    scan.0.is_empty() && range.names(media_type)
}

/// Whether the `charset` of a `Content-Type` is UTF-8 or a part of it, or missing.
#[cfg(feature = "server")]
pub(crate) fn is_utf8(value: &[u8]) -> bool {
    value.split(|byte| *byte == b';').skip(1).all(|parameter| {
        let mut parts = parameter.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let value = parts.next().unwrap_or_default().trim_ascii();
        let value =
            value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        let is_known = |known: &&[u8]| value.eq_ignore_ascii_case(known);
        !name.eq_ignore_ascii_case(b"charset")
            || [&b"utf-8"[..], b"utf8", b"us-ascii"].iter().any(is_known)
    })
}

/// Whether the values of all `Accept` fields of one request admit this type (in lower case).
/// `None`: they can't be read.
#[cfg(feature = "server")]
pub(crate) fn admits<'a>(values: impl Iterator<Item = &'a [u8]>, media_type: &str) -> Option<bool> {
    // RFC 9110 §12.5.1: the most specific range that matches decides.
    let mut best = (0, false);
    for value in values {
        let mut scan = Scan(value);
        loop {
            scan.white_space();
            while scan.eat(b',') {
                scan.white_space();
            }
            if scan.0.is_empty() {
                break;
            }
            let (range, weight) = scan.range()?;
            if !scan.0.is_empty() && !scan.eat(b',') {
                return None;
            }
            let found = (range.specificity(media_type), weight == Weight::Some);
            best = best.max(found);
        }
    }
    Some(best.0 > 0 && best.1)
}

/// `type/subtype`, either of which may be `*`.
struct Range<'a> {
    kind: &'a [u8],
    subtype: &'a [u8],
}

/// What the parameters of a range say that matters.
#[derive(Clone, Copy, PartialEq)]
enum Weight {
    Some,
    /// `q=0`: anything but this.
    None,
}

impl Range<'_> {
    fn names(&self, media_type: &str) -> bool {
        media_type.split_once('/').is_some_and(|(kind, subtype)| {
            self.kind.eq_ignore_ascii_case(kind.as_bytes())
                && self.subtype.eq_ignore_ascii_case(subtype.as_bytes())
        })
    }

    /// Zero if it does not match.
    #[cfg(feature = "server")]
    fn specificity(&self, media_type: &str) -> u8 {
        let kind = media_type.split_once('/').map_or(media_type, |(kind, _)| kind);
        match (self.kind, self.subtype) {
            (b"*", b"*") => 1,
            (own, b"*") if own.eq_ignore_ascii_case(kind.as_bytes()) => 2,
            _ if self.names(media_type) => 3,
            _ => 0,
        }
    }
}

/// What is left to read.
struct Scan<'a>(&'a [u8]);

impl<'a> Scan<'a> {
    /// A range with its parameters and the white space after them.
    fn range(&mut self) -> Option<(Range<'a>, Weight)> {
        let kind = self.token()?;
        if !self.eat(b'/') {
            return None;
        }
        let subtype = self.token()?;
        let mut weight = Weight::Some;
        loop {
            self.white_space();
            if !self.eat(b';') {
                return Some((Range { kind, subtype }, weight));
            }
            self.white_space();
            // RFC 9110 §5.6.6 lets a parameter be left out.
            let Some(name) = self.token() else {
                continue;
            };
            if !self.eat(b'=') {
                return None;
            }
            if self.0.first() == Some(&b'"') {
                self.quoted()?;
                continue;
            }
            let value = self.token()?;
            if name.eq_ignore_ascii_case(b"q") {
                weight = weight_of(value)?;
            }
        }
    }

    fn white_space(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn token(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().take_while(|byte| is_token_byte(**byte)).count();
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        (length > 0).then_some(token)
    }

    fn quoted(&mut self) -> Option<()> {
        self.eat(b'"');
        loop {
            match self.0 {
                [b'"', rest @ ..] => {
                    self.0 = rest;
                    return Some(());
                }
                [b'\\', _, rest @ ..] | [_, rest @ ..] => self.0 = rest,
                [] => return None,
            }
        }
    }
}

/// `0` to `1` with at most three digits after the point.
fn weight_of(value: &[u8]) -> Option<Weight> {
    let (whole, digits) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', digits @ ..] if digits.len() <= 3 => (whole, digits),
        _ => return None,
    };
    let zeros = digits.iter().all(|digit| *digit == b'0');
    match whole {
        b'0' if zeros => Some(Weight::None),
        b'0' if digits.iter().all(u8::is_ascii_digit) => Some(Weight::Some),
        b'1' if zeros => Some(Weight::Some),
        _ => None,
    }
}

/// `tchar` of RFC 9110 §5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_is_read_and_not_searched() {
        for value in [
            "application/json",
            "Application/JSON",
            " application/json\t",
            "application/json;charset=utf-8",
            "application/json ; charset=\"utf-8\"; x=\"a\\\"b;,\" ;",
            "application/json;;",
        ] {
            assert!(is(value.as_bytes(), JSON), "{value}");
        }
        for value in [
            "",
            "json",
            "application/",
            "application/jsonp",
            "application/json-rpc",
            "application/problem+json",
            "text/plain; a=application/json",
            "text/plain",
            "*/*",
            "application/*",
            "application/json, text/plain",
            "application/json;charset=utf-8, text/plain",
            "application/json charset=utf-8",
            "application/json;charset",
            "application/json;charset=\"utf-8",
            "application /json",
            "application/json\0",
        ] {
            assert!(!is(value.as_bytes(), JSON), "{value}");
        }
        assert!(is(b"text/event-stream;charset=utf-8", EVENTS));
    }

    #[cfg(feature = "server")]
    #[test]
    fn the_most_specific_range_decides() {
        let both = |values: &[&str]| {
            let values = || values.iter().map(|value| value.as_bytes());
            Some((admits(values(), JSON)?, admits(values(), EVENTS)?))
        };
        for (values, expected) in [
            (&["application/json, text/event-stream"][..], Some((true, true))),
            (&["application/json", "text/event-stream"], Some((true, true))),
            (&["TEXT/Event-Stream,,Application/Json,"], Some((true, true))),
            (&["*/*"], Some((true, true))),
            (&["application/*, text/*;q=0.1"], Some((true, true))),
            (&["application/json"], Some((true, false))),
            (&["text/event-stream"], Some((false, true))),
            (&["text/html, text/plain"], Some((false, false))),
            (&["*/*;q=0"], Some((false, false))),
            (&["*/*, text/event-stream;q=0"], Some((true, false))),
            (&["text/event-stream; Q=0.000, */*"], Some((true, false))),
            (&["text/*;q=0, text/event-stream;q=0.001, application/json"], Some((true, true))),
            (&["*/*;q=0, application/*"], Some((true, false))),
            (&["text/*, */*;q=0"], Some((false, true))),
            (&["application/json;v=\"1,2\", text/event-stream"], Some((true, true))),
            (&["application/json;v=1;q=0, application/json, text/*"], Some((true, true))),
            (&["*/json"], Some((false, false))),
            (&[""], Some((false, false))),
            (&["application/json;q=2, */*"], None),
            (&["application/json;q=0.0001"], None),
            (&["application/json;q=.5"], None),
            (&["application/json text/event-stream"], None),
            (&["application/json; text/event-stream"], None),
            (&["json"], None),
        ] {
            assert_eq!(both(values), expected, "{values:?}");
        }
    }
}
