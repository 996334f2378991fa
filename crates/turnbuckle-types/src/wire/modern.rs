//! Owns what 2026-07-28 insists on where the model says nothing.
//! Does not own the fields: their `require` marks point here.
//!
//! | member | written if absent |
//! |---|---|
//! | `resultType` of a result | `complete` |
//! | `ttlMs` of a result that can be cached | 0: stale at once |
//! | `cacheScope` of a result that can be cached | `private` |

use super::At;
use crate::{CacheScope, ResultType, Revision};

/// A result says what kind it is.
pub(crate) fn complete<T>(_: &T, at: At) -> Option<ResultType> {
    at.demands_since(Revision::V2026_07_28).then_some(ResultType::Complete)
}

/// A result that can be cached says for how long: not at all is always right.
pub(crate) fn stale<T>(_: &T, at: At) -> Option<u64> {
    at.demands_since(Revision::V2026_07_28).then_some(0)
}

/// A result that can be cached says for whom: one's own is always right.
pub(crate) fn private<T>(_: &T, at: At) -> Option<CacheScope> {
    at.demands_since(Revision::V2026_07_28).then_some(CacheScope::Private)
}
