use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::body::{Pipe, StreamBody};
use super::call::Admission;
use super::clock::Clock;
use super::date::Date;
use super::forwarded::TrustedProxies;
use super::limits::{Limits, REQUESTS};
use super::request_body::RequestBody;
use super::service::Service;
use crate::server::{Admission as Server, Arrival, Id};

/// Shared by all connections and requests of a server.
pub(super) struct Context {
    pub(super) limits: Limits,
    proxies: Option<Rc<TrustedProxies>>,
    pub(super) clock: Rc<Clock>,
    pub(super) date: Date,
    pub(super) admission: Rc<Admission>,
    service: RefCell<Option<Rc<dyn Service>>>,
    /// The body of all requests that have none.
    pub(super) no_body: Rc<RequestBody>,
    /// Bodies of events that are being sent, by the ids of their requests.
    event_streams: RefCell<HashMap<Id, Rc<RefCell<Pipe>>>>,
    /// Connections in their lingering close.
    pub(super) lingering: Cell<usize>,
}

impl Context {
    pub(super) fn new(limits: Limits, proxies: Option<TrustedProxies>) -> Self {
        Self {
            admission: Server::new(limits.capacity()),
            limits,
            proxies: proxies.map(Rc::new),
            clock: Rc::default(),
            date: Date::default(),
            service: RefCell::default(),
            no_body: Rc::default(),
            event_streams: RefCell::default(),
            lingering: Cell::default(),
        }
    }

    /// The proxies, if the address is that of one of them.
    pub(super) fn trusted(&self, address: Option<SocketAddr>) -> Option<Rc<TrustedProxies>> {
        let proxies = self.proxies.as_ref();
        proxies.filter(|proxies| proxies.trusts(address)).cloned()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.admission.is_stopping()
    }

    pub(super) fn delegate(&self, service: Rc<dyn Service>) {
        self.service.replace(Some(service));
    }

    /// How a request arrives for which a handler is needed.
    pub(super) fn arrival(&self) -> Arrival {
        let deadline = self.limits.deadline;
        Arrival {
            lane: REQUESTS,
            // The server's clock is late when PHP code has blocked the event loop.
            deadline: deadline.and_then(|after| Instant::now().checked_add(after)),
            ..Arrival::default()
        }
    }

    pub(super) fn has_service(&self) -> bool {
        self.service.borrow().is_some()
    }

    /// The write timeout of the answers of its service.
    pub(super) fn service_write_timeout(&self) -> Option<Duration> {
        self.service.borrow().as_ref()?.write_timeout()
    }

    pub(super) fn service_for(&self, request: &Request<Incoming>) -> Option<Rc<dyn Service>> {
        let service = self.service.borrow();
        service
            .as_ref()
            .filter(|service| service.takes(request))
            .map(Rc::clone)
    }

    /// The answer of a request begins to be sent. A server that stops ends bodies of events.
    pub(super) fn begin_stream(&self, id: Id, body: &StreamBody) {
        let Some(events) = body.events() else {
            return;
        };
        match self.is_stopping() {
            true => self.end_events(id, &events),
            false => drop(self.event_streams.borrow_mut().insert(id, events)),
        }
    }

    /// No more of the answer is sent.
    pub(super) fn end_stream(&self, id: Id, is_written: bool) {
        self.event_streams.borrow_mut().remove(&id);
        if is_written {
            self.admission.finish(id);
        }
    }

    pub(super) fn end_event_streams(&self) {
        for (id, events) in self.event_streams.take() {
            self.end_events(id, &events);
        }
    }

    fn end_events(&self, id: Id, events: &RefCell<Pipe>) {
        // The handler is told before the end of the body finishes the request.
        self.admission.cancel(id);
        events.borrow_mut().end();
    }
}
