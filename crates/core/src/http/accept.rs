use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::connection::Connection;
use super::peer::Peer;
use super::refusal::RefusalReason;
use super::serve::serve;
use super::shared::Shared;
use crate::net::{Acceptor, PeerListener, Stream, TlsAcceptor};
use crate::server::Id;

/// Pause after an accept that failed, such as for want of a descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn accept(
    shared: &Rc<Shared>,
    acceptor: Acceptor,
    tls: Option<Rc<TlsAcceptor>>,
) -> io::Result<()> {
    while shared.context.admission.room().await {
        let accepted = tokio::select! {
            biased;
            accepted = acceptor.accept() => accepted,
            () = shared.context.admission.stopping() => break,
        };
        match accepted {
            Ok((stream, address)) => shared.open(stream, address, tls.clone()),
            Err(error) => shared.accept_failed(&error).await,
        }
    }
    for (stream, address) in acceptor.close()? {
        shared.open(stream, address, tls.clone());
    }
    Ok(())
}

/// Accepts connections that another worker leaves in the queue of its socket.
pub(super) async fn accept_from_peer(
    shared: Rc<Shared>,
    mut peer: PeerListener,
    tls: Option<Rc<TlsAcceptor>>,
) {
    while shared.context.admission.room().await {
        let accepted = tokio::select! {
            biased;
            accepted = peer.accept() => accepted,
            () = shared.context.admission.stopping() => return,
        };
        match accepted {
            Ok((stream, address)) => shared.open(stream, address, tls.clone()),
            Err(error) => shared.accept_failed(&error).await,
        }
    }
}

impl Shared {
    /// The client has gone again, or there are no descriptors: the server goes on.
    async fn accept_failed(&self, error: &io::Error) {
        let admission = &self.context.admission;
        admission.add_refusal(RefusalReason::Accept, None, &error.to_string());
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    fn open(
        self: &Rc<Self>,
        stream: Stream,
        address: Option<SocketAddr>,
        tls: Option<Rc<TlsAcceptor>>,
    ) {
        let server = &self.context;
        let proxies = server.trusted(address);
        // A proxy stands for many clients, and has no share.
        let sharer = address.filter(|_| proxies.is_none());
        let Ok(guard) = server.admission.connect(sharer) else {
            return;
        };
        let peer = Peer::new(address, tls.is_some(), proxies, None);
        let connection = self.insert(|id| Connection::new(id, Rc::clone(server), guard, peer));
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
        if let Some(connection) = connection {
            connection.end();
        }
    }
}
