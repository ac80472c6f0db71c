use std::cell::{Cell, RefCell, RefMut};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::capacity::Capacity;
use super::refusal::Refusal;
use super::refusals::{RefusalReason, RefusalReport};
use super::slab::Id;
#[cfg(test)]
use super::state::Counts;
use super::state::{Action, Arrival, Event, State, UNRESERVED};
use crate::wait;

/// A request as its protocol knows it.
pub(crate) trait Requester {
    /// Carries out a decision of the server core.
    fn act(&self, action: Action);
}

/// The shell around [`State`]: after every step it carries out what follows from it.
pub(crate) struct Admission<R, C> {
    /// A handler owns its request: where it is destroyed, the request says that it has ended.
    state: RefCell<State<Weak<R>, C>>,
    /// Called when there is an event and `is_armed`, which that ends.
    listener: RefCell<Option<Rc<dyn Fn()>>>,
    is_armed: Cell<bool>,
    /// When the timer of [`keep_time`](Self::keep_time) fires.
    armed: Cell<Option<Instant>>,
    earlier: Notify,
    refused: Notify,
    /// Notified when connections or listeners have ended, or the server stops.
    changed: Notify,
}

impl<R: Requester, C: RefusalReason> Admission<R, C> {
    pub(crate) fn new(capacity: Capacity) -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::new(State::new(capacity)),
            listener: RefCell::default(),
            is_armed: Cell::default(),
            armed: Cell::default(),
            earlier: Notify::new(),
            refused: Notify::new(),
            changed: Notify::new(),
        })
    }

    /// One step, and what follows from it. From most steps nothing does.
    #[inline]
    fn step<T>(&self, step: impl FnOnce(&mut State<Weak<R>, C>) -> T) -> T {
        let mut state = self.state.borrow_mut();
        let result = step(&mut state);
        if state.has_consequences() || self.is_armed.get() && state.may_have_next() {
            self.carry_out(state);
        }
        result
    }

    #[inline(never)]
    fn carry_out<'a>(&'a self, mut state: RefMut<'a, State<Weak<R>, C>>) {
        while let Some((request, action)) = state.next_action() {
            // A request may take the next step itself.
            drop(state);
            if let Some(request) = request.upgrade() {
                request.act(action);
            }
            state = self.state.borrow_mut();
        }
        if state.take_refused() {
            self.refused.notify_one();
        }
        let is_told = self.is_armed.get() && state.has_next();
        drop(state);
        if is_told {
            self.tell();
        }
    }

    fn tell(&self) {
        self.is_armed.set(false);
        let listener = self.listener.borrow().clone();
        if let Some(listener) = listener {
            listener();
        }
    }

    /// The same for a step that may start a timer, which ends at `at`.
    #[inline]
    fn timed_step<T>(
        &self,
        at: Option<Instant>,
        step: impl FnOnce(&mut State<Weak<R>, C>) -> T,
    ) -> T {
        let result = self.step(step);
        if let Some(at) = at
            && self.armed.get().is_none_or(|armed| at < armed)
        {
            self.earlier.notify_one();
        }
        result
    }

    /// Calls `listener` when [`take`](Self::take) has something, once, and again after each [`rearm`](Self::rearm). There is one listener.
    pub(crate) fn listen(&self, listener: impl Fn() + 'static) {
        self.listener.replace(Some(Rc::new(listener)));
        self.rearm();
    }

    /// The listener is called once more: now, if [`take`](Self::take) has something.
    pub(crate) fn rearm(&self) {
        self.is_armed.set(true);
        if self.has_events() {
            self.tell();
        }
    }

    /// Whether [`take`](Self::take) has something now.
    pub(crate) fn has_events(&self) -> bool {
        self.state.borrow_mut().has_next()
    }

    /// The next event.
    pub(crate) fn take(&self) -> Option<Event<Rc<R>>> {
        let event = self.state.borrow_mut().next()?;
        Some(match event {
            // A request that has no handler belongs to its connection.
            Event::Request(request) => Event::Request(request.upgrade()?),
            Event::Gone(id) => Event::Gone(id),
            Event::Expired(id) => Event::Expired(id),
        })
    }

    /// Ends when [`take`](Self::take) has something. Cancelling it loses nothing.
    pub(crate) async fn ready(&self) {
        while !self.has_events() {
            let ready = Rc::new(Notify::new());
            let notify = Rc::clone(&ready);
            self.listen(move || notify.notify_one());
            ready.notified().await;
        }
    }

    /// Enforces deadlines; does not end.
    pub(crate) async fn keep_time(&self) {
        loop {
            let first = self.state.borrow_mut().next_timer();
            self.armed.set(first);
            match first {
                None => self.earlier.notified().await,
                Some(first) => tokio::select! {
                    () = sleep_until(first) => self.step(|state| state.expire(Instant::now())),
                    () = self.earlier.notified() => {}
                },
            }
        }
    }

    /// Ends when there are refusals to log: the first of a reason at once, then those of ten seconds together. Cancelling it loses
    /// nothing. One future at a time.
    pub(crate) async fn reports(&self) -> Vec<RefusalReport<C>> {
        loop {
            let reports = self.state.borrow_mut().take_reports(Instant::now());
            if !reports.is_empty() {
                return reports;
            }
            let due = self.state.borrow().reports_due();
            match due {
                None => self.refused.notified().await,
                Some(due) => tokio::select! {
                    () = sleep_until(due) => {}
                    () = self.refused.notified() => {}
                },
            }
        }
    }

    /// How many handlers the limits allow at a time.
    pub(crate) fn handlers(&self) -> usize {
        self.state.borrow().capacity().handlers()
    }

    /// Lets no more handlers run than there are fibers for them. May be called again when that changes.
    pub(crate) fn fit(&self, fibers: usize) {
        self.step(|state| state.fit(fibers));
    }

    /// Counts a refusal for which there is no request.
    pub(crate) fn add_refusal(&self, reason: C, peer: Option<SocketAddr>, detail: &str) {
        self.step(|state| state.add_refusal(reason, peer, detail));
    }

    #[cfg(test)]
    pub(crate) fn first_request(&self) -> Option<Rc<R>> {
        self.state.borrow().requests().next()?.upgrade()
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> Counts {
        self.state.borrow().counts()
    }

    /// Requests whose answer has not been sent, those in the queue included.
    pub(crate) fn attached(&self) -> usize {
        self.state.borrow().attached()
    }

    /// Calls `visit` with every request. It must not take a step.
    pub(crate) fn for_each_request(&self, visit: impl FnMut(Rc<R>)) {
        let state = self.state.borrow();
        state.requests().filter_map(Weak::upgrade).for_each(visit);
    }

    // Connections

    /// A socket is accepted from for as long as the guard lives.
    pub(crate) fn open_listener(self: &Rc<Self>) -> ListenerGuard<R, C> {
        self.step(State::open_listener);
        ListenerGuard(Rc::clone(self))
    }

    /// Waits until one more connection may be accepted. False: the server is stopping.
    pub(crate) async fn room(&self) -> bool {
        wait::until(&self.changed, || {
            let state = self.state.borrow();
            let is_stopping = state.is_stopping();
            (is_stopping || state.has_room_for_connection()).then_some(!is_stopping)
        })
        .await
    }

    /// A connection was accepted; it counts as open for as long as the guard lives.
    ///
    /// # Errors
    /// Its client has as many as it may have.
    pub(crate) fn connect(
        self: &Rc<Self>,
        peer: Option<SocketAddr>,
    ) -> Result<ConnectionGuard<R, C>, Refusal> {
        let id = self.step(|state| state.connect(peer))?;
        let admission = Rc::clone(self);
        Ok(ConnectionGuard { admission, id })
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.borrow().open_connections()
    }

    /// Accepts no more connections. False where that was so before.
    pub(crate) fn stop(&self) -> bool {
        let has_stopped = self.step(State::stop);
        self.changed.notify_waiters();
        has_stopped
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.state.borrow().is_stopping()
    }

    /// Ends when the server is stopping.
    pub(crate) async fn stopping(&self) {
        wait::until(&self.changed, || self.is_stopping().then_some(())).await;
    }

    /// Ends when no connection is open, nor waits to be accepted.
    pub(crate) async fn drained(&self) {
        let is_drained = || self.state.borrow().is_drained();
        wait::until(&self.changed, || is_drained().then_some(())).await;
    }

    // Requests

    /// The request has arrived as a whole, or its handler reads the rest: it waits for a handler.
    pub(crate) fn complete(&self, id: Id) {
        self.step(|state| state.complete(id));
    }

    /// The request changes to a lane whose requests last longer.
    ///
    /// # Errors
    /// There is no room for it there.
    pub(crate) fn change_lane(&self, id: Id, lane: usize) -> Result<(), Refusal> {
        self.step(|state| state.change_lane(id, lane))
    }

    /// The answer is finished: true once, while the client waits for it.
    pub(crate) fn finish(&self, id: Id) -> bool {
        self.step(|state| state.finish(id))
    }

    /// Refuses a request that no handler has seen: true where its client still waits, and has to be answered.
    pub(crate) fn refuse(&self, id: Id, reason: C, detail: &str) -> bool {
        self.step(|state| state.refuse(id, reason, detail))
    }

    /// The client takes no more of the response: a handler that has not finished gets [`Event::Gone`], once.
    pub(crate) fn cancel(&self, id: Id) {
        self.step(|state| state.cancel(id));
    }

    /// The handler has ended: another one may run in its place.
    pub(crate) fn end_handler(&self, id: Id) {
        self.step(|state| state.end_handler(id));
    }

    /// Whether the client still waits for the answer, or for more of it.
    pub(crate) fn is_open(&self, id: Id) -> bool {
        self.state.borrow().is_open(id)
    }

    /// Whether the handler runs.
    pub(crate) fn is_running(&self, id: Id) -> bool {
        self.state.borrow().is_running(id)
    }

    /// The answer has begun: it may take as long as it likes.
    pub(crate) fn clear_deadline(&self, id: Id) {
        self.step(|state| state.clear_deadline(id));
    }

    /// Checks the progress of a request that arrives at `at`.
    pub(crate) fn start_upload_timer(&self, id: Id, at: Instant) {
        self.timed_step(Some(at), |state| state.start_upload_timer(id, at));
    }

    /// Reserves bytes for the upload of a request: false where it has to wait for [`Action::Resume`].
    pub(crate) fn reserve(&self, id: Id, bytes: usize) -> bool {
        bytes <= UNRESERVED || self.step(|state| state.reserve(id, bytes))
    }

    /// The upload waits for others of its connection, not for its client.
    pub(crate) fn is_waiting_for_bytes(&self, id: Id) -> bool {
        self.state.borrow().is_waiting_for_bytes(id)
    }

    /// The handler has taken what was uploaded.
    pub(crate) fn release_bytes(&self, id: Id) {
        self.step(|state| state.release_bytes(id));
    }
}

