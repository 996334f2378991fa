//! At which issuer a client belongs that was registered beforehand without saying where: the first
//! one that it proves itself to, for as long as the store remembers.

use crate::{
    AuthError, AuthErrorKind, Secret,
    client::{
        registration::belongs_elsewhere,
        settings::Settings,
        store::{GrantStore, StoreKey, Swap},
    },
};

/// Under what the issuer is kept, if the settings name none and the client has anything to prove itself
/// with. Grants come and go; this stays.
pub(crate) fn key(settings: &Settings) -> Option<StoreKey> {
    let registered = settings.registered.as_ref()?;
    let proves = registered.secret.is_some() || settings.key.is_some();
    (registered.issuer.is_none() && proves).then(|| StoreKey::client(&registered.client_id))
}

/// The issuer that it belongs to, once it proved itself anywhere.
pub(crate) async fn issuer(
    store: &dyn GrantStore,
    key: &StoreKey,
) -> Result<Option<String>, AuthError> {
    let stored = store.load(key).await?;
    Ok(stored.map(|stored| stored.record.expose().to_owned()))
}

/// Has it belong to this issuer, before anything is shown to that.
///
/// # Errors
/// If it belongs to another one, or if that can't be kept.
pub(crate) async fn bind(
    store: &dyn GrantStore,
    key: &StoreKey,
    to: &str,
) -> Result<(), AuthError> {
    if let Swap::Done(_) = store.swap(key, None, Some(Secret::new(to))).await? {
        return Ok(());
    }
    // Someone was faster, perhaps with another one.
    match issuer(store, key).await? {
        Some(known) if known == to => Ok(()),
        Some(known) => Err(belongs_elsewhere(&known, to)),
        None => Err(AuthError::new(AuthErrorKind::Store, "where a client belongs was deleted")),
    }
}
