//! Owns numbers in decimal notation, read exactly: which integer one is. Does not own which
//! argument or header the number comes from.

/// The largest integer that a double holds with all its neighbours, 2^53 − 1.
const MOST: i64 = (1 << 53) - 1;
/// How many digits it has.
const DIGITS: i64 = 16;

/// What kind of number it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Decimal {
    /// Between −(2^53 − 1) and 2^53 − 1.
    Whole(i64),
    /// An integer beyond that.
    Unsafe,
    Fraction,
}

/// Reads a number of JSON. `1e3` and `42.0` are integers; no digit is lost to rounding.
pub(super) fn read(number: &str) -> Option<Decimal> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, power(exponent)?),
        None => (number, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    if !is_digits(whole) {
        return None;
    }
    let significant = || {
        let digits = whole.bytes().chain(fraction.bytes());
        digits.enumerate().filter(|(_, digit)| *digit != b'0').map(|(position, _)| position as i64)
    };
    let (Some(first), Some(last)) = (significant().next(), significant().last()) else {
        return Some(Decimal::Whole(0));
    };
    // Where the point stands, counted in digits from the left.
    let point = (whole.len() as i64).saturating_add(exponent);
    if last >= point {
        return Some(Decimal::Fraction);
    }
    if point.saturating_sub(first) > DIGITS {
        return Some(Decimal::Unsafe);
    }
    let digits = whole.bytes().chain(fraction.bytes()).chain(std::iter::repeat(b'0'));
    let value = digits
        .skip(first as usize)
        .take((point - first) as usize)
        .fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(match (value > MOST, negative) {
        (true, _) => Decimal::Unsafe,
        (false, true) => Decimal::Whole(-value),
        (false, false) => Decimal::Whole(value),
    })
}

/// Reads a number as headers have it: without an exponent.
#[cfg(feature = "server")]
pub(super) fn plain(number: &str) -> Option<Decimal> {
    if number.contains(['e', 'E']) {
        return None;
    }
    read(number)
}

/// An exponent; one too large for its type is as good as the largest.
fn power(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !is_digits(digits) {
        return None;
    }
    let power = digits.parse().unwrap_or(i64::MAX);
    Some(if negative { -power } else { power })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_exactly_however_they_are_written() {
        for (text, expected) in [
            ("0", Decimal::Whole(0)),
            ("-0", Decimal::Whole(0)),
            ("0e999999999999999999999", Decimal::Whole(0)),
            ("42", Decimal::Whole(42)),
            ("-7", Decimal::Whole(-7)),
            ("42.0", Decimal::Whole(42)),
            ("4.2e1", Decimal::Whole(42)),
            ("4.2E+1", Decimal::Whole(42)),
            ("4200e-2", Decimal::Whole(42)),
            ("0.0042e4", Decimal::Whole(42)),
            ("007", Decimal::Whole(7)),
            ("1e15", Decimal::Whole(1_000_000_000_000_000)),
            ("9007199254740991", Decimal::Whole(MOST)),
            ("-9007199254740991.000", Decimal::Whole(-MOST)),
            ("9007199254740992", Decimal::Unsafe),
            ("-9007199254740992", Decimal::Unsafe),
            ("10000000000000000", Decimal::Unsafe),
            ("123456789012345678901234567890123456789012345678901234567890", Decimal::Unsafe),
            ("1e16", Decimal::Unsafe),
            ("1e999999999999999999999", Decimal::Unsafe),
            ("1.5", Decimal::Fraction),
            ("42e-1", Decimal::Fraction),
            // A double would round these two to integers.
            ("9007199254740990.5", Decimal::Fraction),
            ("1e-999999999999999999999", Decimal::Fraction),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_decimal_number_is_none() {
        for text in [
            "", "-", "+1", "1.", ".5", "1e", "1e+", "e1", "0x1a", " 42", "4 2", "١", "Infinity",
            "--1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[cfg(feature = "server")]
    #[test]
    fn a_header_has_no_exponent() {
        assert_eq!(plain("42.0"), Some(Decimal::Whole(42)));
        assert_eq!(plain("4.2e1"), None);
    }
}
