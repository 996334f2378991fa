//! Certificates and keys for one run: who signs them, a server's, and the key of a client that
//! signs.

use std::{fs, path::Path, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::Value;
use tokio_rustls::{
    TlsAcceptor, TlsConnector,
    rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};
use turnbuckle::auth::{Secret, SigningKey};

/// What whoever is to trust the authority is given.
pub(crate) const ROOT: &str = "ca.pem";
const SERVER: &str = "server.pem";
const SERVER_KEY: &str = "server.key";
/// The key of a client that signs, and the half of it that the provider is told.
const SIGNER: &str = "signer.pem";
const SIGNER_PUBLIC: &str = "signer.json";

/// Makes everything anew.
pub(crate) fn write(folder: &Path) -> Result<(), String> {
    make(folder).map_err(|error| error.to_string())
}

fn make(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    root.distinguished_name.push(DnType::CommonName, "an authority for one run");
    let root_key = KeyPair::generate()?;
    fs::write(folder.join(ROOT), root.self_signed(&root_key)?.pem())?;
    let issuer = Issuer::new(root, root_key);

    let mut server = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
    server.distinguished_name.push(DnType::CommonName, "this machine");
    server.use_authority_key_identifier_extension = true;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    fs::write(folder.join(SERVER), server.signed_by(&key, &issuer)?.pem())?;
    fs::write(folder.join(SERVER_KEY), key.serialize_pem())?;

    let signer = KeyPair::generate()?.serialize_pem();
    let public = Value::Object(SigningKey::from_pem(&Secret::new(signer.clone()))?.public_jwk());
    fs::write(folder.join(SIGNER), signer)?;
    fs::write(folder.join(SIGNER_PUBLIC), public.to_string())?;
    Ok(())
}

/// The key of the client that signs.
pub(crate) fn signer(folder: &Path) -> Result<SigningKey, String> {
    let pem = fs::read_to_string(folder.join(SIGNER)).map_err(|error| error.to_string())?;
    SigningKey::from_pem(&Secret::new(pem)).map_err(|error| error.to_string())
}

/// Accepts connections as the server.
pub(crate) fn acceptor(folder: &Path) -> Result<TlsAcceptor, Box<dyn std::error::Error>> {
    let certificate = CertificateDer::from_pem_file(folder.join(SERVER))?;
    let key = PrivateKeyDer::from_pem_file(folder.join(SERVER_KEY))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = ["h2", "http/1.1"].map(|name| name.as_bytes().to_vec()).into();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Connects to whom the authority vouches for.
pub(crate) fn connector(folder: &Path) -> Result<TlsConnector, Box<dyn std::error::Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join(ROOT))?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
