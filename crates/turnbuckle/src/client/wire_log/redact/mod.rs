//! Redacts secrets in JSON and in plain text, and truncates long strings.
//!
//! A secret is found by the name of its member or by its form ([`words`]). One that has neither is
//! shown.

mod words;

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use turnbuckle_types::Named;

pub(crate) use words::redact_text as text;

/// Replaces a secret.
const MASK: &str = "[redacted]";

/// How many bytes of a string are shown.
const LONGEST: usize = 512;

/// How deep values are read. JSON in a string counts as many levels.
const MAX_DEPTH: usize = 64;
const STRING_DEPTH: usize = 16;

/// Returns the text of a JSON value without its secrets. The order of members is kept.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(8_192));
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => write_value(raw.get(), Redaction::None, false, 0, &mut out),
        Err(_) if text.is_empty() => {}
        Err(_) => out.push_str(MASK),
    }
    out
}

/// Cuts a text that is longer than `longest` bytes, and says so at its end.
pub(crate) fn truncate(text: &mut String, longest: usize) {
    if text.len() > longest {
        let whole = text.len();
        text.truncate(crate::limits::prefix(text, longest).len());
        text.push_str(&format!("… ({} bytes more)", whole - text.len()));
    }
}

/// The redaction of a value and of everything inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redaction {
    None,
    /// Strings and numbers are redacted.
    All,
    /// The value is the schema of a secret: only its description is shown.
    Schema,
    /// Of a string only its ends are shown.
    Middle,
}

/// Writes a valid JSON value. `in_properties`: its members are the properties of a schema.
fn write_value(
    raw: &str,
    redaction: Redaction,
    in_properties: bool,
    depth: usize,
    out: &mut String,
) {
    match raw.as_bytes().first() {
        Some(b'{' | b'[') if depth >= MAX_DEPTH => write_string(MASK, out),
        Some(b'{') => {
            let Ok(members) = serde_json::from_str::<Named<&RawValue>>(raw) else {
                return write_string(MASK, out);
            };
            for (index, (name, value)) in members.iter().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                write_string(&text(name), out);
                out.push(':');
                let is_object = value.get().starts_with('{');
                let redaction = match member_redaction(name, redaction, in_properties) {
                    // The schema of a secret is an object; anything else is the secret.
                    Redaction::Schema if in_properties && !is_object => Redaction::All,
                    other => other,
                };
                let properties = is_object && name == "properties" && !in_properties;
                write_value(value.get(), redaction, properties, depth + 1, out);
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        Some(b'[') => {
            let items = serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default();
            out.push('[');
            for (index, item) in items.into_iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_value(item.get(), redaction, false, depth + 1, out);
            }
            out.push(']');
        }
        Some(b'"') => {
            let plain = serde_json::from_str::<Cow<'_, str>>(raw).unwrap_or(Cow::Borrowed(MASK));
            match redaction {
                Redaction::All => write_string(MASK, out),
                Redaction::Middle => write_string(&ends(&plain), out),
                Redaction::None | Redaction::Schema => write_plain(&plain, depth, out),
            }
        }
        Some(b'-' | b'0'..=b'9') if redaction == Redaction::All => write_string(MASK, out),
        _ => out.push_str(raw),
    }
}

/// Writes a string whose name is not that of a secret.
fn write_plain(plain: &str, depth: usize, out: &mut String) {
    let is_json = plain.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<IgnoredAny>(plain).is_ok();
    let mut shown = String::new();
    if is_json {
        write_value(plain.trim(), Redaction::None, false, depth + STRING_DEPTH, &mut shown);
    } else {
        shown.push_str(&text(plain));
    }
    truncate(&mut shown, LONGEST);
    write_string(&shown, out);
}

fn write_string(plain: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(plain).to_string());
}

fn member_redaction(name: &str, parent: Redaction, in_properties: bool) -> Redaction {
    match parent {
        Redaction::All => Redaction::All,
        Redaction::Schema => match name {
            "$ref" | "anyOf" | "description" | "format" | "items" | "maxLength" | "minLength"
            | "oneOf" | "pattern" | "properties" | "required" | "title" | "type" => {
                Redaction::Schema
            }
            _ => Redaction::All,
        },
        // It is of no use to a reader, and may be of use to an attacker.
        _ if name == "requestState" => Redaction::Middle,
        _ if !is_secret_name(name) => Redaction::None,
        _ if in_properties => Redaction::Schema,
        _ => Redaction::All,
    }
}

/// Returns the ends of a string, by which a reader can compare two of them.
fn ends(plain: &str) -> String {
    let letters = plain.chars().count();
    if letters <= 16 {
        return MASK.to_owned();
    }
    let head: String = plain.chars().take(4).collect();
    let tail: String = plain.chars().skip(letters - 4).collect();
    format!("{head}…{tail} ({letters} characters)")
}

/// Parts of secret names, in lower case and without separators.
const PARTS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "authorization",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "credential",
    "cookie",
    "codeverifier",
    "authorizationcode",
    "authcode",
    "assertion",
    "sessionid",
    "connectionstring",
    "bearer",
];

/// Whole secret names.
const WHOLE: &[&str] = &["pwd", "pin", "otp", "jwt", "auth", "pat"];

/// Names that contain `token` and hold none.
const HARMLESS: &[&str] = &["progresstoken", "maxtokens", "tokentype", "tokenendpoint"];

/// Returns `true` if a member with this name holds a secret.
fn is_secret_name(name: &str) -> bool {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    let plain: String = letters.flat_map(char::to_lowercase).collect();
    if HARMLESS.contains(&plain.as_str()) {
        return false;
    }
    // `tokens` is usually a number of them.
    let token = plain.contains("token") && !plain.ends_with("tokens");
    token || WHOLE.contains(&&*plain) || PARTS.iter().any(|part| plain.contains(part))
}

#[cfg(test)]
mod tests;