/// A socket that is accepted from.
pub(crate) struct ListenerGuard<R: Requester, C: RefusalReason>(Rc<Admission<R, C>>);

impl<R: Requester, C: RefusalReason> Drop for ListenerGuard<R, C> {
    fn drop(&mut self) {
        self.0.step(State::close_listener);
        self.0.changed.notify_waiters();
    }
}

/// An open connection.
pub(crate) struct ConnectionGuard<R: Requester, C: RefusalReason> {
    admission: Rc<Admission<R, C>>,
    id: Id,
}

impl<R: Requester, C: RefusalReason> ConnectionGuard<R, C> {
    /// Admits a request that arrives on the connection. It stays attached to the connection for as long as the guard lives. The
    /// connection in `arrival` is ignored.
    ///
    /// # Errors
    /// There is no room for it. `parts` come back.
    pub(crate) fn admit<T>(
        &self,
        arrival: Arrival,
        parts: T,
        make: impl FnOnce(Id, T) -> R,
    ) -> Result<RequestGuard<R, C>, (Refusal, T)> {
        let deadline = arrival.deadline;
        let arrival = Arrival {
            connection: self.id,
            ..arrival
        };
        let make = |id, parts| {
            let request = Rc::new(make(id, parts));
            (Rc::downgrade(&request), request)
        };
        let step = |state: &mut State<_, _>| state.arrive(arrival, parts, make);
        let (id, request) = self.admission.timed_step(deadline, step)?;
        Ok(RequestGuard {
            admission: Rc::clone(&self.admission),
            id,
            request,
        })
    }
}

impl<R: Requester, C: RefusalReason> Drop for ConnectionGuard<R, C> {
    fn drop(&mut self) {
        self.admission.step(|state| state.disconnect(self.id));
        self.admission.changed.notify_waiters();
    }
}

/// Keeps a request attached to its connection.
pub(crate) struct RequestGuard<R: Requester, C: RefusalReason> {
    admission: Rc<Admission<R, C>>,
    id: Id,
    request: Rc<R>,
}

impl<R: Requester, C: RefusalReason> RequestGuard<R, C> {
    pub(crate) fn request(&self) -> &Rc<R> {
        &self.request
    }

    pub(crate) fn admission(&self) -> &Rc<Admission<R, C>> {
        &self.admission
    }
}

impl<R: Requester, C: RefusalReason> Drop for RequestGuard<R, C> {
    fn drop(&mut self) {
        self.admission.step(|state| state.detach(self.id));
    }
}
