//! Owns what servers need to be spoken to over TLS: who vouches for them, and a place in front of
//! each that speaks it. Does not own any expectation.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tokio::{
    io::{AsyncReadExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
};
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
    /// What whoever trusts it is given.
    pub(crate) pem: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

/// A place that is known before it leads anywhere.
pub(crate) struct Place {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

/// How often someone came, and how often they spoke TLS and believed the certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visits {
    came: Arc<AtomicUsize>,
    stayed: Arc<AtomicUsize>,
}

impl Authority {
    /// One that vouches for these names.
    pub(crate) fn of(names: &[&str]) -> Authority {
        Authority::until(names, 4096)
    }

    /// The same until this year.
    pub(crate) fn until(names: &[&str], year: i32) -> Authority {
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        root.distinguished_name.push(DnType::CommonName, "the test's own authority");
        let root_key = KeyPair::generate().unwrap();
        let pem = root.self_signed(&root_key).unwrap().pem();
        let issuer = Issuer::new(root, root_key);
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut certificate = CertificateParams::new(names).unwrap();
        certificate.not_after = date_time_ymd(year, 1, 1);
        let certificate = certificate.signed_by(&key, &issuer).unwrap();
        Authority { pem, certificate: certificate.der().clone(), key: key.serialize_der() }
    }

    pub(crate) async fn place(&self) -> Place {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Place { listener, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }
}

impl Place {
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub(crate) fn origin(&self) -> String {
        format!("https://{}", self.address())
    }

    /// From now on whoever comes is heard and never answered; says when they have spoken.
    pub(crate) fn stall(self) -> watch::Receiver<usize> {
        let (send, spoken) = watch::channel(0);
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = self.listener.accept().await {
                assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
                open.push(stream);
                send.send_modify(|spoken| *spoken += 1);
            }
        });
        spoken
    }

    /// Without TLS.
    pub(crate) fn into_plain(self) -> TcpListener {
        self.listener
    }

    /// From now on whoever comes is led there.
    pub(crate) fn lead_to(self, to: SocketAddr) -> Visits {
        let visits = Visits::default();
        let counted = visits.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = self.listener.accept().await {
                counted.came.fetch_add(1, Ordering::SeqCst);
                let (acceptor, counted) = (self.acceptor.clone(), counted.clone());
                // Small pieces go back and forth here.
                stream.set_nodelay(true).unwrap();
                tokio::spawn(async move {
                    let Ok(mut outside) = acceptor.accept(stream).await else { return };
                    counted.stayed.fetch_add(1, Ordering::SeqCst);
                    // Nobody may be there just now.
                    let Ok(mut inside) = TcpStream::connect(to).await else { return };
                    inside.set_nodelay(true).unwrap();
                    // Either side may leave without a word.
                    let _ = copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        visits
    }
}

impl Visits {
    pub(crate) fn came(&self) -> usize {
        self.came.load(Ordering::SeqCst)
    }

    pub(crate) fn stayed(&self) -> usize {
        self.stayed.load(Ordering::SeqCst)
    }
}
