//! Owns what every store answers with. Does not own any store.

use std::pin::Pin;

/// What a store answers, some time later.
///
/// ```
/// use turnbuckle::StoreFuture;
/// fn at_once<T: Send + 'static>(value: T) -> StoreFuture<'static, T> {
///     Box::pin(async { Ok(value) })
/// }
/// # let _ = at_once(7);
/// ```
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store could not answer: any error.
///
/// ```
/// use turnbuckle::StoreError;
/// let error = StoreError::from("the database is away");
/// assert_eq!(error.to_string(), "the database is away");
/// ```
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;
