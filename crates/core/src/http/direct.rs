//! Serves plain requests of HTTP/1.1 without hyper.
//!
//! Most requests are a GET without a body, and most answers one string. For those the connection reads the head with httparse, hands
//! the request out, and writes the answer at once, from the call that gives it, where the socket takes it. The first thing that is anything
//! else goes to hyper with all bytes that belong to it, and hyper keeps the connection from there: another method, a body, fields about the
//! connection, a streamed answer, a server that stops, a timeout, an error. So every rule of the protocol is written down once.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

use bytes::buf::Chain;
use bytes::{Buf, Bytes, BytesMut};
use hyper::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::body::Body;
use super::call::Call;
use super::connection::{Command, Connection};
use super::error_response::closing_response;
use super::refusal::RefusalReason;
use super::request_head::{PlainHead, Reading, RequestHead};
use super::response_head::{EncodedFields, write_head, write_response};
use super::response_writer::ResponseWriter;
use crate::net::{PeerState, Stream};
use crate::server::RequestGuard;

/// Bytes of one read. A head is seldom longer.
const READ: usize = 4 << 10;
/// A head in more pieces is hyper's: each piece that does not complete it has it parsed from its beginning.
const MOST_PIECES: u8 = 8;
/// Bodies up to this size are copied behind their head: a vectored write costs the kernel more.
const GATHERED: usize = 4 << 10;
/// The capacity that is kept for the next answer.
const KEPT: usize = 16 << 10;

