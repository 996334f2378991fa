//! Owns how JSON's strings, numbers and containers are spelled.
//! Does not own what is in them.

use super::{At, Encode};

/// Appends an object.
pub(crate) fn write_object<'a, T: Encode + 'a>(
    members: impl Iterator<Item = (&'a str, &'a T)>,
    at: At,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (name, value) in members {
        write_name(name, out);
        value.write(at, out);
    }
    out.push(b'}');
}

/// Appends an array.
pub(crate) fn write_array<T: Encode>(items: impl Iterator<Item = T>, at: At, out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        item.write(at, out);
    }
    out.push(b']');
}

/// Appends a member's name that may need escapes, and the comma before it.
pub(crate) fn write_name(name: &str, out: &mut Vec<u8>) {
    write_comma(out);
    write_string(name, out);
    out.push(b':');
}

/// Appends a member whose key is spelled `"name":` already.
pub(crate) fn write_member<T: Encode + ?Sized>(
    key: &'static str,
    value: &T,
    at: At,
    out: &mut Vec<u8>,
) {
    write_key(key, out);
    value.write(at, out);
}

/// Appends a key that is spelled `"name":` already, and the comma before it.
pub(crate) fn write_key(key: &'static str, out: &mut Vec<u8>) {
    write_comma(out);
    out.extend_from_slice(key.as_bytes());
}

/// No JSON value ends with `{`, so that one can only be the brace of our own object.
fn write_comma(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

/// Appends an integer.
pub(crate) fn write_integer(value: impl serde::Serialize, out: &mut Vec<u8>) {
    // Writing an integer to a Vec can't fail.
    let _ = serde_json::to_writer(out, &value);
}

/// Appends a number, an integral one without a fraction: `50`, not `50.0`.
/// What is not a number at all is `null`, as everywhere in JSON.
pub(crate) fn write_number(value: f64, out: &mut Vec<u8>) {
    // Up to here every integer has an `f64` of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        write_integer(value as i64, out);
    } else {
        // Writing a number to a Vec can't fail.
        let _ = serde_json::to_writer(out, &value);
    }
}

/// Appends a string.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(index) = first_escape(rest) {
        out.extend_from_slice(&rest[..index]);
        write_escape(rest[index], out);
        rest = &rest[index + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Where the first byte is that JSON wants escaped. Eight bytes at a time: payloads are
/// long and escapes are few.
fn first_escape(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equals = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);

    let (words, tail) = bytes.as_chunks::<8>();
    let plain = words
        .iter()
        .take_while(|chunk| {
            let word = u64::from_ne_bytes(**chunk);
            (below(word, 0x20) | equals(word, b'"') | equals(word, b'\\')) & HIGH == 0
        })
        .count()
        * 8;
    debug_assert!(plain + tail.len() <= bytes.len());
    bytes[plain..].iter().position(|byte| needs_escape(*byte)).map(|index| plain + index)
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0C => b'f',
        _ => {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&digits);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(value: f64) -> String {
        let mut out = Vec::new();
        write_number(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integral_numbers_have_no_fraction() {
        assert_eq!(number(50.0), "50");
        assert_eq!(number(-3.0), "-3");
        assert_eq!(number(-0.0), "0");
        assert_eq!(number(0.25), "0.25");
        assert_eq!(number(1e300), "1e+300");
        assert_eq!(number(f64::NAN), "null");
        assert_eq!(number(9_007_199_254_740_992.0), "9007199254740992");
    }

    #[test]
    fn every_byte_is_found_at_every_place_in_a_word() {
        for byte in 0..=0x7F_u8 {
            for place in 0..20 {
                let mut text = [b'x'; 20];
                text[place] = byte;
                let expected = needs_escape(byte).then_some(place);
                assert_eq!(first_escape(&text), expected, "byte {byte} at {place}");
            }
        }
    }

    proptest! {
        #[test]
        fn strings_are_spelled_as_serde_json_spells_them(text in "\\PC*|[\\x00-\\x7f]*") {
            let mut out = Vec::new();
            write_string(&text, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }
    }
}
