//! Numbers of JSON, compared exactly, and the ranges of integer types.

use std::{cmp::Ordering, fmt};

use serde_json::Value;

/// Up to here doubles hold every integer.
pub(crate) const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number of JSON: exact as long as it is whole.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    pub(crate) fn of(value: &Value) -> Option<Number> {
        let Value::Number(number) = value else {
            return None;
        };
        number.as_i128().map(Number::Whole).or_else(|| number.as_f64().map(Number::Real))
    }

    pub(crate) fn as_real(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Real(number) => number,
        }
    }

    /// Whether decoding takes the number for an integer: `1.0` counts, up to where doubles are exact.
    pub(crate) fn is_whole(self) -> bool {
        match self {
            Number::Whole(_) => true,
            Number::Real(real) => real.fract() == 0.0 && real.abs() <= EXACT,
        }
    }

    /// The number in a text; a fraction, even of zero, makes it real.
    pub(crate) fn parse(text: &str) -> Option<Number> {
        let whole = text.parse().ok().map(Number::Whole);
        whole.or_else(|| text.parse().ok().map(Number::Real))
    }

    pub(crate) fn is_multiple_of(self, step: Number) -> bool {
        if let (Number::Whole(number), Number::Whole(step)) = (self, step) {
            return step != 0 && number % step == 0;
        }
        // 0.3 is a multiple of 0.1 although neither is exact.
        let steps = self.as_real() / step.as_real();
        (steps - steps.round()).abs() <= 1e-9 * steps.abs().max(1.0)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Whole(one), Number::Whole(two)) => Some(one.cmp(two)),
            _ => self.as_real().partial_cmp(&other.as_real()),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Whole(number) => number.fmt(f),
            // `{}` writes 1e300 with all its zeros.
            Number::Real(number) => write!(f, "{number:?}"),
        }
    }
}

/// Returns the range that decoding into the integer type of this name enforces.
pub(crate) fn enforced_range(format: &str) -> Option<(i128, i128)> {
    Some(match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" | "int" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint64" | "uint" => (0, u64::MAX.into()),
        "uint128" => (0, i128::MAX),
        _ => return None,
    })
}
