use std::io;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{self, CryptoProvider};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore,
    SignatureScheme,
};

use super::config::{Config, SslMode};

/// A connector for the mode and the certificates of `config`.
///
/// # Errors
/// What is wrong with the certificates to trust.
pub(super) fn connector(config: &Config) -> Result<TlsConnector, String> {
    let provider = Arc::new(crypto::ring::default_provider());
    let verifier = Verifier {
        trusted: trusted(config, &provider)?,
        any_name: config.ssl_mode != SslMode::VerifyFull,
        provider: Arc::clone(&provider),
    };
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(client)))
}

pub(super) async fn handshake(
    connector: &TlsConnector,
    host: &str,
    socket: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    connector.connect(name, socket).await
}

/// The check against the trusted authorities, where the mode asks for one. As in libpq, `require` with a root certificate
/// means `verify-ca`.
fn trusted(
    config: &Config,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>, String> {
    let roots = match (config.ssl_mode, &config.ssl_root_cert) {
        (SslMode::VerifyCa | SslMode::VerifyFull | SslMode::Require, Some(path)) => {
            let certificates = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect)
                .map_err(|error| format!("cannot read sslrootcert {}: {error}", path.display()))?;
            roots(certificates)
        }
        (SslMode::VerifyCa | SslMode::VerifyFull, None) => {
            roots(rustls_native_certs::load_native_certs().certs)
        }
        _ => return Ok(None),
    };
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map(Some)
        .map_err(|error| format!("no usable certificate authority to trust: {error}"))
}

fn roots(certificates: Vec<CertificateDer<'static>>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    roots
}

/// `sslmode` as rustls understands it.
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
