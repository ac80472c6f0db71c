use std::io;
use std::rc::Rc;

use super::accept::{accept, accept_from_peer};
use super::call::Call;
use super::connection::Command;
use super::forwarded::TrustedProxies;
use super::limits::Limits;
use super::peer::Peer;
use super::refusal::RefusalReason;
use super::service::Service;
use super::shared::Shared;
use super::timeouts::enforce_timeouts;
use crate::net::{Listener, TlsAcceptor};
use crate::server::{self, Id, RefusalReport};

/// An event for the code that runs the handlers.
pub type Event = server::Event<Rc<Call>>;

/// An HTTP server. Clones are the same server; it ends with [`Server::stop`].
#[derive(Clone)]
pub struct Server {
    shared: Rc<Shared>,
}

impl Server {
    pub fn new(limits: Limits) -> Self {
        Self::behind(None, limits)
    }

    /// A server that believes what these proxies say about their clients.
    pub fn behind(proxies: Option<TrustedProxies>, limits: Limits) -> Self {
        Self {
            shared: Rc::new(Shared::new(limits, proxies)),
        }
    }

    /// Hands requests of another protocol to `service`.
    pub fn delegate(&self, service: Rc<dyn Service>) {
        self.shared.context.delegate(service);
    }

    /// Accepts connections until [`stop`](Self::stop). Runs on a `LocalSet`, whose tasks the connections become.
    ///
    /// With `tls` every connection is secured, which needs TCP.
    pub fn accept(
        &self,
        mut listener: Listener,
        tls: Option<Rc<TlsAcceptor>>,
    ) -> impl Future<Output = io::Result<()>> + use<> {
        let shared = Rc::clone(&self.shared);
        let open = shared.context.admission.open_listener();
        async move {
            let _open = open;
            for peer in listener.peer_listeners()? {
                tokio::task::spawn_local(accept_from_peer(Rc::clone(&shared), peer, tls.clone()));
            }
            accept(&shared, listener.acceptor()?, tls).await
        }
    }

    /// Keeps the clock and enforces the timeouts; does not end.
    pub fn keep_time(&self) -> impl Future<Output = ()> + use<> {
        let shared = Rc::clone(&self.shared);
        async move {
            let admission = Rc::clone(&shared.context.admission);
            tokio::join!(enforce_timeouts(shared), admission.keep_time());
        }
    }

    /// How many handlers the limits allow at a time.
    pub fn handlers(&self) -> usize {
        self.shared.context.admission.handlers()
    }

    /// There are no more than that many fibers for handlers: fewer requests run, and fewer last, than the limits say. May be called
    /// again when that changes.
    pub fn fit(&self, fibers: usize) {
        self.shared.context.admission.fit(fibers);
    }

    /// Completes with refusals to log: the first of a reason at once, then those of ten seconds together. Dropping the future loses none.
    /// One future at a time.
    pub fn refusals(&self) -> impl Future<Output = Vec<RefusalReport<RefusalReason>>> + use<> {
        let admission = Rc::clone(&self.shared.context.admission);
        async move { admission.reports().await }
    }

    /// Completes when [`take`](Self::take) has an event.
    pub fn next(&self) -> impl Future<Output = ()> + use<> {
        let admission = Rc::clone(&self.shared.context.admission);
        async move { admission.ready().await }
    }

    /// Calls `listener` when [`take`](Self::take) has an event, without waking a task: once, and again after each [`rearm`](Self::rearm).
    /// There is one listener.
    pub fn listen(&self, listener: impl Fn() + 'static) {
        self.shared.context.admission.listen(listener);
    }

    /// The listener is called once more: now, if [`take`](Self::take) has an event.
    pub fn rearm(&self) {
        self.shared.context.admission.rearm();
    }

    /// The next event. Requests of one client address come in the order of their arrival, clients take turns, and requests come only
    /// while there is room in flight.
    pub fn take(&self) -> Option<Event> {
        self.shared.context.admission.take()
    }

    /// Accepts no more connections, and lets the open ones end with the answers to what is in flight.
    pub fn stop(&self) {
        let shared = &self.shared;
        if !shared.context.admission.stop() {
            return;
        }
        for connection in shared.connections.borrow().iter() {
            connection.stop();
        }
        shared.context.end_event_streams();
    }

    /// Completes when no connection is open or waits to be accepted.
    pub fn drained(&self) -> impl Future<Output = ()> + use<> {
        let admission = Rc::clone(&self.shared.context.admission);
        async move { admission.drained().await }
    }

    /// Ends every connection immediately.
    pub fn abort(&self) {
        self.stop();
        for connection in self.shared.connections.borrow().iter() {
            connection.command(Command::Abort);
        }
    }

    /// The clients that are connected, by the ids of their connections.
    pub fn peers(&self) -> Vec<(Id, Rc<Peer>)> {
        let connections = self.shared.connections.borrow();
        connections
            .iter()
            .map(|open| (open.id, open.peer()))
            .collect()
    }

    pub fn connections(&self) -> usize {
        self.shared.context.admission.connections()
    }

    /// Requests whose answer has not been sent, those in the queue included.
    pub fn in_flight(&self) -> usize {
        self.shared.context.admission.attached()
    }
}
