use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use hyper::body::Incoming;

use super::admission::OpenConnection;
use super::body::Body;
use super::call_stats::CallStats;
use super::floods::Allowances;
use super::http1_framing::Http1Framing;
use super::keepalive::{Frame, Keepalive, Silence};
use super::refusals::Cause;
use super::registry::Id;
use super::service::ServiceState;
use super::shared::Shared;
use super::timeouts::{Tick, ticks};
use super::websocket::{STOPPING, Upgrade, WebSocket, converse_on_stream};
use crate::net::idle_hook::OnIdle;

/// Who is at the other end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// `None` on a Unix socket.
    pub address: Option<SocketAddr>,
    pub is_tls: bool,
    /// The certificate the client has shown and proved to hold, in DER.
    pub certificate: Option<Vec<u8>>,
    /// Of the calls on it.
    pub call_stats: CallStats,
    /// What a [`Service`](super::Service) keeps for the connection.
    pub(crate) service_state: ServiceState,
}

#[cfg(test)]
impl Peer {
    pub(crate) fn new(address: Option<SocketAddr>, is_tls: bool) -> Self {
        Self {
            address,
            is_tls,
            certificate: None,
            call_stats: CallStats::default(),
            service_state: ServiceState::default(),
        }
    }
}

/// What a connection is told from outside. A later one that is stronger replaces an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Command {
    None,
    /// Ends once what is in flight is answered.
    Finish,
    /// Is answered 408 and ends: half a request has arrived, and then nothing.
    TimeOut,
    /// Ends now; the client may take what was written.
    Close,
    /// Ends now.
    Abort,
}

#[derive(Clone, Copy)]
pub(super) enum Phase {
    /// Nothing has been read at all.
    New(Tick),
    /// Nothing in flight, nothing read.
    Idle(Tick),
    /// A request has begun to arrive.
    Head(Tick),
    Busy,
}

/// One open connection, as everybody but its own task sees it.
pub(super) struct Connection {
    pub(super) id: Id,
    pub(super) shared: Rc<Shared>,
    pub(super) place: OpenConnection,
    peer: RefCell<Rc<Peer>>,
    phase: Cell<Phase>,
    in_flight: Cell<u32>,
    is_http2: Cell<bool>,
    pub(super) write_blocked: Cell<Option<Tick>>,
    /// What the client of HTTP/2 may have and has not taken, in parts of answers, and when it last took something.
    owed: Cell<u32>,
    paid: Cell<Tick>,
    /// Its socket has something that can wait until the event loop is idle.
    pub(super) holds_back: Cell<bool>,
    command: Cell<Command>,
    is_finishing: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// Something was read since this was last looked at.
    pub(super) heard: Cell<bool>,
    framing: Http1Framing,
    pub(super) keepalive: Keepalive,
    allowances: Allowances,
    opened: Tick,
    /// Older than connections may be.
    is_aged: Cell<bool>,
    /// What follows HTTP on it.
    conversation: RefCell<Option<Upgrade>>,
    /// Those on streams of HTTP/2.
    conversations: RefCell<Vec<WebSocket>>,
}

impl Connection {
    pub(super) fn new(id: Id, shared: Rc<Shared>, place: OpenConnection, peer: Peer) -> Self {
        let opened = shared.clock.get();
        let phase = match shared.is_stopping() {
            true => Phase::Idle(opened),
            false => Phase::New(opened),
        };
        Self {
            id,
            shared,
            place,
            peer: RefCell::new(Rc::new(peer)),
            phase: Cell::new(phase),
            in_flight: Cell::new(0),
            is_http2: Cell::new(false),
            write_blocked: Cell::new(None),
            owed: Cell::new(0),
            paid: Cell::new(opened),
            holds_back: Cell::new(false),
            command: Cell::new(Command::None),
            is_finishing: Cell::new(false),
            waker: RefCell::default(),
            heard: Cell::new(true),
            framing: Http1Framing::default(),
            keepalive: Keepalive::default(),
            allowances: Allowances::new(opened),
            opened,
            is_aged: Cell::new(false),
            conversation: RefCell::default(),
            conversations: RefCell::default(),
        }
    }

    pub(super) fn peer(&self) -> Rc<Peer> {
        Rc::clone(&self.peer.borrow())
    }

