//! Owns whose certificates are trusted, for all connections of this crate. Does not own the
//! connections.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};

use crate::error::{Error, ErrorKind, Result};

/// The system's certificates and these. Whoever adds none shares all of it with the others.
pub(super) fn trusting(roots: &[Vec<u8>]) -> Result<Arc<ClientConfig>> {
    static SYSTEM: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let (true, Some(system)) = (roots.is_empty(), SYSTEM.get()) {
        return Ok(system.clone());
    }
    let mut store = system().clone();
    for pem in roots {
        add(&mut store, pem)?;
    }
    let config = Arc::new(config(store)?);
    if roots.is_empty() {
        return Ok(SYSTEM.get_or_init(|| config).clone());
    }
    Ok(config)
}

/// Reading them takes a while, so that is done once.
fn system() -> &'static RootCertStore {
    static STORE: OnceLock<RootCertStore> = OnceLock::new();
    STORE.get_or_init(|| {
        let mut store = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        for error in &native.errors {
            tracing::debug!(%error, "a certificate of the system can't be read");
        }
        store.add_parsable_certificates(native.certs);
        if store.is_empty() {
            tracing::warn!("the system trusts nobody's certificates");
        }
        store
    })
}

fn add(store: &mut RootCertStore, pem: &[u8]) -> Result<()> {
    use rustls::pki_types::pem::PemObject as _;
    let refuse = |why: String| Error::refused(format!("a TLS root certificate {why}"));
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| refuse(format!("is not PEM: {error}")))?;
        store.add(certificate).map_err(|error| refuse(format!("is not valid: {error}")))?;
        count += 1;
    }
    if count == 0 {
        return Err(refuse("was expected, but the PEM text has none".to_owned()));
    }
    Ok(())
}

pub(super) fn config(store: RootCertStore) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Connect, format!("TLS: {error}")))?;
    Ok(versions.with_root_certificates(store).with_no_client_auth())
}

/// Whether these can be trusted at all: each is PEM text with certificates in it.
#[cfg(all(feature = "auth", feature = "server"))]
pub(crate) fn check(roots: &[Vec<u8>]) -> Result<()> {
    let mut store = RootCertStore::empty();
    roots.iter().try_for_each(|pem| add(&mut store, pem))
}
