use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use super::accept::{Accepting, accept, help};
use super::connection::{Command, Peer};
use super::limits::Limits;
use super::refusals::Notice;
use super::registry::Id;
use super::service::Service;
use super::shared::{Event, Shared};
use super::timeouts::enforce_timeouts;
use crate::net::{Listener, TlsAcceptor};

/// An HTTP server. Clones are the same server; it ends with [`Server::stop`].
#[derive(Clone)]
pub struct Server {
    shared: Rc<Shared>,
}

impl Server {
    pub fn new(limits: Limits) -> Self {
        Self {
            shared: Rc::new(Shared::new(limits)),
        }
    }

    /// Hands requests of another protocol to `service`.
    pub fn delegate(&self, service: Rc<dyn Service>) {
        *self.shared.service.borrow_mut() = Some(service);
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
        let accepting = Accepting::begin(&shared);
        async move {
            let _accepting = accepting;
            for peer in listener.peer_listeners()? {
                tokio::task::spawn_local(help(Rc::clone(&shared), peer, tls.clone()));
            }
            accept(&shared, listener.acceptor()?, tls).await
        }
    }

    /// Keeps the clock and enforces the time-outs; does not end.
    pub fn keep_time(&self) -> impl Future<Output = ()> + use<> {
        enforce_timeouts(Rc::clone(&self.shared))
    }

    /// How many handlers the limits allow at a time.
    pub fn handlers(&self) -> usize {
        self.shared.admission.handlers()
    }

    /// There are no more than that many fibers for handlers: fewer requests run, and fewer last, than the limits say. May be called
    /// again when that changes.
    pub fn fit(&self, fibers: usize) {
        self.shared.admission.fit(fibers);
    }

    /// What was refused or failed without a handler, by cause; ends once there is something, and says no more than once in ten
    /// seconds about each cause. Cancelling it loses nothing.
    pub fn refused(&self) -> impl Future<Output = Vec<Notice>> + use<> {
        let shared = Rc::clone(&self.shared);
        async move { shared.refusals.due(&shared.clock).await }
    }

    /// Ends when [`take`](Self::take) has something.
    pub fn next(&self) -> impl Future<Output = ()> + use<> {
        let shared = Rc::clone(&self.shared);
        poll_fn(move |context| {
            if shared.has_events() {
                return Poll::Ready(());
            }
            *shared.admission.waiter.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// Whether [`take`](Self::take) has something now.
    pub fn has_events(&self) -> bool {
        self.shared.has_events()
    }

    /// The next event. Requests of one client address come in the order of their arrival, clients take turns, and requests come only
    /// while there is room in flight.
    pub fn take(&self) -> Option<Event> {
        self.shared.take()
    }

    /// Accepts no more connections, and lets the open ones end with the answers to what is in flight.
    pub fn stop(&self) {
        let shared = &self.shared;
        if shared.stopping.replace(true) {
            return;
        }
        shared.stop.notify_waiters();
        for connection in shared.connections.borrow().iter() {
            connection.stop();
        }
        shared.end_event_streams();
    }

    /// Ends when no connection is open, nor waits to be accepted.
    pub fn drained(&self) -> impl Future<Output = ()> + use<> {
        let shared = Rc::clone(&self.shared);
        async move {
            while shared.accepting.get() > 0 || shared.connections.borrow().len() > 0 {
                shared.connection_ended.notified().await;
            }
        }
    }

    /// Ends every connection now, whatever it is doing.
    pub fn abort(&self) {
        self.stop();
        for connection in self.shared.connections.borrow().iter() {
            connection.command(Command::Abort);
        }
    }

    /// Who is connected, by the ids of their connections.
    pub fn peers(&self) -> Vec<(Id, Rc<Peer>)> {
        let connections = self.shared.connections.borrow();
        connections
            .iter()
            .map(|open| (open.id, open.peer()))
            .collect()
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.borrow().len()
    }

    /// Requests that have arrived and are not answered, those in the queue included.
    pub fn in_flight(&self) -> usize {
        self.shared.calls.borrow().len()
    }
}
