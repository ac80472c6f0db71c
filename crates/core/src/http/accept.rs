use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::call_stats::CallStats;
use super::connection::{Connection, Peer};
use super::refusals::Cause;
use super::registry::Id;
use super::serve::serve;
use super::service::ServiceState;
use super::shared::Shared;
use crate::net::{Acceptor, PeerListener, Stream, TlsAcceptor};

/// How long to wait when the system has no descriptor left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn accept(
    shared: &Rc<Shared>,
    acceptor: Acceptor,
    tls: Option<Rc<TlsAcceptor>>,
) -> io::Result<()> {
    while shared.room().await {
        let accepted = tokio::select! {
            biased;
            accepted = acceptor.accept() => accepted,
            () = shared.stop.notified() => break,
        };
        match accepted {
            Ok((stream, address)) => shared.open(stream, address, tls.clone()),
            Err(error) => shared.not_accepted(&error).await,
        }
    }
    for (stream, address) in acceptor.close()? {
        shared.open(stream, address, tls.clone());
    }
    Ok(())
}

/// Accepts what waits for another worker and is not accepted there.
pub(super) async fn help(shared: Rc<Shared>, mut peer: PeerListener, tls: Option<Rc<TlsAcceptor>>) {
    while shared.room().await {
        let accepted = tokio::select! {
            biased;
            accepted = peer.accept() => accepted,
            () = shared.stop.notified() => return,
        };
        match accepted {
            Ok((stream, address)) => shared.open(stream, address, tls.clone()),
            Err(error) => shared.not_accepted(&error).await,
        }
    }
}

/// Somebody accepts connections for as long as this lives.
pub(super) struct Accepting(Rc<Shared>);

impl Accepting {
    pub(super) fn begin(shared: &Rc<Shared>) -> Self {
        shared.accepting.set(shared.accepting.get() + 1);
        Self(Rc::clone(shared))
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.accepting.set(self.0.accepting.get() - 1);
        self.0.connection_ended.notify_waiters();
    }
}

impl Shared {
    /// Ends when there may be one connection more. False: the server is stopping.
    async fn room(&self) -> bool {
        while self.connections.borrow().len() >= self.limits.connections && !self.is_stopping() {
            tokio::select! {
                () = self.connection_ended.notified() => {}
                () = self.stop.notified() => {}
            }
        }
        !self.is_stopping()
    }

    /// The client is gone again, or there are no descriptors: neither is the end of the server.
    async fn not_accepted(&self, error: &io::Error) {
        self.refusals.add(Cause::Accept, None, &error.to_string());
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    fn open(
        self: &Rc<Self>,
        stream: Stream,
        address: Option<SocketAddr>,
        tls: Option<Rc<TlsAcceptor>>,
    ) {
        let Ok(place) = self.admission.connect(address.map(|address| address.ip())) else {
            return self.refusals.add(Cause::ClientConnections, address, "");
        };
        let peer = Peer {
            address,
            is_tls: tls.is_some(),
            certificate: None,
            call_stats: CallStats::default(),
            service_state: ServiceState::default(),
        };
        let connection = self
            .connections
            .borrow_mut()
            .insert(|id| Connection::new(id, Rc::clone(self), place, peer));
        let shared = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let _open = Open {
                shared,
                id: connection.id,
            };
            serve(connection, stream, tls).await;
        });
    }
}

/// A connection, in the registry for as long as its task lives.
struct Open {
    shared: Rc<Shared>,
    id: Id,
}

impl Drop for Open {
    fn drop(&mut self) {
        let connection = self.shared.connections.borrow_mut().remove(self.id);
        drop(connection);
        self.shared.connection_ended.notify_waiters();
    }
}
