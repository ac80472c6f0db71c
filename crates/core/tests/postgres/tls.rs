//! A server's half of TLS, with a certificate that the test has made, and a proxy with another one than that of the server behind it.

use std::io::{Read, Write};
use std::net::TcpStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use weft_core::sql::Endpoint;
use weft_core::sql::postgres::Config;

use crate::support::tls_url;

/// `SSLRequest` (PostgreSQL documentation, "Message Formats"), and the answer of a server that has TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const HAS_TLS: &[u8] = b"S";

/// A certificate for 127.0.0.1 that only those trust who name its file, and its key. Removed when dropped.
pub struct Certificate {
    directory: PathBuf,
}

impl Certificate {
    pub fn make() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weft-postgres-tls-{}-{number}", std::process::id());
        let certificate = Self {
            directory: std::env::temp_dir().join(name),
        };
        std::fs::create_dir_all(&certificate.directory).unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
            .args([
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-subj",
                "/CN=127.0.0.1",
            ])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-addext", "subjectAltName=IP:127.0.0.1"])
            .arg("-out")
            .arg(certificate.file())
            .arg("-keyout")
            .arg(certificate.key_file())
            .output()
            .expect("openssl cannot be started");
        let problem = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "openssl: {problem}");
        certificate
    }

    pub fn file(&self) -> PathBuf {
        self.directory.join("server.crt")
    }

    fn key_file(&self) -> PathBuf {
        self.directory.join("server.key")
    }

    pub fn server(&self) -> Arc<ServerConfig> {
        let certificate = CertificateDer::from_pem_file(self.file()).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.key_file()).unwrap();
        let config = ServerConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key);
        Arc::new(config.unwrap())
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Answers `SSLRequest`. The first read does the handshake.
pub fn accept(
    mut socket: BlockingStream,
    server: Arc<ServerConfig>,
) -> StreamOwned<ServerConnection, BlockingStream> {
    let mut request = [0; SSL_REQUEST.len()];
    socket.read_exact(&mut request).unwrap();
    assert_eq!(request, SSL_REQUEST);
    socket.write_all(HAS_TLS).unwrap();
    StreamOwned::new(ServerConnection::new(server).unwrap(), socket)
}

/// A proxy that ends TLS with its own certificate, reads everything and passes it on to the server of `DATABASE_TLS_URL`, with TLS again.
/// Returns its port.
pub async fn man_in_the_middle(certificate: &Certificate) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(certificate.server());
    tokio::task::spawn_local(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::task::spawn_local(async move {
                // A client that refuses the server hangs up.
                let _ = pass_on(socket, acceptor).await;
            });
        }
    });
    port
}

async fn pass_on(mut client: TcpStream, acceptor: TlsAcceptor) -> std::io::Result<()> {
    let mut request = [0; SSL_REQUEST.len()];
    client.read_exact(&mut request).await?;
    client.write_all(HAS_TLS).await?;
    let mut client = acceptor.accept(client).await?;

    let real = Config::parse(&tls_url()).unwrap().connect;
    let Endpoint::Tcp { host, port } = real.endpoint else {
        panic!("DATABASE_TLS_URL names no host");
    };
    let mut server = TcpStream::connect((host.as_str(), port)).await?;
    server.write_all(&SSL_REQUEST).await?;
    let mut answer = [0];
    server.read_exact(&mut answer).await?;
    assert_eq!(answer, HAS_TLS);
    let trusting = connector(real.ssl_root_cert.as_deref().unwrap());
    let name = ServerName::try_from(host).unwrap();
    let mut server = trusting.connect(name, server).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

fn connector(authority: &Path) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(authority).unwrap();
    roots.add(authority).unwrap();
    let config = ClientConfig::builder_with_provider(default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config).into()
}
