//! An issuer whose certificate is signed by one's own authority.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::json;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};
use turnbuckle::{
    Server,
    auth::{
        Secret,
        resource_server::{ResourceServer, TokenExchange},
        testing::{InsecureAuthorizationServer, InsecureClient, InsecureListener, InsecureServing},
    },
    tool,
};

use crate::support::{Ask, ask_at, call};

/// An issuer that is reached over TLS only.
struct Issued {
    auth: Arc<InsecureAuthorizationServer>,
    /// What those who trust its authority are given.
    pem: String,
    _serving: InsecureServing,
}

async fn issued() -> Issued {
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(DnType::CommonName, "the test's own authority");
    let root_key = KeyPair::generate().unwrap();
    let pem = root.self_signed(&root_key).unwrap().pem();
    let authority = Issuer::new(root, root_key);
    let key = KeyPair::generate().unwrap();
    let names = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = names.signed_by(&key, &authority).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("https://{}", listener.local_addr().unwrap());
    let auth =
        InsecureAuthorizationServer::new(issuer).client(InsecureClient::basic("machine", "s3cr3t"));
    let auth = Arc::new(auth);
    let behind = InsecureListener::bind().await.unwrap();
    let plain = behind.origin().strip_prefix("http://").unwrap().to_owned();
    let serving = behind.serve(auth.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, plain) = (acceptor.clone(), plain.clone());
            tokio::spawn(async move {
                // Whoever does not trust it breaks off here.
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut behind = TcpStream::connect(plain).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut behind).await;
            });
        }
    });
    Issued { auth, pem, _serving: serving }
}

/// What a protected server answers to someone with a token of that issuer.
async fn answered(issued: &Issued, trust: impl FnOnce(ResourceServer) -> ResourceServer) -> String {
    let exchange = TokenExchange::basic(issued.auth.issuer(), "machine", Secret::new("s3cr3t"))
        .audience("api");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let resource = format!("http://{address}/mcp");
    let protection = trust(ResourceServer::new(&resource).issuer(issued.auth.issuer()));
    let onward = async |ctx: turnbuckle::Ctx, exchange: turnbuckle::State<TokenExchange>| {
        ctx.token_exchange(&exchange.0).await.is_ok().to_string()
    };
    let server =
        Server::new("test", "1.0").state(exchange).tool(tool("onward", onward)).protect(protection);
    let bound = server.serve_http(listener).bind().await.unwrap();
    let serving = tokio::spawn(async move { drop(bound.await) });
    let claims = json!({"sub": "ann", "scope": "a", "aud": resource});
    let token = issued.auth.issue(claims.as_object().unwrap().clone());
    let (method, params) = call("onward");
    let answer = ask_at(&address, &Ask::modern(method, params).bearer(&token)).await;
    serving.abort();
    if answer.status == 200 { answer.said() } else { answer.status.to_string() }
}

#[tokio::test]
async fn an_issuer_is_trusted_by_the_authority_that_was_added_and_not_without_it() {
    let issued = issued().await;
    assert_eq!(answered(&issued, |server| server.tls_root(issued.pem.as_bytes())).await, "true");
    assert_eq!(answered(&issued, |server| server).await, "503");
    let another = self::issued().await;
    assert_eq!(answered(&issued, |server| server.tls_root(another.pem.as_bytes())).await, "503");
}

#[tokio::test]
async fn an_authority_that_can_not_be_read_is_known_before_anyone_comes() {
    for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let resource = ResourceServer::new("https://mcp.example.com/mcp")
            .issuer("https://auth.example.com")
            .tls_root(pem);
        let server = Server::new("test", "1.0").protect(resource);
        let told = server.http_service().check().unwrap_err().to_string();
        assert!(told.contains("a TLS root certificate"), "{told}");
    }
}
