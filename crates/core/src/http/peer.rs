use std::any::Any;
use std::cell::OnceCell;
use std::net::SocketAddr;
use std::rc::Rc;

use super::call_stats::CallStats;
use super::forwarded::TrustedProxies;

/// The client at the other end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// `None` on a Unix socket. If the connection begins with a header of the PROXY protocol, that of its client.
    pub address: Option<SocketAddr>,
    pub is_tls: bool,
    /// The proxies of the server, if the peer is one of them: what it says about its client is believed.
    pub(super) proxies: Option<Rc<TrustedProxies>>,
    /// The certificate that the client has shown and proved to hold, in DER.
    pub certificate: Option<Vec<u8>>,
    /// Counts the gRPC calls of the connection.
    pub call_stats: CallStats,
    /// The state of a [`Service`](super::Service) for the connection.
    pub(crate) service_state: ServiceState,
}

impl Peer {
    pub(crate) fn new(
        address: Option<SocketAddr>,
        is_tls: bool,
        proxies: Option<Rc<TrustedProxies>>,
        certificate: Option<Vec<u8>>,
    ) -> Self {
        Self {
            address,
            is_tls,
            proxies,
            certificate,
            call_stats: CallStats::default(),
            service_state: ServiceState::default(),
        }
    }
}

/// The state of a [`Service`](super::Service) for a connection: one value of a type that only the service knows.
#[derive(Debug, Default)]
pub(crate) struct ServiceState(OnceCell<Rc<dyn Any>>);

impl ServiceState {
    /// The value, made when it is first asked for.
    ///
    /// # Errors
    /// Those of `make`, which is called again then.
    pub(crate) fn get_or_try_insert_with<T: 'static, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Rc<T>, E> {
        let known = self.0.get().map(Rc::clone);
        if let Some(Ok(known)) = known.map(Rc::downcast) {
            return Ok(known);
        }
        let made = Rc::new(make()?);
        // A connection has one service: there is no value of another type.
        let _ = self.0.set(Rc::clone(&made) as Rc<dyn Any>);
        Ok(made)
    }
}
