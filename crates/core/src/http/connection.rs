use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::body::Body;
use super::boundary::Boundary;
use super::pings::{Pings, Silence};
use super::registry::Id;
use super::server::{Shared, handle};
use super::socket::Socket;
use super::sweep::{Tick, ticks};
use super::tally::Tally;
use super::websocket::{STOPPING, Upgrade, WebSocket, converse, converse_on_stream};
use crate::net::{Local, Stream, TlsAcceptor};

/// What an HTTP/2 client sends first (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What hyper refuses more than, unless it is told another number.
const DEFAULT_HEADERS: usize = 100;
const REQUEST_TIMEOUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\n\
    connection: close\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    content-length: 20\r\n\r\n\
    408 Request Timeout\n";
/// How long a client may take to receive that.
const PATIENCE: Duration = Duration::from_secs(1);
const MAX_STREAMS: u32 = 256;
/// What a client may send on all HTTP/2 streams before it is read, as a multiple of what it may on one.
const STREAMS_WORTH: u32 = 4;
/// The same where messages may wait for a handler: h2 closes a connection with more unread small frames than half of its
/// window pays for, at 256 bytes each. One stream full of messages of five bytes takes 52 times its own window of that.
const MESSAGES_WORTH: u32 = 128;
/// RFC 9113 §6.9.1
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// Who is at the other end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// `None` on a Unix socket.
    pub address: Option<SocketAddr>,
    pub is_tls: bool,
    /// The certificate the client has shown and proved to hold, in DER.
    pub certificate: Option<Vec<u8>>,
    /// Of the calls on it.
    pub tally: Tally,
}

/// What a connection is told from outside. A later one that is stronger replaces an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Command {
    None,
    /// Ends once what is in flight is answered.
    Finish,
    /// Is answered 408 and ends: half a request has arrived, and then nothing.
    TimeOut,
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
    peer: RefCell<Rc<Peer>>,
    phase: Cell<Phase>,
    in_flight: Cell<u32>,
    is_http2: Cell<bool>,
    pub(super) write_blocked: Cell<Option<Tick>>,
    command: Cell<Command>,
    is_finishing: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// Something was read since this was last looked at.
    pub(super) heard: Cell<bool>,
    boundary: Boundary,
    pub(super) pings: Pings,
    opened: Tick,
    /// Older than connections may be.
    is_aged: Cell<bool>,
    /// What follows HTTP on it.
    conversation: RefCell<Option<Upgrade>>,
    /// Those on streams of HTTP/2.
    conversations: RefCell<Vec<WebSocket>>,
}

impl Connection {
    pub(super) fn new(id: Id, shared: Rc<Shared>, peer: Peer) -> Self {
        let opened = shared.clock.get();
        Self {
            id,
            shared,
            peer: RefCell::new(Rc::new(peer)),
            phase: Cell::new(Phase::New(opened)),
            in_flight: Cell::new(0),
            is_http2: Cell::new(false),
            write_blocked: Cell::new(None),
            command: Cell::new(Command::None),
            is_finishing: Cell::new(false),
            waker: RefCell::default(),
            heard: Cell::new(true),
            boundary: Boundary::default(),
            pings: Pings::default(),
            opened,
            is_aged: Cell::new(false),
            conversation: RefCell::default(),
            conversations: RefCell::default(),
        }
    }

    pub(super) fn peer(&self) -> Rc<Peer> {
        Rc::clone(&self.peer.borrow())
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
            return self.pings.heard(now);
        }
        match self
            .pings
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

    pub(super) fn counts_pings(&self) -> bool {
        self.is_http2.get() && self.shared.limits.min_ping_interval.is_some()
    }

    pub(super) fn pinged(&self, pings: u32) {
        if let Some(minimum) = self.shared.limits.min_ping_interval
            && pings > 0
        {
            self.pings.count(pings, minimum);
        }
    }

