//! Serves plain requests of HTTP/1.1 without hyper.
//!
//! Most requests are a GET without a body, and most answers one string or a file. For those the connection reads the head with httparse,
//! hands the request out, and writes the answer at once, from the call that gives it, where the socket takes it. The first thing that is
//! anything else goes to hyper with all bytes that belong to it, and hyper keeps the connection from there: another method, a body, fields
//! about the connection, a streamed answer, a server that stops, a timeout, an error. So every rule of the protocol is written down once.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use hyper::body::Body as _;
use hyper::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::body::Body;
use super::call::Call;
use super::connection::{Command, Connection};
use super::error_response::closing_response;
use super::file_body::{CHUNK, FileBody};
use super::refusal::RefusalReason;
use super::request_head::{PlainHead, Reading, RequestHead};
use super::response_head::{EncodedFields, write_head, write_head_of};
use super::response_writer::ResponseWriter;
use crate::net::{PeerState, Stream};
use crate::server::RequestGuard;

/// Bytes of one read. A head is seldom longer.
const READ: usize = 4 << 10;
/// A head in more pieces is hyper's: each piece that does not complete it has it parsed from its beginning.
const MOST_PIECES: u8 = 8;
/// Bodies up to this size are copied behind their head: a vectored write costs the kernel more.
const GATHERED: usize = 4 << 10;
/// The capacity that is kept for the next answer: a chunk of a file behind its head.
const KEPT: usize = CHUNK as usize + (8 << 10);

thread_local! {
    /// Where answers are put together.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A connection that hyper does not serve, as its task and the handlers of its requests share it.
pub(super) struct Direct {
    connection: Rc<Connection>,
    /// `None` once hyper has it.
    stream: RefCell<Option<Stream>>,
    /// Bytes that were read after the request in progress.
    input: RefCell<BytesMut>,
    /// Reads that have not completed the head at the beginning of the input.
    pieces: Cell<u8>,
    unsent: RefCell<Unsent>,
    request: RefCell<Option<RequestGuard<Call, RefusalReason>>>,
    /// The client has sent something that nobody has read, and no event will tell of it again.
    is_followed: Cell<bool>,
}

/// The part of an answer that the socket has not taken.
struct Unsent {
    bytes: Bytes,
    /// Follows them.
    body: Body,
}

impl Unsent {
    const NOTHING: Self = Self {
        bytes: Bytes::new(),
        body: Body::Empty,
    };

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.body.is_end_stream()
    }

    /// The next bytes to write, none at the end.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<io::Result<&mut Bytes>> {
        while self.bytes.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => break,
                Some(Ok(frame)) => self.bytes = frame.into_data().unwrap_or_default(),
                // The client finds out that the file has become shorter by the end of the connection.
                Some(Err(aborted)) => return Poll::Ready(Err(io::Error::other(aborted))),
            }
        }
        Poll::Ready(Ok(&mut self.bytes))
    }
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
        unsent: RefCell::new(Unsent::NOTHING),
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
        if unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut stream = self.stream.borrow_mut();
        let Some(stream) = stream.as_mut() else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        loop {
            let bytes = ready!(unsent.poll_bytes(context))?;
            if bytes.is_empty() {
                break;
            }
            let written = Pin::new(&mut *stream).poll_write(context, bytes);
            self.connection.wrote(written.is_ready());
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => bytes.advance(length),
            }
        }
        *unsent = Unsent::NOTHING;
        drop(unsent);
        self.end_request();
        Poll::Ready(Ok(()))
    }

    /// Waits for the answer of the request in progress, and for the client to go away. Ready with `None` when the answer was written, or
    /// a part of it.
    fn poll_answer(&self, call: &Call, context: &mut Context<'_>) -> Poll<Option<End>> {
        let answer = call.answer.take();
        if let Some(response) = answer {
            let unwritten = self.write(response);
            let must_hand_over = unwritten.is_some();
            call.answer.replace(unwritten);
            return Poll::Ready(must_hand_over.then_some(End::HandOver));
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
                let refusal = closing_response(StatusCode::SERVICE_UNAVAILABLE);
                if self.write(refusal).is_some() {
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
        self.send_later(head, Body::from(body));
    }

    /// Sends the head and as much of the first chunk as the page cache has. The connection's task sends the rest.
    fn send_file(&self, head: &mut Vec<u8>, mut file: Box<FileBody>) {
        file.append_cached(head);
        let written = match &*self.stream.borrow() {
            Some(stream) => stream.try_write(head).unwrap_or(0),
            None => 0,
        };
        if written == head.len() && file.left() == 0 {
            self.end_request();
            return;
        }
        let rest = Bytes::copy_from_slice(&head[written..]);
        self.send_later(rest, Body::File(file));
    }

    /// Leaves the rest of an answer to the task of the connection.
    fn send_later(&self, bytes: Bytes, body: Body) {
        self.unsent.replace(Unsent { bytes, body });
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
        if self.has_unsent() {
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
    fn write(&self, response: Response<Body>) -> Option<Response<Body>> {
        if !self.is_ready() {
            return Some(response);
        }
        let mut room = ROOM.take();
        let server = &self.connection.server;
        if write_head_of(&response, (&server.date, server.clock.get()), &mut room).is_none() {
            keep(room);
            return Some(response);
        }
        match response.into_body() {
            Body::File(file) => self.send_file(&mut room, file),
            Body::Full(body) => self.send(&mut room, &body, |sent| body.slice(sent..)),
            _ => self.send(&mut room, &[], |_| Bytes::new()),
        }
        keep(room);
        None
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
        self.stream.borrow().is_some() && !self.has_unsent() && !self.connection.must_close()
    }

    fn has_unsent(&self) -> bool {
        !self.unsent.borrow().is_empty()
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
