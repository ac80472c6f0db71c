//! rustls set up from [`TlsOptions`]; the provider is always named, so no process-wide default is needed.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::config::{Identity, TlsOptions};

/// The connector and the name the peer's certificate must carry; the error says which file or name is wrong.
pub(super) fn connector(
    options: &TlsOptions,
    host: &str,
) -> Result<(TlsConnector, ServerName<'static>), String> {
    let name = options.server_name.as_deref().unwrap_or(host);
    let server_name = ServerName::try_from(name.to_owned())
        .map_err(|_| format!("\"{name}\" is not a name a certificate can carry"))?;
    let config = client_config(options)?;
    Ok((TlsConnector::from(Arc::new(config)), server_name))
}

fn client_config(options: &TlsOptions) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = if options.verify_peer {
        builder.with_root_certificates(roots(options.ca_file.as_deref())?)
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    };
    match &options.identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => {
            let (chain, key) = load_identity(identity)?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(named("certfile", &identity.cert_file))
        }
    }
}

fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, String> {
    let certificates = match ca_file {
        Some(file) => certificates("cacertfile", file)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates);
    match (added, ca_file) {
        (0, Some(file)) => Err(format!(
            "cacertfile {} holds no certificate",
            file.display()
        )),
        (0, None) => {
            Err("the system trusts no certificate authority; name one as cacertfile".into())
        }
        _ => Ok(store),
    }
}

fn load_identity(
    identity: &Identity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let chain = certificates("certfile", &identity.cert_file)?;
    let key = PrivateKeyDer::from_pem_file(&identity.key_file)
        .map_err(named("keyfile", &identity.key_file))?;
    Ok((chain, key))
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

/// Takes any certificate but still checks that the peer holds its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