    /// The answer that is being sent is the last of HTTP on this connection, or on its stream.
    pub(super) fn leave_http(self: &Rc<Self>, body: Body) {
        let Body::Conversation(upgrade) = body else {
            return;
        };
        if self.shared.is_stopping() || self.is_aged.get() {
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

    fn conversation(&self) -> Option<WebSocket> {
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
            self.boundary.read(bytes);
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

    /// Counts what is in flight until the guard is dropped.
    pub(super) fn enter(self: &Rc<Self>) -> InFlight {
        self.in_flight.set(self.in_flight.get() + 1);
        self.phase.set(Phase::Busy);
        InFlight(Rc::clone(self))
    }

    /// The same for a request over HTTP, whose body is that.
    pub(super) fn begin(self: &Rc<Self>, body: &Incoming) -> InFlight {
        if !self.is_http2.get() {
            self.boundary.begin(body);
        }
        self.enter()
    }

    /// Whether the answer to a request of it must say that it is the last one: HTTP/2 has GOAWAY for that.
    pub(super) fn must_close(&self) -> bool {
        (self.shared.is_stopping() || self.is_aged.get()) && !self.is_http2.get()
    }

    pub(super) fn obey(&self, context: &Context<'_>, finish: impl FnOnce()) -> Poll<()> {
        let mut waker = self.waker.borrow_mut();
        match &mut *waker {
            Some(waker) if waker.will_wake(context.waker()) => {}
            waker => *waker = Some(context.waker().clone()),
        }
        match self.command.get() {
            Command::Abort | Command::TimeOut => return Poll::Ready(()),
            Command::Finish if !self.is_finishing.replace(true) => finish(),
            _ => {}
        }
        Poll::Pending
    }
}

pub(super) struct InFlight(Rc<Connection>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let connection = &self.0;
        connection.in_flight.set(connection.in_flight.get() - 1);
        if connection.in_flight.get() == 0 {
            let now = connection.shared.clock.get();
            let is_followed = !connection.is_http2.get() && connection.boundary.end();
            connection.phase.set(match is_followed {
                true => Phase::Head(now),
                false => Phase::Idle(now),
            });
        }
    }
}

/// Serves a connection until it ends or is told to.
pub(super) async fn serve(
    connection: Rc<Connection>,
    stream: Stream,
    tls: Option<Rc<TlsAcceptor>>,
) {
    // In boxes of their own: together in one future, each connection would be as large as the largest of them, which is the beginning
    // of TLS or a conversation.
    let beginning = Box::pin(begin(&connection, stream, tls));
    let Some((stream, prefix, is_http2)) = beginning.await else {
        return;
    };
    connection.is_http2.set(is_http2);
    let socket = Socket::new(stream, prefix, Rc::clone(&connection));
    match is_http2 {
        true => serve_http2(connection, socket).await,
        false => Box::pin(serve_http1(connection, socket)).await,
    }
}

/// The socket, what was read from it, and whether the client speaks HTTP/2. None when it does not come to that.
async fn begin(
    connection: &Connection,
    stream: Stream,
    tls: Option<Rc<TlsAcceptor>>,
) -> Option<(Stream, Bytes, bool)> {
    let mut begun = pin!(async {
        let stream = secured(connection, stream, tls.as_deref()).await?;
        recognised(stream).await
    });
    poll_fn(|context| {
        if connection.obey(context, || {}).is_ready() {
            return Poll::Ready(None);
        }
        begun.as_mut().poll(context).map(Result::ok)
    })
    .await
}

async fn secured(
    connection: &Connection,
    stream: Stream,
    tls: Option<&TlsAcceptor>,
) -> io::Result<Stream> {
    let Some(tls) = tls else {
        return Ok(stream);
    };
    let Stream::Tcp(socket) = stream else {
        return Err(io::Error::other("TLS needs TCP"));
    };
    let stream = tls.accept(socket).await?;
    let shown = stream.get_ref().1.peer_certificates();
    if let Some(certificate) = shown.and_then(<[_]>::first) {
        let peer = Peer {
            address: connection.peer().address,
            is_tls: true,
            certificate: Some(certificate.to_vec()),
            tally: Tally::default(),
        };
        connection.peer.replace(Rc::new(peer));
    }
    Ok(Stream::tls(stream))
}

/// Reads until it is clear which protocol the client speaks, and returns what was read.
async fn recognised(mut stream: Stream) -> io::Result<(Stream, Bytes, bool)> {
    let mut prefix = Vec::with_capacity(PREFACE.len());
    loop {
        let mut byte = [0; PREFACE.len()];
        let missing = PREFACE.len() - prefix.len();
        let length = stream.read(&mut byte[..missing]).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        prefix.extend_from_slice(&byte[..length]);
        if !PREFACE.starts_with(&prefix) {
            return Ok((stream, prefix.into(), false));
        }
        if prefix.len() == PREFACE.len() {
            return Ok((stream, prefix.into(), true));
        }
    }
}

async fn serve_http1(connection: Rc<Connection>, socket: Socket) {
    let limits = &connection.shared.limits;
    let mut builder = http1::Builder::new();
    // With a number of its own, hyper allocates its table of fields for every request.
    if limits.header_count != DEFAULT_HEADERS {
        builder.max_headers(limits.header_count);
    }
    builder
        .max_header_size(limits.header_bytes)
        .header_read_timeout(None)
        // With it hyper buffers a streamed body without bound for a client that does not read.
        .pipeline_flush(false);
    let server = Rc::clone(&connection);
    let service =
        service_fn(move |request: hyper::Request<Incoming>| handle(Rc::clone(&server), request));
    let mut protocol = builder.serve_connection(socket, service);
    poll_fn(|context| {
        let finish = || Pin::new(&mut protocol).graceful_shutdown();
        if connection.obey(context, finish).is_ready() {
            return Poll::Ready(());
        }
        // Without the conversation that may follow, hyper closes the socket by itself.
        Pin::new(&mut protocol).poll(context).map(|_| ())
    })
    .await;
    if let Some(conversation) = connection.conversation() {
        let parts = protocol.into_parts();
        Box::pin(converse(connection, parts.io, parts.read_buf, conversation)).await;
    } else if connection.command.get() == Command::TimeOut {
        time_out(protocol.into_parts().io).await;
    }
}

/// RFC 9110 §15.5.9. There is no request, so hyper has no answer.
async fn time_out(mut socket: Socket) {
    let answering = async {
        socket.write_all(REQUEST_TIMEOUT).await?;
        socket.shutdown().await
    };
    let _ = timeout(PATIENCE, answering).await;
}

fn connection_window(stream_window: u32, has_messages: bool) -> u32 {
    let worth = match has_messages {
        true => MESSAGES_WORTH,
        false => STREAMS_WORTH,
    };
    stream_window.saturating_mul(worth).min(LARGEST_WINDOW)
}

/// The builder and the socket are no part of what is kept: this is what an idle connection consists of.
fn serve_http2(connection: Rc<Connection>, socket: Socket) -> impl Future<Output = ()> {
    let limits = &connection.shared.limits;
    let mut builder = http2::Builder::new(Local);
    builder
        .enable_connect_protocol()
        .max_concurrent_streams(MAX_STREAMS)
        // `Date` puts it where it belongs.
        .auto_date_header(false)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(limits.stream_window)
        .initial_connection_window_size(connection_window(
            limits.stream_window,
            connection.shared.has_service(),
        ));
    let server = Rc::clone(&connection);
    let service =
        service_fn(move |request: hyper::Request<Incoming>| handle(Rc::clone(&server), request));
    let mut protocol = Box::pin(builder.serve_connection(socket, service));
    poll_fn(move |context| {
        let finish = || protocol.as_mut().graceful_shutdown();
        if connection.obey(context, finish).is_ready() {
            return Poll::Ready(());
        }
        protocol.as_mut().poll(context).map(|_| ())
    })
}
