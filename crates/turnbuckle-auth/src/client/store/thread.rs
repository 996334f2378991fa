//! Doing what blocks (files, locks, a keyring) without blocking a runtime.

use tokio::sync::oneshot;

use super::failed;
use crate::AuthError;

/// Does `work` on a thread of its own. Not on the runtime's threads for blocking work: a runtime
/// waits for those when it ends, and one of them might wait for the lock of another process.
///
/// Dropping the future leaves the work to itself; what it returns is then dropped on its thread.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AuthError> + Send + 'static,
) -> Result<T, AuthError> {
    let (send, receive) = oneshot::channel();
    let begun = std::thread::Builder::new().name("turnbuckle-store".to_owned()).spawn(move || {
        // Nobody waiting any more is no failure: a lock that comes too late is given back here.
        let _ = send.send(work());
    });
    begun.map_err(|error| failed(format!("no thread for the store: {error}")))?;
    receive.await.unwrap_or_else(|_| Err(failed("the store's thread panicked")))
}