    /// The client has proved to hold the certificate, which is in DER.
    pub(super) fn identify(&self, certificate: &[u8]) {
        let peer = Peer {
            address: self.peer().address,
            is_tls: true,
            certificate: Some(certificate.to_vec()),
            call_stats: CallStats::default(),
            service_state: ServiceState::default(),
        };
        self.peer.replace(Rc::new(peer));
    }

    /// It is clear now what the client speaks.
    pub(super) fn recognise(&self, is_http2: bool) {
        self.is_http2.set(is_http2);
        if is_http2 && self.takes_no_more() {
            // There was nobody yet who could have been told, and a request is on its way.
            self.phase.set(Phase::Idle(self.shared.clock.get()));
            self.command(Command::Finish);
        }
    }

    /// No handler hears of that.
    pub(super) fn refused(&self, cause: Cause, detail: &str) {
        let peer = self.peer.borrow().address;
        self.shared.refusals.add(cause, peer, detail);
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.is_finishing.get()
    }

    pub(super) fn command(&self, command: Command) {
        if command > self.command.get() {
            self.command.set(command);
            self.wake();
        }
    }

    /// Its client may be waited for when it has ended.
    pub(super) fn may_linger(&self) -> bool {
        !matches!(self.command.get(), Command::TimeOut | Command::Abort)
    }

    pub(super) fn is_timed_out(&self) -> bool {
        self.command.get() == Command::TimeOut
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// The server accepts no more. HTTP/2 says so with GOAWAY; HTTP/1 with the next answer, for a request may be on its way.
    pub(super) fn stop(&self) {
        for conversation in &*self.conversations.borrow() {
            conversation.close(1001, STOPPING);
        }
        if self.is_http2.get() || self.conversation.borrow().is_some() {
            self.command(Command::Finish);
        } else if matches!(self.phase.get(), Phase::New(_) | Phase::Idle(_)) {
            self.phase.set(Phase::Idle(self.shared.clock.get()));
        }
    }

    /// Where it is older than it may be, it takes no more requests; where that was long ago, it ends.
    pub(super) fn age(&self, now: Tick) {
        let limits = &self.shared.limits;
        let Some(max_age) = limits.max_age.map(ticks) else {
            return;
        };
        // Give or take a tenth: connections that were opened together must not all come back together.
        let thousandths = 900 + self.id.wrapping_mul(0x9e37_79b9) % 201;
        let after = u64::from(max_age) * thousandths / 1000;
        let due = self.opened + Tick::try_from(after).unwrap_or(Tick::MAX / 4);
        if now < due {
            return;
        }
        if !self.is_aged.replace(true) {
            self.stop();
        }
        let grace = limits.age_grace.map(ticks);
        if grace.is_some_and(|grace| now - due >= grace) {
            self.command(Command::Abort);
        }
    }

    /// Asks a client that says nothing whether it is there, and ends when it does not answer.
    pub(super) fn listen(&self, now: Tick) {
        if !self.is_http2.get() {
            return;
        }
        let limits = &self.shared.limits;
        let Some(interval) = limits.ping_interval.map(ticks) else {
            return;
        };
        if self.heard.replace(false) {
            return self.keepalive.heard(now);
        }
        match self
            .keepalive
            .silence(now, interval, ticks(limits.ping_timeout))
        {
            Silence::Wait => {}
            Silence::Ask => self.wake(),
            Silence::Dead => self.command(Command::Abort),
        }
    }

    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.get()
    }

    /// A frame of HTTP/2 has arrived; one too many ends the connection.
    pub(super) fn received(&self, frame: Frame) {
        if self.keepalive.is_over.get() {
            return;
        }
        if let Err(why) = self.allowances.spend(frame, self.shared.clock.get())
            && self.keepalive.calm_down(why)
        {
            self.refused(Cause::Flood, why);
        }
        if frame.is_ping()
            && let Some(minimum) = self.shared.limits.min_ping_interval
            && !self.keepalive.count(1, minimum)
        {
            self.refused(Cause::Flood, "too_many_pings");
        }
    }

    /// Parts of answers were sent over HTTP/2.
    pub(super) fn sent(&self, frames: u32) {
        if frames > 0 {
            self.allowances.answered(frames);
            self.keepalive.forgive();
        }
    }

