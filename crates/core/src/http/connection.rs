use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::body::Incoming;

use super::call::Call;
use super::clock::{Tick, ticks};
use super::context::Context as Server;
use super::floods::Allowances;
use super::http1_framing::Http1Framing;
use super::keepalive::{Frame, Keepalive, KeepaliveAction};
use super::peer::Peer;
use super::proxy_protocol::Proxied;
use super::refusal::RefusalReason;
use super::websocket::{STOPPING, Upgrade, WebSocket};
use crate::net::idle_hook::OnIdle;
use crate::server::{ConnectionGuard, Id, RequestGuard};

/// A command for the task of a connection. A later command replaces an earlier one if it is stronger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Command {
    None,
    /// Ends once all requests in flight are answered.
    Finish,
    /// Responds 408 and ends: the header of a request has not arrived in time.
    TimeOut,
    /// Ends now; the client may still receive what was written.
    Close,
    /// Ends now.
    Abort,
}

#[derive(Clone, Copy)]
pub(super) enum Phase {
    /// No byte has been read.
    New(Tick),
    /// No request is in flight or partly read.
    Idle(Tick),
    /// A request has begun to arrive.
    Head(Tick),
    Busy,
}

/// Counts the connection as open, and admits its requests.
type Guard = ConnectionGuard<Call, RefusalReason>;

/// The origin of a response over HTTP/2; each origin has a write timeout of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKind {
    /// A handler of HTTP.
    Http,
    /// The [`Service`](super::Service) of the server.
    Service,
}

/// Parts of answers that a client of HTTP/2 may take and has not taken.
#[derive(Debug, Default)]
struct Unsent {
    parts: Cell<u32>,
    /// When it last took something, while there are any.
    progressed: Cell<Tick>,
}

/// An open connection, as everything but its own task sees it.
pub(super) struct Connection {
    pub(super) id: Id,
    pub(super) server: Rc<Server>,
    /// `None` once its task has ended.
    guard: RefCell<Option<Guard>>,
    peer: RefCell<Rc<Peer>>,
    phase: Cell<Phase>,
    in_flight: Cell<u32>,
    is_http2: Cell<bool>,
    pub(super) write_blocked: Cell<Option<Tick>>,
    /// Parts of responses that the client has not taken, by their origin.
    unsent: [Unsent; 2],
    /// The socket holds back output until the event loop is idle.
    pub(super) holds_back: Cell<bool>,
    command: Cell<Command>,
    is_finishing: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// Something was read since the last check.
    pub(super) has_received: Cell<bool>,
    framing: Http1Framing,
    pub(super) keepalive: Keepalive,
    allowances: Allowances,
    opened: Tick,
    /// The connection has reached its maximum age.
    is_aged: Cell<bool>,
    /// Made for its first WebSocket.
    websockets: RefCell<Option<Box<WebSockets>>>,
    /// A request that was handed out before hyper has read it.
    resumed: RefCell<Option<Box<RequestGuard<Call, RefusalReason>>>>,
}

/// The WebSockets of a connection.
#[derive(Default)]
struct WebSockets {
    /// The one that follows HTTP on the connection.
    own: Option<Upgrade>,
    /// WebSockets on streams of HTTP/2.
    on_streams: Vec<WebSocket>,
}

impl Connection {
    pub(super) fn new(id: Id, server: Rc<Server>, guard: Guard, peer: Peer) -> Self {
        let opened = server.clock.get();
        let phase = match server.is_stopping() {
            true => Phase::Idle(opened),
            false => Phase::New(opened),
        };
        Self {
            id,
            server,
            guard: RefCell::new(Some(guard)),
            peer: RefCell::new(Rc::new(peer)),
            phase: Cell::new(phase),
            in_flight: Cell::new(0),
            is_http2: Cell::new(false),
            write_blocked: Cell::new(None),
            unsent: Default::default(),
            holds_back: Cell::new(false),
            command: Cell::new(Command::None),
            is_finishing: Cell::new(false),
            waker: RefCell::default(),
            has_received: Cell::new(true),
            framing: Http1Framing::default(),
            keepalive: Keepalive::default(),
            allowances: Allowances::new(opened),
            opened,
            is_aged: Cell::new(false),
            websockets: RefCell::default(),
            resumed: RefCell::default(),
        }
    }

