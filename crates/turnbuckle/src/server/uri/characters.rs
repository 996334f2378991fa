//! Owns the characters of addresses: which are reserved, how they are escaped, and the form in which
//! two spellings of one address are equal. Does not own what any of them means in a template.

use std::fmt::Write as _;

/// One byte of an address. An escape of a reserved character is marked, because `%2F` and `/` differ;
/// all other escapes mean what the byte itself would (RFC 3986 §2.2, §6.2.2.2).
pub(super) type Token = u16;

const ESCAPED: Token = 0x100;

/// Some of the characters of ASCII, and perhaps all others: non-ASCII and escaped ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Set {
    ascii: u128,
    others: Others,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    None,
    Only(Token),
    All,
}

/// RFC 3986 §2.2.
pub(super) const RESERVED: Set = Set::of(b":/?#[]@!$&'()*+,;=");

impl Set {
    pub(super) const NONE: Set = Set { ascii: 0, others: Others::None };
    pub(super) const ALL: Set = Set { ascii: u128::MAX, others: Others::All };

    pub(super) const fn of(bytes: &[u8]) -> Set {
        let mut ascii = 0;
        let mut at = 0;
        while at < bytes.len() {
            ascii |= 1 << bytes[at];
            at += 1;
        }
        Set { ascii, others: Others::None }
    }

    pub(super) fn one(token: Token) -> Set {
        match u8::try_from(token) {
            Ok(byte) if byte.is_ascii() => Set::of(&[byte]),
            _ => Set { ascii: 0, others: Others::Only(token) },
        }
    }

    pub(super) fn contains(self, token: Token) -> bool {
        match self.others {
            _ if token < 0x80 => self.ascii >> token & 1 == 1,
            Others::None => false,
            Others::Only(only) => only == token,
            Others::All => true,
        }
    }

    /// With ASCII characters of another set.
    pub(super) fn and(self, other: Set) -> Set {
        Set { ascii: self.ascii | other.ascii, ..self }
    }

    /// Everything but these ASCII characters.
    pub(super) fn except(self) -> Set {
        Set { ascii: !self.ascii, others: Others::All }
    }

    pub(super) fn meets(self, other: Set) -> bool {
        let others = match (self.others, other.others) {
            (Others::None, _) | (_, Others::None) => false,
            (Others::Only(a), Others::Only(b)) => a == b,
            _ => true,
        };
        self.ascii & other.ascii != 0 || others
    }
}

/// The tokens of a text; `None` if an escape is broken or a control character stands there as such.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                let escaped = Token::from(unescape(after)?);
                let mark = if RESERVED.contains(escaped) { ESCAPED } else { 0 };
                tokens.push(escaped | mark);
                rest = &after[2..];
            }
            byte if byte.is_ascii_control() => return None,
            byte => tokens.push(Token::from(byte)),
        }
    }
    Some(tokens)
}

/// The text that some tokens stand for; `None` if it is not UTF-8.
pub(super) fn decode(tokens: impl Iterator<Item = Token>) -> Option<String> {
    // Without the mark, a token is a byte.
    String::from_utf8(tokens.map(|token| (token & 0xff) as u8).collect()).ok()
}

/// Appends a value in which everything but unreserved characters is escaped.
pub(super) fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            byte if is_unreserved(byte) => out.push(byte.into()),
            byte => push_escaped(byte, out),
        }
    }
}

/// Appends a text in which reserved characters, and escapes that are there already, stay.
pub(super) fn escape_but_reserved(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let stays = is_unreserved(byte)
            || RESERVED.contains(byte.into())
            || byte == b'%' && unescape(&bytes[at + 1..]).is_some();
        match byte {
            byte if stays => out.push(byte.into()),
            byte => push_escaped(byte, out),
        }
    }
}

/// The byte whose two hexadecimal digits these are.
pub(super) fn unescape(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

fn push_escaped(byte: u8, out: &mut String) {
    // Writing into a `String` does not fail.
    let _ = write!(out, "%{byte:02X}");
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}
