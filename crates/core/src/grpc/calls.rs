use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use hyper::HeaderMap;
use tokio::sync::Notify;

use super::call::{Call, Stage};
use super::deadlines::Deadlines;
use super::gate::{Gate, GateLimits};
use super::json::{Routes, Rule, TemplateError};
use super::meter::{Meter, Stopwatch};
use super::status::{Code, Status};
use crate::http::{Id, Registry, Tally};
use crate::workers::pulse;

/// A method of a service.
#[derive(Debug, Clone)]
pub struct Method {
    /// `/package.Service/Method`
    pub path: String,
    /// It takes any number of messages: its handler starts before they have arrived.
    pub client_streams: bool,
    /// Bytes of a message, where that is another limit than that of all.
    pub message_bytes: Option<usize>,
    /// How long a call may take, whatever its client says.
    pub timeout: Option<Duration>,
    /// Indexes of [`Limits::gates`] it has to pass.
    pub gates: Vec<usize>,
}

/// What is known of a method.
pub(super) struct Served {
    pub(super) path: Rc<str>,
    pub(super) client_streams: bool,
    pub(super) message_bytes: usize,
    pub(super) timeout: Option<Duration>,
    gates: Vec<Rc<Gate>>,
    /// Made when the first call of it is measured.
    meter: RefCell<Option<Rc<Meter>>>,
}

/// What is taken from clients.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message, before and after decompression; more end the call with RESOURCE_EXHAUSTED.
    pub message_bytes: usize,
    /// Calls that are being handled at a time; more of them wait in `queue`.
    pub in_flight: usize,
    /// Calls that wait for their turn; more of them end with UNAVAILABLE.
    pub queue: usize,
    /// Origins whose pages may call by grpc-web; `*` is every one.
    pub web_origins: Vec<String>,
    /// Of services and methods.
    pub gates: Vec<GateLimits>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            in_flight: 1_000,
            queue: 10_000,
            web_origins: Vec::new(),
            gates: Vec::new(),
        }
    }
}

/// What the one who runs the handlers has to hear of.
pub enum Event {
    /// A call to answer.
    Call(Rc<Call>),
    /// The client of a call that was handed out has cancelled it or gone away.
    Gone(Id),
    /// A call that was handed out is past its deadline; the client knows.
    Expired(Id),
}

/// The calls of some services. Clones are the same; give one to [`Server::delegate`](crate::http::Server::delegate).
#[derive(Clone)]
pub struct Calls {
    pub(super) shared: Rc<Shared>,
}

pub(super) struct Shared {
    /// By their paths, indexes of `served`.
    pub(super) methods: HashMap<Rc<str>, usize>,
    pub(super) served: Vec<Served>,
    pub(super) routes: Routes,
    pub(super) limits: Limits,
    pub(super) calls: RefCell<Registry<Call>>,
    pub(super) deadlines: Deadlines,
    pub(super) tally: Rc<Tally>,
    ready: RefCell<VecDeque<Rc<Call>>>,
    events: RefCell<VecDeque<Event>>,
    /// Calls that are with their handlers.
    handed: Cell<usize>,
    /// Who is to hear that there is something, once.
    listener: Cell<Option<Box<dyn FnOnce()>>>,
}

impl Calls {
    /// `rules` say which methods can be called by HTTP with JSON, and how.
    ///
    /// # Errors
    /// A rule is malformed.
    pub fn new(
        methods: Vec<Method>,
        rules: Vec<Rule>,
        limits: Limits,
    ) -> Result<Self, TemplateError> {
        let gates = limits.gates.iter().cloned();
        let gates: Vec<Rc<Gate>> = gates.map(|limits| Rc::new(Gate::new(limits))).collect();
        let served = methods.into_iter().map(|method| Served {
            path: method.path.into(),
            client_streams: method.client_streams,
            message_bytes: method.message_bytes.unwrap_or(limits.message_bytes),
            timeout: method.timeout,
            gates: method
                .gates
                .into_iter()
                .filter_map(|index| gates.get(index).cloned())
                .collect(),
            meter: RefCell::default(),
        });
        let served: Vec<Served> = served.collect();
        let paths = served.iter().map(|method| Rc::clone(&method.path));
        let shared = Shared {
            methods: paths.zip(0..).collect(),
            served,
            routes: Routes::new(rules)?,
            limits,
            calls: RefCell::default(),
            deadlines: Deadlines::default(),
            tally: Rc::default(),
            ready: RefCell::default(),
            events: RefCell::default(),
            handed: Cell::default(),
            listener: Cell::default(),
        };
        Ok(Self {
            shared: Rc::new(shared),
        })
    }

    /// Enforces the deadlines; does not end.
    pub fn keep_time(&self) -> impl Future<Output = ()> + use<> {
        let shared = Rc::clone(&self.shared);
        async move {
            loop {
                for id in shared.deadlines.due().await {
                    shared.expire(id);
                }
            }
        }
    }