    pub(super) fn guard(&self) -> Ref<'_, Option<Guard>> {
        self.guard.borrow()
    }

    /// Its task has ended.
    pub(super) fn end(&self) {
        drop(self.resumed.take());
        self.guard.take();
    }

    pub(super) fn peer(&self) -> Rc<Peer> {
        Rc::clone(&self.peer.borrow())
    }

    /// Records the certificate (DER) that the client has proved to hold.
    pub(super) fn set_certificate(&self, certificate: &[u8]) {
        let peer = self.peer();
        let peer = Peer::new(
            peer.address,
            true,
            peer.proxies.clone(),
            Some(certificate.to_vec()),
        );
        self.peer.replace(Rc::new(peer));
    }

    /// Records the client that the PROXY protocol has named.
    pub(super) fn set_proxied(&self, proxied: Proxied) {
        let peer = self.peer();
        let address = proxied.client.or(peer.address);
        let proxies = self.server.trusted(address);
        let peer = Peer::new(address, peer.is_tls || proxied.is_tls, proxies, None);
        self.peer.replace(Rc::new(peer));
    }

    /// Records which protocol the client speaks.
    pub(super) fn set_protocol(&self, is_http2: bool) {
        self.is_http2.set(is_http2);
        if is_http2 && self.takes_no_more() {
            // The server stopped before the protocol was known, and a request is on its way.
            self.phase.set(Phase::Idle(self.server.clock.get()));
            self.command(Command::Finish);
        }
    }

    /// Counts a refusal that no handler sees.
    pub(super) fn refused(&self, reason: RefusalReason, detail: &str) {
        let peer = self.peer.borrow().address;
        self.server.admission.add_refusal(reason, peer, detail);
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

    /// Whether the connection may end with a lingering close.
    pub(super) fn may_linger(&self) -> bool {
        !matches!(self.command.get(), Command::TimeOut | Command::Abort)
    }

    pub(super) fn is_timed_out(&self) -> bool {
        self.command.get() == Command::TimeOut
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Takes no more requests. HTTP/2 sends GOAWAY; HTTP/1 says so with its next response, because a request may be on its way.
    pub(super) fn stop(&self) {
        if let Some(websockets) = &*self.websockets.borrow() {
            let on_streams = websockets.on_streams.iter();
            on_streams.for_each(|socket| socket.close(1001, STOPPING));
        }
        if self.is_http2.get() || self.websocket().is_some() {
            self.command(Command::Finish);
        } else if matches!(self.phase.get(), Phase::New(_) | Phase::Idle(_)) {
            self.phase.set(Phase::Idle(self.server.clock.get()));
        }
    }

    /// Takes no more requests after `max_age`, and aborts after `age_grace` more.
    pub(super) fn check_age(&self, now: Tick) {
        let limits = &self.server.limits;
        let Some(max_age) = limits.max_age.map(ticks) else {
            return;
        };
        // Jitter of a tenth: connections that were opened together must not all reconnect together.
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

    /// Pings a silent client, and aborts if it does not answer.
    pub(super) fn check_keepalive(&self, now: Tick) {
        if !self.is_http2.get() {
            return;
        }
        let limits = &self.server.limits;
        let Some(interval) = limits.ping_interval.map(ticks) else {
            return;
        };
        if self.has_received.replace(false) {
            return self.keepalive.received(now);
        }
        match self
            .keepalive
            .check(now, interval, ticks(limits.ping_timeout))
        {
            KeepaliveAction::None => {}
            KeepaliveAction::Ping => self.wake(),
            KeepaliveAction::TimedOut => self.command(Command::Abort),
        }
    }

    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.get()
    }

    /// Counts a received HTTP/2 frame. One too many ends the connection.
    pub(super) fn received(&self, frame: Frame) {
        if self.keepalive.is_going_away.get() {
            return;
        }
        if let Err(why) = self.allowances.spend(frame, self.server.clock.get())
            && self.keepalive.go_away(why)
        {
            self.refused(RefusalReason::Flood, why);
        }
        if frame.is_ping()
            && let Some(minimum) = self.server.limits.min_ping_interval
            && !self.keepalive.count_pings(1, minimum)
        {
            self.refused(RefusalReason::Flood, "too_many_pings");
        }
    }

    /// Counts HTTP/2 frames of responses that were sent.
    pub(super) fn sent(&self, frames: u32) {
        if frames > 0 {
            self.allowances.answered(frames);
            self.keepalive.reset_strikes();
        }
    }

    /// The answer that is being sent is the last of HTTP on this connection, or on its stream: a WebSocket follows. Returns that of
    /// a stream, which needs a task of its own.
    pub(super) fn begin_websocket(&self, upgrade: Upgrade) -> Option<Upgrade> {
        if self.takes_no_more() {
            upgrade.socket.close(1001, STOPPING);
        }
        let mut websockets = self.websockets.borrow_mut();
        let websockets = websockets.get_or_insert_default();
        if upgrade.stream.is_none() {
            websockets.own = Some(upgrade);
            return None;
        }
        websockets.on_streams.retain(|socket| !socket.is_over());
        websockets.on_streams.push(upgrade.socket.clone());
        Some(upgrade)
    }

    /// The WebSocket that follows HTTP on the connection.
    pub(super) fn websocket(&self) -> Option<WebSocket> {
        let websockets = self.websockets.borrow();
        let own = websockets.as_ref()?.own.as_ref()?;
        Some(own.socket.clone())
    }

    /// Something of a request was read without hyper.
    pub(super) fn received_plain(&self) {
        self.has_received.set(true);
        if matches!(self.phase.get(), Phase::New(_) | Phase::Idle(_)) {
            self.phase.set(Phase::Head(self.server.clock.get()));
        }
    }

    /// A request is in flight that hyper has not read.
    pub(super) fn begin_direct(&self) {
        self.in_flight.set(self.in_flight.get() + 1);
        self.phase.set(Phase::Busy);
    }

    /// Its answer was written, or hyper reads it now. `is_followed`: something of a next request was read.
    pub(super) fn end_direct(&self, is_followed: bool) {
        self.in_flight.set(self.in_flight.get() - 1);
        let now = self.server.clock.get();
        self.phase.set(match is_followed {
            true => Phase::Head(now),
            false => Phase::Idle(now),
        });
    }

    /// The next request that hyper reads is this one.
    pub(super) fn resume_with(&self, guard: RequestGuard<Call, RefusalReason>) {
        self.resumed.replace(Some(Box::new(guard)));
    }

    pub(super) fn resumed(&self) -> Option<RequestGuard<Call, RefusalReason>> {
        self.resumed.take().map(|guard| *guard)
    }

    pub(super) fn read(&self, bytes: &[u8]) {
        self.has_received.set(true);
        // On HTTP/2 only a stream is a request; a ping or a window update is not.
        if self.is_http2.get() {
            return;
        }
        if self.websockets.borrow().is_none() {
            self.framing.read(bytes);
        }
        if matches!(self.phase.get(), Phase::New(_) | Phase::Idle(_)) {
            self.phase.set(Phase::Head(self.server.clock.get()));
        }
    }

    pub(super) fn wrote(&self, something: bool) {
        if something {
            self.write_blocked.set(None);
        } else if self.write_blocked.get().is_none() {
            self.write_blocked.set(Some(self.server.clock.get()));
        }
    }

    /// The client may take one more part of an answer of HTTP/2.
    pub(super) fn begin_unsent(&self, answer: AnswerKind) {
        let unsent = &self.unsent[answer as usize];
        if unsent.parts.get() == 0 {
            self.unsent_progress(answer);
        }
        unsent.parts.set(unsent.parts.get() + 1);
    }

    /// A part has been sent as a whole, or never will.
    pub(super) fn end_unsent(&self, answer: AnswerKind) {
        let unsent = &self.unsent[answer as usize];
        unsent.parts.set(unsent.parts.get() - 1);
        self.unsent_progress(answer);
    }

    /// The client has taken something.
    pub(super) fn unsent_progress(&self, answer: AnswerKind) {
        let progressed = &self.unsent[answer as usize].progressed;
        progressed.set(self.server.clock.get());
    }

    /// Whether the client has read nothing for longer than the write timeout.
    pub(super) fn is_write_timed_out(&self, now: Tick) -> bool {
        let limit = Some(self.server.limits.write_timeout);
        let is_late = |since: Tick, limit: Option<Duration>| {
            limit.is_some_and(|limit| now.saturating_sub(since) >= ticks(limit))
        };
        let unsent = |answer| {
            let unsent: &Unsent = &self.unsent[answer as usize];
            (unsent.parts.get() > 0).then(|| unsent.progressed.get())
        };
        self.write_blocked
            .get()
            .is_some_and(|since| is_late(since, limit))
            || unsent(AnswerKind::Http).is_some_and(|since| is_late(since, limit))
            || unsent(AnswerKind::Service)
                .is_some_and(|since| is_late(since, self.server.service_write_timeout()))
    }

    /// Counts as busy until the guard is dropped.
    pub(super) fn enter(self: &Rc<Self>) -> InFlight {
        self.in_flight.set(self.in_flight.get() + 1);
        self.phase.set(Phase::Busy);
        InFlight(Rc::clone(self))
    }

    /// The same for a request with that body.
    pub(super) fn begin(self: &Rc<Self>, body: &Incoming) -> InFlight {
        if !self.is_http2.get() {
            self.framing.begin(body);
        }
        self.enter()
    }

    /// Whether the next response must carry `connection: close`. HTTP/2 has GOAWAY for that.
    pub(super) fn must_close(&self) -> bool {
        self.takes_no_more() && !self.is_http2.get()
    }

    /// Whether a request of HTTP/1 that has arrived as a whole is in flight.
    pub(super) fn is_awaiting_response(&self) -> bool {
        self.in_flight.get() > 0 && !self.is_http2.get() && self.framing.is_whole()
    }

    /// Whether the client was still sending when its last request was answered.
    pub(super) fn is_sent_to(&self) -> bool {
        self.framing.is_within()
    }

    fn takes_no_more(&self) -> bool {
        self.server.is_stopping() || self.is_aged.get()
    }

    /// The latest command. The task is waked for the next one.
    pub(super) fn commanded(&self, context: &Context<'_>) -> Command {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(waker) if waker.will_wake(context.waker()) => {}
            waker => *waker = Some(context.waker().clone()),
        }
        self.command.get()
    }

    pub(super) fn poll_command(&self, context: &Context<'_>, finish: impl FnOnce()) -> Poll<()> {
        match self.commanded(context) {
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
            let now = connection.server.clock.get();
            let is_followed = !connection.is_http2.get() && connection.framing.end();
            connection.phase.set(match is_followed {
                true => Phase::Head(now),
                false => Phase::Idle(now),
            });
        }
    }
}
