//! The characters of URIs: which are reserved, how they are escaped, and tokens, in which two
//! spellings of one URI are equal.

use std::fmt::Write as _;

/// One byte of a URI. An escaped reserved character is marked, because `%2F` and `/` differ; any
/// other escape equals the byte itself (RFC 3986 §2.2, §6.2.2.2).
pub(super) type Token = u16;

const ESCAPED: Token = 0x100;

/// A set of ASCII characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AsciiSet(u128);

impl AsciiSet {
    /// RFC 3986 §2.2.
    pub(super) const RESERVED: AsciiSet = AsciiSet::of(b":/?#[]@!$&'()*+,;=");

    pub(super) const fn of(bytes: &[u8]) -> AsciiSet {
        let mut set = 0;
        let mut at = 0;
        while at < bytes.len() {
            set |= 1 << bytes[at];
            at += 1;
        }
        AsciiSet(set)
    }

    pub(super) fn contains(self, token: Token) -> bool {
        token < 0x80 && self.0 >> token & 1 == 1
    }

    pub(super) fn with(self, other: AsciiSet) -> AsciiSet {
        AsciiSet(self.0 | other.0)
    }

    pub(super) fn without(self, other: AsciiSet) -> AsciiSet {
        AsciiSet(self.0 & !other.0)
    }
}

/// Returns the tokens of a text, or `None` if it has a broken escape or a control character.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                let escaped = Token::from(unescape(after)?);
                let mark = if AsciiSet::RESERVED.contains(escaped) { ESCAPED } else { 0 };
                tokens.push(escaped | mark);
                rest = &after[2..];
            }
            byte if byte.is_ascii_control() => return None,
            byte => tokens.push(Token::from(byte)),
        }
    }
    Some(tokens)
}

/// Returns the text of some tokens, or `None` if it is not UTF-8.
pub(super) fn decode(tokens: &[Token]) -> Option<String> {
    // A token without the mark is a byte.
    String::from_utf8(tokens.iter().map(|token| (token & 0xff) as u8).collect()).ok()
}

/// Appends a text and escapes everything but unreserved characters.
pub(super) fn escape(text: &str, out: &mut String) {
    text.bytes().for_each(|byte| push(byte, is_unreserved(byte), out));
}

/// Appends a text and escapes everything but unreserved characters, reserved characters and escapes.
pub(super) fn escape_but_reserved(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let is_kept = is_unreserved(byte)
            || AsciiSet::RESERVED.contains(byte.into())
            || byte == b'%' && unescape(&bytes[at + 1..]).is_some();
        push(byte, is_kept, out);
    }
}

/// Returns the byte that two hexadecimal digits at the start of `digits` stand for.
pub(super) fn unescape(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

fn push(byte: u8, is_kept: bool, out: &mut String) {
    if is_kept {
        out.push(byte.into());
    } else {
        // Writing into a `String` does not fail.
        let _ = write!(out, "%{byte:02X}");
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}