    /// Ends when [`take`](Self::take) has something.
    pub fn next(&self) -> impl Future<Output = ()> + use<> {
        let calls = self.clone();
        async move {
            while !calls.has_events() {
                let told = Rc::new(Notify::new());
                let tell = Rc::clone(&told);
                calls.listen(move || tell.notify_one());
                told.notified().await;
            }
        }
    }

    /// Calls `told` when [`take`](Self::take) has something that it has not now, without the detour of a task that is woken.
    /// Only the last one is told, and once.
    pub fn listen(&self, told: impl FnOnce() + 'static) {
        self.shared.listener.set(Some(Box::new(told)));
    }

    /// Whether [`take`](Self::take) has something now.
    pub fn has_events(&self) -> bool {
        self.shared.has_events()
    }

    /// The next event; calls come in the order of their arrival, and only while there is room in flight.
    pub fn take(&self) -> Option<Event> {
        self.shared.take()
    }

    pub fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    /// Calls that have arrived and not ended, those in the queue included.
    pub fn in_flight(&self) -> usize {
        self.shared.calls.borrow().len()
    }
}

impl Shared {
    fn has_events(&self) -> bool {
        !self.events.borrow().is_empty()
            || self.handed.get() < self.limits.in_flight && !self.ready.borrow().is_empty()
    }

    fn take(&self) -> Option<Event> {
        if let Some(event) = self.events.borrow_mut().pop_front() {
            return Some(event);
        }
        let mut ready = self.ready.borrow_mut();
        while self.handed.get() < self.limits.in_flight {
            let call = ready.pop_front()?;
            // Those that ended while they were waiting concern nobody.
            if call.is_waiting() {
                call.stage.set(Stage::Handed);
                self.handed.set(self.handed.get() + 1);
                return Some(Event::Call(call));
            }
        }
        None
    }

    pub(super) fn queue(&self, call: &Rc<Call>) {
        let gates = &self.served[call.served].gates;
        if let Some(full) = gates.iter().find(|gate| gate.is_full()) {
            if let Err(status) = full.wait(call) {
                call.finish(&status, HeaderMap::new());
            }
            return;
        }
        gates.iter().for_each(|gate| gate.enter());
        call.is_inside.set(true);
        if self.ready.borrow().len() >= self.limits.queue {
            let status = Status::new(Code::UNAVAILABLE, "the server has too many calls waiting");
            call.finish(&status, HeaderMap::new());
            return;
        }
        self.ready.borrow_mut().push_back(Rc::clone(call));
        self.tell();
    }

    /// Those that wait for a call like this one to end.
    fn leave(&self, call: &Call) {
        if !call.is_inside.replace(false) {
            return;
        }
        let gates = &self.served[call.served].gates;
        gates.iter().for_each(|gate| gate.leave());
        for gate in gates {
            while let Some(next) = gate.admit() {
                self.queue(&next);
            }
        }
    }

    pub(super) fn stopwatch(&self, method: usize) -> Option<Stopwatch> {
        if !pulse::is_measured() {
            return None;
        }
        let method = &self.served[method];
        let mut meter = method.meter.borrow_mut();
        let meter = meter.get_or_insert_with(|| Rc::new(Meter::new(&method.path)));
        Some(Stopwatch::start(meter))
    }

    fn announce(&self, event: Event) {
        self.events.borrow_mut().push_back(event);
        self.tell();
    }

    fn tell(&self) {
        if self.has_events()
            && let Some(told) = self.listener.take()
        {
            told();
        }
    }

    fn expire(&self, id: Id) {
        let call = self.calls.borrow().get(id).map(Rc::clone);
        let Some(call) = call else {
            return;
        };
        let status = Status::new(Code::DEADLINE_EXCEEDED, "the deadline has passed");
        if call.finish(&status, HeaderMap::new()) && call.stage.get() == Stage::Handed {
            self.announce(Event::Expired(id));
        }
    }

    /// Its answer has been sent, or nobody is there to get it.
    pub(super) fn end(&self, call: &Call) {
        self.calls.borrow_mut().remove(call.id);
        if let Some(deadline) = call.deadline {
            self.deadlines.remove(deadline, call.id);
        }
        let is_abandoned = call.is_open();
        if is_abandoned {
            call.count(Code::CANCELLED);
        }
        call.outbound.close();
        if call.stage.replace(Stage::Gone) == Stage::Handed {
            self.handed.set(self.handed.get() - 1);
            if is_abandoned {
                self.announce(Event::Gone(call.id));
            } else {
                self.tell();
            }
        }
        call.inbound.borrow_mut().close();
        self.leave(call);
    }
}

/// A call in the registry, for as long as its connection has to do with it.
pub(super) struct Open {
    pub(super) shared: Rc<Shared>,
    pub(super) call: Rc<Call>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.end(&self.call);
    }
}
