use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::task::Waker;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tokio::sync::Notify;

use super::body::Pipe;
use super::call::{Call, Stage};
use super::connection::Connection;
use super::date::Date;
use super::ebb::Ebb;
use super::limits::Limits;
use super::refusal::plain;
use super::registry::{Id, Registry};
use super::request_body::RequestBody;
use super::service::Service;
use super::sweep::Tick;

/// What the one who runs the handlers has to hear of.
pub enum Event {
    /// A request to answer.
    Request(Rc<Call>),
    /// The client of a request that was handed out has gone away.
    Gone(Id),
    /// A request that was handed out is past its deadline.
    Expired(Id),
}

/// What a server, its connections and their requests have in common.
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) clock: Rc<Cell<Tick>>,
    pub(super) date: Date,
    pub(super) ebb: Ebb,
    pub(super) connections: RefCell<Registry<Connection>>,
    pub(super) calls: RefCell<Registry<Call>>,
    pub(super) ready: RefCell<VecDeque<Rc<Call>>>,
    events: RefCell<VecDeque<Event>>,
    /// Requests that are with their handlers.
    handed: Cell<usize>,
    /// Who waits for the next event.
    pub(super) waiter: RefCell<Option<Waker>>,
    pub(super) service: RefCell<Option<Rc<dyn Service>>>,
    /// That of all requests which have none.
    pub(super) no_body: Rc<RequestBody>,
    /// Bodies of events that are being sent, by the id of their request.
    event_streams: RefCell<HashMap<Id, Rc<RefCell<Pipe>>>>,
    pub(super) stopping: Cell<bool>,
    pub(super) stop: Notify,
    /// Listening sockets that are accepted from.
    pub(super) accepting: Cell<usize>,
    /// Connections that wait for the end of what their client sends.
    pub(super) lingering: Cell<usize>,
    pub(super) connection_ended: Notify,
}

impl Shared {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            clock: Rc::default(),
            date: Date::default(),
            ebb: Ebb::default(),
            connections: RefCell::default(),
            calls: RefCell::default(),
            ready: RefCell::default(),
            events: RefCell::default(),
            handed: Cell::default(),
            waiter: RefCell::default(),
            service: RefCell::default(),
            no_body: Rc::default(),
            event_streams: RefCell::default(),
            stopping: Cell::default(),
            stop: Notify::new(),
            accepting: Cell::default(),
            lingering: Cell::default(),
            connection_ended: Notify::new(),
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.borrow().is_empty()
            || self.handed.get() < self.limits.in_flight && !self.ready.borrow().is_empty()
    }

    pub(super) fn take(&self) -> Option<Event> {
        if let Some(event) = self.events.borrow_mut().pop_front() {
            return Some(event);
        }
        let mut ready = self.ready.borrow_mut();
        while self.handed.get() < self.limits.in_flight {
            let call = ready.pop_front()?;
            // Those that left while they were waiting concern nobody.
            if call.stage.get() == Stage::Queued {
                call.stage.set(Stage::Handed);
                call.was_handed.set(true);
                self.handed.set(self.handed.get() + 1);
                return Some(Event::Request(call));
            }
        }
        None
    }

    fn announce(&self, event: Event) {
        self.events.borrow_mut().push_back(event);
        self.wake();
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.waiter.borrow_mut().take() {
            waker.wake();
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.ready.borrow().len() >= self.limits.queue
    }

    /// Past the deadline: its handler is told, once; where it has none yet, the client is.
    pub(super) fn expire(&self, call: &Call) {
        if call.is_late.replace(true) {
            return;
        }
        match call.stage.get() {
            Stage::Handed => self.announce(Event::Expired(call.id)),
            _ => {
                call.respond(plain(StatusCode::SERVICE_UNAVAILABLE));
            }
        }
    }

    pub(super) fn has_service(&self) -> bool {
        self.service.borrow().is_some()
    }

    pub(super) fn service_for(&self, request: &Request<Incoming>) -> Option<Rc<dyn Service>> {
        let service = self.service.borrow();
        service
            .as_ref()
            .filter(|service| service.takes(request))
            .map(Rc::clone)
    }

    pub(super) fn stream_began(&self, id: Id, events: Option<Rc<RefCell<Pipe>>>) {
        let Some(events) = events else {
            return;
        };
        if self.is_stopping() {
            events.borrow_mut().end();
            self.announce(Event::Gone(id));
        } else {
            self.event_streams.borrow_mut().insert(id, events);
        }
    }

    /// What is written to it would reach nobody.
    pub(super) fn stream_ended(&self, id: Id, is_whole: bool) {
        self.event_streams.borrow_mut().remove(&id);
        if !is_whole {
            self.announce(Event::Gone(id));
        }
    }

    pub(super) fn end_event_streams(&self) {
        for (id, events) in self.event_streams.take() {
            events.borrow_mut().end();
            self.announce(Event::Gone(id));
        }
    }

    /// Its handler has no more to do with it.
    pub(super) fn end(&self, call: &Call) {
        self.calls.borrow_mut().remove(call.id);
        match call.stage.replace(Stage::Gone) {
            Stage::Handed => self.announce(Event::Gone(call.id)),
            Stage::Answered if call.was_handed.get() => {}
            _ => return,
        }
        self.handed.set(self.handed.get() - 1);
        if !self.ready.borrow().is_empty() {
            self.wake();
        }
    }
}
