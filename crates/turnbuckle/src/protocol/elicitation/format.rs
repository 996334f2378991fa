//! Owns what text of a known format looks like: enough to tell a slip of the hand from an answer.
//! Does not own whether the address, the page or the moment exists.

use turnbuckle_types::StringFormat;

/// Whether the text is of the format.
pub(super) fn fits(format: StringFormat, text: &str) -> Result<(), String> {
    let (holds, otherwise) = match format {
        StringFormat::Email => (is_email(text), "must be an e-mail address"),
        StringFormat::Uri => (is_uri(text), "must be a URI"),
        StringFormat::Date => (is_date(text.as_bytes()), "must be a date like 2026-07-28"),
        StringFormat::DateTime => {
            (is_moment(text.as_bytes()), "must be a date and time like 2026-07-28T12:00:00Z")
        }
        _ => return Ok(()),
    };
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

fn is_email(text: &str) -> bool {
    let odd = |letter: char| letter.is_whitespace() || letter.is_control();
    text.rsplit_once('@').is_some_and(|(who, host)| !who.is_empty() && !host.is_empty())
        && !text.contains(odd)
}

/// RFC 3986 §3.1: a scheme, a colon, and then something.
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let odd = |letter: char| letter.is_whitespace() || letter.is_control();
    scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
        && !rest.is_empty()
        && !rest.contains(odd)
}

/// RFC 3339 §5.6 `full-date`.
fn is_date(text: &[u8]) -> bool {
    let &[a, b, c, d, b'-', e, f, b'-', g, h] = text else { return false };
    let (Some(year), Some(month), Some(day)) =
        (number(&[a, b, c, d]), number(&[e, f]), number(&[g, h]))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339 §5.6 `date-time`.
fn is_moment(text: &[u8]) -> bool {
    let Some((date, rest)) = text.split_at_checked(10) else { return false };
    let Some((time, zone)) = rest.split_at_checked(9) else { return false };
    let &[b'T' | b't' | b' ', h, i, b':', m, n, b':', s, t] = time else { return false };
    let in_range = |digits: [u8; 2], most| number(&digits).is_some_and(|value| value <= most);
    let zone = match zone {
        [b'.', rest @ ..] => {
            let fraction = rest.iter().take_while(|digit| digit.is_ascii_digit()).count();
            if fraction == 0 { &b"?"[..] } else { &rest[fraction..] }
        }
        zone => zone,
    };
    let zone_fits = match *zone {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h, i, b':', m, n] => in_range([h, i], 23) && in_range([m, n], 59),
        _ => false,
    };
    // A leap second is a second.
    is_date(date)
        && in_range([h, i], 23)
        && in_range([m, n], 59)
        && in_range([s, t], 60)
        && zone_fits
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| {
        digit.is_ascii_digit().then(|| value * 10 + u32::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_of_its_format_or_not() {
        use StringFormat::{Date, DateTime, Email, Uri};
        for (format, good, bad) in [
            (Email, &["a@b", "a.b+c@d.org", "\"a@b\"@c"][..], &["", "a", "@b", "a@", "a b@c"][..]),
            (Uri, &["https://a.org/x?y#z", "urn:a"], &["", "a.org", ":x", "1a:b", "a:", "a:b c"]),
            (
                Date,
                &["2026-07-28", "2024-02-29", "2000-02-29"],
                &["", "2026-7-28", "2026-13-01", "2026-00-01", "2026-01-00", "2025-02-29"],
            ),
            (
                DateTime,
                &["2026-07-28T12:00:00Z", "2026-07-28t23:59:60.25+23:59", "2026-07-28 00:00:00z"],
                &[
                    "2026-07-28",
                    "2026-07-28T12:00:00",
                    "2026-07-28T24:00:00Z",
                    "2026-07-28T12:00:00.Z",
                    "2026-07-28T12:00:00+24:00",
                    "1900-02-29T12:00:00Z",
                ],
            ),
        ] {
            for text in good {
                assert_eq!(fits(format, text), Ok(()), "{text}");
            }
            for text in bad {
                assert!(fits(format, text).is_err(), "{text}");
            }
        }
    }
}
