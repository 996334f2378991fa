//! Redacts the words of a text that have the form of a secret.

use std::borrow::Cow;

use super::{MASK, is_secret_name};

/// Prefixes of the keys of well-known services.
const PREFIXES: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
];

/// The length of the shortest key after such a prefix, or after a scheme.
const SHORTEST: usize = 8;

/// Returns the text without its secrets.
pub(crate) fn redact_text(text: &str) -> Cow<'_, str> {
    const KEY: &str = "PRIVATE KEY-----";
    match text.find(KEY) {
        Some(at) => Cow::Owned(format!("{}{MASK}", redact_words(&text[..at + KEY.len()]))),
        None => redact_words(text),
    }
}

fn redact_words(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    // How much of the text has been written to `out`.
    let mut written = 0;
    let mut before = "";
    let mut at = 0;
    while at < text.len() {
        let gap = text[at..].find(is_part).unwrap_or(text.len() - at);
        let (dividers, start) = (&text[at..at + gap], at + gap);
        let length = text[start..].find(|letter| !is_part(letter)).unwrap_or(text.len() - start);
        let (word, end) = (&text[start..start + length], start + length);
        let is_secret = if assigns(dividers) && is_secret_name(before) {
            // In `Authorization: Bearer …` the secret follows the scheme.
            !is_scheme(word) && !word.is_empty()
        } else {
            (dividers == " " && is_scheme(before) && looks_random(word)) || looks_secret(word)
        };
        let secret = if is_secret { Some((start, end)) } else { password_of(text, end) };
        at = end;
        if let Some((from, to)) = secret {
            out.push_str(&text[written..from]);
            out.push_str(MASK);
            (written, at) = (to, to);
        }
        before = word;
    }
    if written == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[written..]);
    Cow::Owned(out)
}

/// Returns `true` for a character of keys, tokens and names.
fn is_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_-.+/~%".contains(letter)
}

/// Returns `true` if the text between two words assigns the second to the first.
fn assigns(dividers: &str) -> bool {
    let plain = dividers.trim_matches([' ', '"', '\'']);
    matches!(plain, "=" | ":" | "=>" | ":=" | "==")
}

fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// Returns `true` if a word is not a plain one.
fn looks_random(word: &str) -> bool {
    word.len() >= SHORTEST && word.bytes().any(|byte| !byte.is_ascii_lowercase())
}

/// Returns `true` for a key with a known prefix, or a JWT.
fn looks_secret(word: &str) -> bool {
    let key = |prefix: &&str| word.strip_prefix(*prefix).is_some_and(|rest| rest.len() >= SHORTEST);
    let mut parts = word.split('.');
    let jwt = word.starts_with("eyJ")
        && parts.clone().count() >= 3
        && parts.next().is_some_and(|head| head.len() >= SHORTEST);
    jwt || PREFIXES.iter().any(key)
}

/// Returns the place of the password in `scheme://user:password@host`, if the scheme ends at `end`.
fn password_of(text: &str, end: usize) -> Option<(usize, usize)> {
    let rest = text[end..].strip_prefix("://")?;
    let authority = text.len() - rest.len();
    let over = rest.find(|letter: char| letter.is_whitespace() || "/?#\"'<>".contains(letter));
    let rest = &rest[..over.unwrap_or(rest.len())];
    let at = rest.rfind('@')?;
    let colon = rest[..at].find(':')?;
    Some((authority + colon + 1, authority + at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn hides(text: &str, secret: &str, shown: &str) {
        let shown_text = redact_text(text);
        assert!(!shown_text.contains(secret), "{shown_text}");
        assert_eq!(shown_text, shown);
    }

    #[test]
    fn what_looks_like_a_secret_is_masked_wherever_it_stands() {
        hides("Authorization: Bearer abcdefgh1", "abcdefgh1", "Authorization: Bearer [redacted]");
        hides("say bearer abcdefgh1 now", "abcdefgh1", "say bearer [redacted] now");
        hides(
            "http://x/?a=1&access_token=q1w2&b=2",
            "q1w2",
            "http://x/?a=1&access_token=[redacted]&b=2",
        );
        hides("postgres://me:hunter2@db/x", "hunter2", "postgres://me:[redacted]@db/x");
        hides("see https://me:p@ss@host/x ok", "p@ss", "see https://me:[redacted]@host/x ok");
        hides("password = hunter2, ok", "hunter2", "password = [redacted], ok");
        hides("the key sk-abcdefghijkl is", "sk-abc", "the key [redacted] is");
        hides("eyJhbGciOi.eyJzdWIi.c2ln", "eyJ", "[redacted]");
        hides("é ghp_0123456789abcdef é", "ghp_", "é [redacted] é");
        hides("-----BEGIN PRIVATE KEY-----\nMIIE", "MIIE", "-----BEGIN PRIVATE KEY-----[redacted]");
    }

    #[test]
    fn plain_words_stay_as_they_are() {
        for text in [
            "",
            "é",
            "two words",
            "a token of love",
            "https://host:8080/path?x=1",
            "mail a@b.c",
            "basic needs",
            "the bearer is here",
            "e.g. x.y.z",
            "sk-",
            "password",
            "://",
            "a://b:",
        ] {
            assert_eq!(redact_text(text), text);
        }
    }
}