    /// The answer that is being sent is the last of HTTP on this connection, or on its stream.
    pub(super) fn leave_http(self: &Rc<Self>, body: Body) {
        let Body::Conversation(upgrade) = body else {
            return;
        };
        if self.takes_no_more() {
            upgrade.socket.close(1001, STOPPING);
        }
        if upgrade.stream.is_none() {
            self.conversation.replace(Some(upgrade));
            return;
        }
        let mut conversations = self.conversations.borrow_mut();
        conversations.retain(|conversation| !conversation.is_over());
        conversations.push(upgrade.socket.clone());
        tokio::task::spawn_local(converse_on_stream(Rc::clone(self), upgrade));
    }

    pub(super) fn conversation(&self) -> Option<WebSocket> {
        let upgrade = self.conversation.borrow();
        upgrade.as_ref().map(|upgrade| upgrade.socket.clone())
    }

    pub(super) fn read(&self, bytes: &[u8]) {
        self.heard.set(true);
        // On HTTP/2 a ping or a window update is no request: there only a stream counts.
        if self.is_http2.get() {
            return;
        }
        if self.conversation.borrow().is_none() {
            self.framing.read(bytes);
        }
        if matches!(self.phase.get(), Phase::New(_) | Phase::Idle(_)) {
            self.phase.set(Phase::Head(self.shared.clock.get()));
        }
    }

    pub(super) fn wrote(&self, something: bool) {
        if something {
            self.write_blocked.set(None);
        } else if self.write_blocked.get().is_none() {
            self.write_blocked.set(Some(self.shared.clock.get()));
        }
    }

    pub(super) fn owe(&self) {
        if self.owed.get() == 0 {
            self.paid();
        }
        self.owed.set(self.owed.get() + 1);
    }

    pub(super) fn settle(&self) {
        self.owed.set(self.owed.get() - 1);
        self.paid();
    }

    pub(super) fn paid(&self) {
        self.paid.set(self.shared.clock.get());
    }

    /// Since when the client has taken nothing of what it may have.
    pub(super) fn blocked(&self) -> Option<Tick> {
        let owing = (self.owed.get() > 0).then(|| self.paid.get());
        self.write_blocked.get().or(owing)
    }

    /// Counts what is in flight until the guard is dropped.
    pub(super) fn enter(self: &Rc<Self>) -> InFlight {
        self.in_flight.set(self.in_flight.get() + 1);
        self.phase.set(Phase::Busy);
        InFlight(Rc::clone(self))
    }

    /// The same for a request over HTTP, whose body is that.
    pub(super) fn begin(self: &Rc<Self>, body: &Incoming) -> InFlight {
        if !self.is_http2.get() {
            self.framing.begin(body);
        }
        self.enter()
    }

    /// Whether the answer to a request of it must say that it is the last one: HTTP/2 has GOAWAY for that.
    pub(super) fn must_close(&self) -> bool {
        self.takes_no_more() && !self.is_http2.get()
    }

    /// The client was not done when its last request was answered.
    pub(super) fn is_sent_to(&self) -> bool {
        self.framing.is_within()
    }

    fn takes_no_more(&self) -> bool {
        self.shared.is_stopping() || self.is_aged.get()
    }

    pub(super) fn obey(&self, context: &Context<'_>, finish: impl FnOnce()) -> Poll<()> {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(waker) if waker.will_wake(context.waker()) => {}
            waker => *waker = Some(context.waker().clone()),
        }
        match self.command.get() {
            Command::Abort | Command::Close | Command::TimeOut => return Poll::Ready(()),
            Command::Finish if !self.is_finishing.replace(true) => finish(),
            _ => {}
        }
        Poll::Pending
    }
}

impl OnIdle for Connection {
    fn on_idle(&self) {
        if self.holds_back.get() {
            self.wake();
        }
    }
}

pub(super) struct InFlight(Rc<Connection>);

impl InFlight {
    pub(super) fn connection(&self) -> &Rc<Connection> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let connection = &self.0;
        connection.in_flight.set(connection.in_flight.get() - 1);
        if connection.in_flight.get() == 0 {
            let now = connection.shared.clock.get();
            let is_followed = !connection.is_http2.get() && connection.framing.end();
            connection.phase.set(match is_followed {
                true => Phase::Head(now),
                false => Phase::Idle(now),
            });
        }
    }
}
