use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{self, CryptoProvider};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, InvalidMessage,
    RootCertStore, SignatureScheme,
};

use super::Stream;

/// Options of a TLS client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientTls {
    /// Trusted authorities, a PEM file; `None` is those of the operating system.
    pub ca_file: Option<PathBuf>,
    pub check: PeerCheck,
    /// The client certificate, for servers that request one.
    pub identity: Option<Identity>,
    /// The name that the certificate must carry, instead of the host.
    pub server_name: Option<String>,
    /// Protocols offered by ALPN, the preferred one first; empty is no offer.
    pub protocols: Vec<Vec<u8>>,
}

/// How the peer's certificate is verified. That the peer holds its key is always verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PeerCheck {
    /// Any certificate is accepted.
    None,
    /// A trusted authority must have signed it, for any name.
    Authority,
    /// And it must carry the peer's name.
    #[default]
    AuthorityAndName,
}

/// A certificate chain and its key, both PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

/// Secures connections according to [`ClientTls`]. Building one reads files; reading the system's certificates takes milliseconds.
pub(crate) struct TlsConnector {
    rustls: tokio_rustls::TlsConnector,
    server_name: Option<String>,
}

impl TlsConnector {
    /// # Errors
    /// Which file is invalid, and why.
    pub(crate) fn new(options: &ClientTls) -> Result<Self, String> {
        // The provider is explicit, so no process-wide default is needed.
        let provider = Arc::new(crypto::ring::default_provider());
        let verifier = Verifier {
            trusted: trusted(options, &provider)?,
            any_name: options.check == PeerCheck::Authority,
            provider: Arc::clone(&provider),
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.load()?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(named("certificate", &identity.cert_file))?
            }
        };
        config.alpn_protocols.clone_from(&options.protocols);
        Ok(Self {
            rustls: Arc::new(config).into(),
            server_name: options.server_name.clone(),
        })
    }

    /// # Errors
    /// Why the peer or its certificate was refused.
    pub(crate) async fn handshake(&self, host: &str, socket: TcpStream) -> Result<Stream, String> {
        let name = self.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| format!("\"{name}\" is not a name a certificate can carry"))?;
        let stream = self.rustls.connect(name, socket).await;
        stream.map(Stream::tls).map_err(|error| in_words(&error))
    }
}

fn in_words(error: &std::io::Error) -> String {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<TlsError>());
    match cause {
        // The first bytes are of another protocol.
        Some(TlsError::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "the server does not answer with TLS; is this its port without TLS?".to_owned()
        }
        // `openssl req -x509` makes such a certificate by default.
        _ if error.to_string().contains("CaUsedAsEndEntity") => {
            "the server's own certificate is one of an authority (CA:TRUE): make it with basicConstraints=CA:FALSE".to_owned()
        }
        _ => error.to_string(),
    }
}

impl Identity {
    pub(super) fn load(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let chain = certificates("certificate", &self.cert_file)?;
        let key =
            PrivateKeyDer::from_pem_file(&self.key_file).map_err(named("key", &self.key_file))?;
        Ok((chain, key))
    }
}

fn trusted(
    options: &ClientTls,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>, String> {
    if options.check == PeerCheck::None {
        return Ok(None);
    }
    let roots = roots(options.ca_file.as_deref())?;
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map(Some)
        .map_err(|error| format!("no usable certificate authority to trust: {error}"))
}

pub(super) fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, String> {
    let authorities = match ca_file {
        Some(file) => certificates("certificate authorities", file)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    match (roots.add_parsable_certificates(authorities), ca_file) {
        ((0, _), Some(file)) => Err(format!(
            "certificate authorities {}: the file holds no usable certificate",
            file.display()
        )),
        ((0, _), None) => Err(
            "the system trusts no certificate authority; name a file with those to trust".into(),
        ),
        _ => Ok(roots),
    }
}

fn certificates(what: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(named(what, file))
}

fn named<E: Display>(what: &str, file: &Path) -> impl Fn(E) -> String {
    let place = format!("{what} {}", file.display());
    move |error| format!("{place}: {error}")
}

/// [`PeerCheck`] as rustls understands it.
#[derive(Debug)]
struct Verifier {
    /// `None` accepts any certificate.
    trusted: Option<Arc<WebPkiServerVerifier>>,
    /// Accepts a certificate of another host.
    any_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let Some(trusted) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        // The chain is checked before the name, so these two errors mean that the chain is good.
        match trusted.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_server_without_tls_is_said_to_be_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(b"AMQP\0\0\x09\x01").await.unwrap();
            socket
        };
        let client = async {
            let options = ClientTls {
                check: PeerCheck::None,
                ..ClientTls::default()
            };
            let socket = TcpStream::connect(address).await.unwrap();
            let connector = TlsConnector::new(&options).unwrap();
            connector.handshake("localhost", socket).await.err()
        };
        let (_socket, refused) = tokio::join!(server, client);
        assert_eq!(
            refused.as_deref(),
            Some("the server does not answer with TLS; is this its port without TLS?")
        );
    }
}
