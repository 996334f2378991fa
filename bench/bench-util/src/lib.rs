//! What the load generator and the client drivers share.
//!
//! Owns: the drivers' arguments, the loop that every driver runs, processor time and memory of a
//! process. Does not own: any client; each driver brings its own as a [`Caller`].

mod arguments;
mod cached;
mod cancel;
mod drive;
pub mod process;
mod statistics;

pub use arguments::{Arguments, Era, Mode, Target};
pub use drive::{Caller, drive};

/// Finds an integer `"key":N`, also where the JSON sits escaped inside a JSON string.
pub fn counter(text: &str, key: &str) -> Option<i64> {
    let rest = &text[text.find(key)? + key.len()..];
    let rest = rest.trim_start_matches(['\\', '"', ':', ' ']);
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '-');
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// The value below which the share `share` (0 to 1) of `values` lies.
pub fn percentile(values: &mut [u64], share: f64) -> f64 {
    values.sort_unstable();
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    values[(last as f64 * share).round() as usize] as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_plain_and_escaped() {
        assert_eq!(counter(r#"{"started":12,"released":3}"#, "released"), Some(3));
        assert_eq!(counter(r#"{"text":"{\"started\":12}"}"#, "started"), Some(12));
        assert_eq!(counter(r#"{"listeners": -1}"#, "listeners"), Some(-1));
        assert_eq!(counter("{}", "started"), None);
    }

    #[test]
    fn percentiles_of_few_values() {
        assert_eq!(percentile(&mut [3, 1, 2], 0.5), 2.0);
        assert_eq!(percentile(&mut [3, 1, 2], 1.0), 3.0);
        assert!(percentile(&mut [], 0.5).is_nan());
    }
}
