//! Owns what a server needs to be spoken to over TLS, and a server that speaks HTTP/2.
//! Does not own any expectation.

use std::{
    future::poll_fn,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, server::SendResponse};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};

/// Who signs certificates, for one test.
pub(crate) struct Authority {
    /// What a client that trusts it is given.
    pub(crate) pem: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Authority {
    /// One that vouches for this machine's address and for `secure.test`.
    pub(crate) fn new() -> Authority {
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        root.distinguished_name.push(DnType::CommonName, "the test's own authority");
        let root_key = KeyPair::generate().unwrap();
        let pem = root.self_signed(&root_key).unwrap().pem();
        let issuer = Issuer::new(root, root_key);
        let names = vec!["127.0.0.1".to_owned(), "secure.test".to_owned()];
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        Authority { pem, certificate: certificate.der().clone(), key: key.serialize_der() }
    }

    /// Accepts connections for a server that offers these protocols.
    pub(crate) fn acceptor(&self, protocols: &[&str]) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A server that speaks nothing but HTTP/2.
pub(crate) struct Http2 {
    address: SocketAddr,
    requests: mpsc::Receiver<Stream>,
    connections: Arc<AtomicUsize>,
}

/// One request of it.
pub(crate) struct Stream {
    pub(crate) head: http::request::Parts,
    /// Null before [`Stream::read`].
    pub(crate) body: Value,
    incoming: RecvStream,
    respond: SendResponse<Bytes>,
    /// Once the answer has begun.
    answer: Option<SendStream<Bytes>>,
}

impl Http2 {
    pub(crate) async fn new(authority: &Authority) -> Http2 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel(1024);
        let connections = Arc::new(AtomicUsize::new(0));
        let (acceptor, count) = (authority.acceptor(&["h2"]), connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, SeqCst);
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let mut connection = h2::server::handshake(stream).await.unwrap();
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        let (head, incoming) = request.into_parts();
                        let body = Value::Null;
                        let stream = Stream { head, body, incoming, respond, answer: None };
                        sender.send(stream).await.unwrap();
                    }
                });
            }
        });
        Http2 { address, requests, connections }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}/mcp", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    /// The next request, of which only the head was read.
    pub(crate) async fn head(&mut self) -> Stream {
        self.requests.recv().await.unwrap()
    }

    /// The next request, whole.
    pub(crate) async fn request(&mut self) -> Stream {
        let mut stream = self.head().await;
        stream.read().await.unwrap();
        stream
    }

    /// Whether a request came that nobody looked at.
    pub(crate) fn has_more(&self) -> bool {
        !self.requests.is_empty()
    }
}

impl Stream {
    /// Reads the body to its end, or until it is taken back.
    pub(crate) async fn read(&mut self) -> Result<(), h2::Error> {
        let mut text = Vec::new();
        while let Some(data) = self.incoming.data().await {
            let data = data?;
            let _ = self.incoming.flow_control().release_capacity(data.len());
            text.extend_from_slice(&data);
        }
        self.body = serde_json::from_slice(&text).unwrap();
        Ok(())
    }

    /// Begins to answer.
    pub(crate) fn begin(&mut self, kind: &str) {
        let head = http::Response::builder().header("content-type", kind).body(()).unwrap();
        self.answer = Some(self.respond.send_response(head, false).unwrap());
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        let answer = self.answer.as_mut().expect("the answer has begun");
        answer.send_data(Bytes::from(text.into()), false).unwrap();
    }

    /// Answers with a result.
    pub(crate) fn result(&mut self, result: Value) {
        self.begin("application/json");
        let answer = json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result});
        let stream = self.answer.as_mut().expect("it has just begun");
        stream.send_data(Bytes::from(answer.to_string()), true).unwrap();
    }

    /// Waits until the client takes the request back.
    pub(crate) async fn reset(&mut self) -> Reason {
        let reset = match &mut self.answer {
            Some(answer) => poll_fn(|context| answer.poll_reset(context)).await,
            None => poll_fn(|context| self.respond.poll_reset(context)).await,
        };
        reset.unwrap()
    }
}