thread_local! {
    /// Where answers are put together.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A connection that hyper does not serve, as its task and the handlers of its requests share it.
pub(super) struct Direct {
    connection: Rc<Connection>,
    /// `None` once hyper has it.
    stream: RefCell<Option<Stream>>,
    /// What was read behind the request in progress.
    input: RefCell<BytesMut>,
    /// Reads that have not completed the head at the beginning of the input.
    pieces: Cell<u8>,
    /// What the socket has not taken of the head and of the body of an answer.
    unsent: RefCell<Chain<Bytes, Bytes>>,
    request: RefCell<Option<RequestGuard<Call, RefusalReason>>>,
    /// The client has sent something that nobody has read, and no event will tell of it again.
    is_followed: Cell<bool>,
}

/// How a connection leaves this module.
enum End {
    Closed,
    HandOver,
}

/// Serves a connection for as long as its requests are plain. Returns the socket and the bytes that hyper continues with; `None` if the
/// connection has ended.
pub(super) async fn serve_direct(
    connection: &Rc<Connection>,
    stream: Stream,
    prefix: Bytes,
) -> Option<(Stream, Bytes)> {
    let limits = &connection.server.limits;
    // With TLS the end of the input is a message, which must be decrypted; a service takes requests by their fields.
    if matches!(stream, Stream::Tls(_))
        || connection.server.has_service()
        || limits.header_count == 0
    {
        return Some((stream, prefix));
    }
    connection.received_plain();
    let direct = Rc::new(Direct {
        connection: Rc::clone(connection),
        stream: RefCell::new(Some(stream)),
        input: RefCell::new(prefix.into()),
        pieces: Cell::default(),
        unsent: RefCell::new(Bytes::new().chain(Bytes::new())),
        request: RefCell::default(),
        is_followed: Cell::default(),
    });
    match std::future::poll_fn(|context| direct.poll(context)).await {
        End::Closed => None,
        End::HandOver => direct.hand_over(),
    }
}

impl Direct {
    fn poll(self: &Rc<Self>, context: &mut Context<'_>) -> Poll<End> {
        loop {
            if self.connection.commanded(context) != Command::None {
                return Poll::Ready(End::HandOver);
            }
            if ready!(self.poll_unsent(context)).is_err() {
                return Poll::Ready(End::Closed);
            }
            let call = self
                .request
                .borrow()
                .as_ref()
                .map(|guard| Rc::clone(guard.request()));
            let next = match call {
                Some(call) => ready!(self.poll_answer(&call, context)),
                None => ready!(self.poll_request(context)),
            };
            if let Some(end) = next {
                return Poll::Ready(end);
            }
        }
    }

    /// Writes the rest of an answer.
    fn poll_unsent(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut unsent = self.unsent.borrow_mut();
        if !unsent.has_remaining() {
            return Poll::Ready(Ok(()));
        }
        let mut stream = self.stream.borrow_mut();
        let Some(stream) = stream.as_mut() else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        while unsent.has_remaining() {
            let written = Pin::new(&mut *stream).poll_write(context, unsent.chunk());
            self.connection.wrote(written.is_ready());
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => unsent.advance(length),
            }
        }
        *unsent = Bytes::new().chain(Bytes::new());
        drop(unsent);
        self.end_request();
        Poll::Ready(Ok(()))
    }

    /// Waits for the answer of the request in progress, and for the client to go away. Ready with `None` when the answer was written, or
    /// a part of it.
    fn poll_answer(&self, call: &Call, context: &mut Context<'_>) -> Poll<Option<End>> {
        let answer = call.answer.take();
        if let Some(response) = answer {
            if !self.write(&response) {
                call.answer.replace(Some(response));
                return Poll::Ready(Some(End::HandOver));
            }
            return Poll::Ready(None);
        }
        call.waker.set(Some(context.waker().clone()));
        let stream = self.stream.borrow();
        let peer = stream.as_ref().map(|stream| stream.poll_peer(context));
        match peer {
            None | Some(Poll::Ready(PeerState::HasEnded)) => Poll::Ready(Some(End::Closed)),
            Some(Poll::Ready(PeerState::HasSent)) => {
                self.is_followed.set(true);
                Poll::Pending
            }
            Some(Poll::Pending) => Poll::Pending,
        }
    }

    /// Reads until a request is in progress.
    fn poll_request(self: &Rc<Self>, context: &mut Context<'_>) -> Poll<Option<End>> {
        if self.connection.must_close() {
            return Poll::Ready(Some(End::HandOver));
        }
        let mut input = self.input.borrow_mut();
        if !input.is_empty() {
            match self.read_head(&input) {
                Reading::Plain(head) => {
                    input.advance(head.bytes().len());
                    drop(input);
                    return self.begin(head, context);
                }
                Reading::Partial if self.pieces.get() < MOST_PIECES => {
                    self.pieces.set(self.pieces.get() + 1);
                }
                _ => return Poll::Ready(Some(End::HandOver)),
            }
        }
        let mut room = [const { MaybeUninit::uninit() }; READ];
        let mut room = ReadBuf::uninit(&mut room);
        if ready!(self.poll_read(context, &mut room)).is_err() || room.filled().is_empty() {
            return Poll::Ready(Some(End::Closed));
        }
        self.connection.received_plain();
        // The usual case: one whole head, which needs no buffer.
        if input.is_empty()
            && let Reading::Plain(head) = self.read_head(room.filled())
        {
            input.extend_from_slice(&room.filled()[head.bytes().len()..]);
            drop(input);
            return self.begin(head, context);
        }
        input.extend_from_slice(room.filled());
        Poll::Ready(None)
    }

    fn poll_read(&self, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.stream.borrow_mut().as_mut() {
            Some(stream) => Pin::new(stream).poll_read(context, room),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn read_head(&self, input: &[u8]) -> Reading {
        let limits = &self.connection.server.limits;
        PlainHead::read(input, limits.header_count, limits.header_bytes)
    }

    /// Hands out a request, or refuses it.
    fn begin(self: &Rc<Self>, head: PlainHead, context: &Context<'_>) -> Poll<Option<End>> {
        self.pieces.set(0);
        let connection = &self.connection;
        let server = &connection.server;
        connection.begin_direct();
        let make = |id, ()| {
            let head = RequestHead::Plain(head);
            let body = Rc::clone(&server.no_body);
            Call::new(
                id,
                head,
                body,
                connection.peer(),
                &server.admission,
                Some(Rc::downgrade(self) as Weak<dyn ResponseWriter>),
            )
        };
        let guard = connection.guard();
        let admitted = guard
            .as_ref()
            .map(|guard| guard.admit(server.arrival(), (), make));
        match admitted {
            None => Poll::Ready(Some(End::Closed)),
            Some(Ok(guard)) => {
                let id = guard.request().id;
                self.request.replace(Some(guard));
                server.admission.complete(id);
                Poll::Ready(None)
            }
            Some(Err(_)) => {
                if !self.write(&closing_response(StatusCode::SERVICE_UNAVAILABLE)) {
                    return Poll::Ready(Some(End::Closed));
                }
                // A client that sends many at once does not keep the others waiting.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Sends an answer as far as the socket takes it; `rest_of_body` keeps what it does not take.
    fn send(&self, head: &mut Vec<u8>, body: &[u8], rest_of_body: impl FnOnce(usize) -> Bytes) {
        let head_length = head.len();
        let length = head_length + body.len();
        let is_gathered = body.len() <= GATHERED;
        if is_gathered {
            head.extend_from_slice(body);
        }
        let written = match &*self.stream.borrow() {
            Some(stream) if is_gathered => stream.try_write(head),
            Some(stream) => stream.try_write_vectored(&[IoSlice::new(head), IoSlice::new(body)]),
            None => Ok(0),
        };
        // The task finds out what an error means, by writing.
        let written = written.unwrap_or(0);
        if written == length {
            self.end_request();
            return;
        }
        let head = Bytes::copy_from_slice(&head[written.min(head_length)..head_length]);
        let body = rest_of_body(written.saturating_sub(head_length));
        self.unsent.replace(head.chain(body));
        // No handler waits for the rest.
        drop(self.request.take());
        self.connection.wake();
    }

    /// The answer was sent as a whole.
    fn end_request(&self) {
        drop(self.request.take());
        let has_input = !self.input.borrow().is_empty();
        self.connection
            .end_direct(has_input && !are_empty_lines(&self.input.borrow()));
        if self.is_followed.take() || has_input {
            self.connection.wake();
        }
    }

    /// hyper reads the request in progress once more, and finds that it has been handed out.
    fn hand_over(&self) -> Option<(Stream, Bytes)> {
        let stream = self.stream.take()?;
        if self.unsent.borrow().has_remaining() {
            // The connection is aborted, in the middle of an answer.
            return None;
        }
        let input = self.input.take();
        let Some(guard) = self.request.take() else {
            return Some((stream, input.freeze()));
        };
        self.connection.end_direct(true);
        let mut prefix = BytesMut::new();
        if let Some(head) = guard.request().plain_head() {
            prefix.extend_from_slice(head.bytes());
        }
        prefix.extend_from_slice(&input);
        self.connection.resume_with(guard);
        Some((stream, prefix.freeze()))
    }
}

impl ResponseWriter for Direct {
    fn write(&self, response: &Response<Body>) -> bool {
        if !self.is_ready() {
            return false;
        }
        let mut room = ROOM.take();
        let server = &self.connection.server;
        let body = write_response(response, (&server.date, server.clock.get()), &mut room);
        if let Some(body) = &body {
            self.send(&mut room, body, |sent| body.slice(sent..));
        }
        keep(room);
        body.is_some()
    }

    fn write_parts(&self, status: StatusCode, fields: &EncodedFields, body: &[u8]) {
        let mut room = ROOM.take();
        let server = &self.connection.server;
        let date = (&server.date, server.clock.get());
        write_head(status, fields, body.len(), date, &mut room);
        self.send(&mut room, body, |sent| {
            Bytes::copy_from_slice(&body[sent..])
        });
        keep(room);
    }

    fn is_ready(&self) -> bool {
        self.stream.borrow().is_some()
            && !self.unsent.borrow().has_remaining()
            && !self.connection.must_close()
    }
}

/// Empty lines before a request are ignored (RFC 9112 §2.2): they begin none.
fn are_empty_lines(input: &[u8]) -> bool {
    input.ends_with(b"\n") && input.iter().all(|byte| b"\r\n".contains(byte))
}

fn keep(mut room: Vec<u8>) {
    if room.capacity() <= KEPT {
        room.clear();
        ROOM.set(room);
    }
}
