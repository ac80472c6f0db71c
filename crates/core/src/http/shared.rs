use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tokio::sync::Notify;

use super::admission::Admission;
use super::body::Pipe;
use super::call::{Call, Stage};
use super::connection::Connection;
use super::date::Date;
use super::error_response::{last, plain};
use super::limits::Limits;
use super::memory_trim::MemoryTrim;
use super::refusals::{Cause, Refusals};
use super::registry::{Id, Registry};
use super::request_body::RequestBody;
use super::service::Service;
use super::timeouts::Tick;

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
    pub(super) memory_trim: MemoryTrim,
    pub(super) connections: RefCell<Registry<Connection>>,
    pub(super) calls: RefCell<Registry<Call>>,
    pub(super) admission: Rc<Admission>,
    pub(super) refusals: Refusals,
    events: RefCell<VecDeque<Event>>,
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
            admission: Admission::new(limits.capacity()),
            refusals: Refusals::default(),
            limits,
            clock: Rc::default(),
            date: Date::default(),
            memory_trim: MemoryTrim::default(),
            connections: RefCell::default(),
            calls: RefCell::default(),
            events: RefCell::default(),
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
        !self.events.borrow().is_empty() || self.admission.has_next()
    }

    pub(super) fn take(&self) -> Option<Event> {
        if let Some(event) = self.events.borrow_mut().pop_front() {
            return Some(event);
        }
        while let Some((id, permit)) = self.admission.next() {
            let call = self.calls.borrow().get(id).map(Rc::clone);
            // One that was answered in the queue needs no handler.
            if let Some(call) = call.filter(|call| call.stage.get() == Stage::Queued) {
                call.stage.set(Stage::Handed);
                call.permit.replace(Some(permit));
                return Some(Event::Request(call));
            }
        }
        None
    }

    pub(super) fn announce(&self, event: Event) {
        self.events.borrow_mut().push_back(event);
        self.wake();
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.admission.waiter.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Past the deadline: its handler is told, once; where it has none yet, the client is.
    pub(super) fn expire(&self, call: &Call) {
        if call.is_late.replace(true) || !call.is_open() {
            return;
        }
        if call.stage.get() == Stage::Handed {
            return self.announce(Event::Expired(call.id));
        }
        let (cause, response) = match call.is_reading.get() {
            true => (Cause::BodyTimeout, last(StatusCode::REQUEST_TIMEOUT)),
            false => (Cause::Deadline, plain(StatusCode::SERVICE_UNAVAILABLE)),
        };
        self.refusals.add(cause, call.peer().address, "");
        call.answer_with(response);
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

    /// Its connection has no more to do with it.
    pub(super) fn end(&self, call: &Call) {
        self.calls.borrow_mut().remove(call.id);
        if call.stage.replace(Stage::Gone) == Stage::Handed {
            self.announce(Event::Gone(call.id));
        }
    }
}
