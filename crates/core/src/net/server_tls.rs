use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::{self, CryptoProvider};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{
    ClientHello, NoClientAuth, ResolvesServerCert, WebPkiClientVerifier,
};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::tls::{Identity, roots};

/// Options of a TLS server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerTls {
    /// Certificates with their keys. A client gets the first one that is valid for the requested name, else the first of all.
    pub identities: Vec<Identity>,
    /// Authorities of client certificates, a PEM file; `None` requests no client certificate.
    pub client_authorities: Option<PathBuf>,
    /// Clients without a certificate are refused.
    pub client_required: bool,
    /// Protocols offered by ALPN (RFC 7301), the preferred one first.
    pub protocols: Vec<Vec<u8>>,
}

/// Secures the connections a server accepts.
pub struct TlsAcceptor {
    options: ServerTls,
    config: RefCell<Arc<ServerConfig>>,
}

impl TlsAcceptor {
    /// # Errors
    /// Which file is invalid, and why.
    pub fn new(options: ServerTls) -> Result<Self, String> {
        let config = RefCell::new(config(&options)?);
        Ok(Self { options, config })
    }

    /// Reads the files again. Open connections are not affected; after an error the old certificates stay in use.
    ///
    /// # Errors
    /// Which file is invalid, and why.
    pub fn reload(&self) -> Result<(), String> {
        let config = config(&self.options)?;
        self.config.replace(config);
        Ok(())
    }

    pub(crate) async fn accept(&self, socket: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.config.borrow());
        tokio_rustls::TlsAcceptor::from(config).accept(socket).await
    }
}

fn config(options: &ServerTls) -> Result<Arc<ServerConfig>, String> {
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(client_verifier(options, &provider)?)
        .with_cert_resolver(Arc::new(Certificates::load(options, &provider)?));
    config.alpn_protocols.clone_from(&options.protocols);
    Ok(Arc::new(config))
}

fn client_verifier(
    options: &ServerTls,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let Some(file) = &options.client_authorities else {
        return Ok(Arc::new(NoClientAuth));
    };
    let roots: RootCertStore = roots(Some(file))?;
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = match options.client_required {
        true => builder,
        false => builder.allow_unauthenticated(),
    };
    builder
        .build()
        .map_err(|error| format!("client authorities {}: {error}", file.display()))
}

/// Selects the certificate by the requested name (RFC 6066 §3).
#[derive(Debug)]
struct Certificates {
    all: Vec<Arc<CertifiedKey>>,
}

impl Certificates {
    fn load(options: &ServerTls, provider: &CryptoProvider) -> Result<Self, String> {
        if options.identities.is_empty() {
            return Err("a TLS server needs a certificate".to_owned());
        }
        let load = |identity: &Identity| {
            let (chain, key) = identity.load()?;
            CertifiedKey::from_der(chain, key, provider)
                .map(Arc::new)
                .map_err(|error| {
                    let (cert, key) = (identity.cert_file.display(), identity.key_file.display());
                    format!("certificate {cert} with the key {key}: {error}")
                })
        };
        let all = options
            .identities
            .iter()
            .map(load)
            .collect::<Result<_, _>>()?;
        Ok(Self { all })
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello
            .server_name()
            .and_then(|name| ServerName::try_from(name).ok())
            .and_then(|name| self.all.iter().find(|key| is_valid_for(key, &name)));
        named.or_else(|| self.all.first()).map(Arc::clone)
    }
}

fn is_valid_for(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    key.cert
        .first()
        .is_some_and(|certificate: &CertificateDer<'_>| {
            webpki::EndEntityCert::try_from(certificate)
                .is_ok_and(|certificate| certificate.verify_is_valid_for_subject_name(name).is_ok())
        })
}
