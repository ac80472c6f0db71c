use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

use super::body_aborted::BodyAborted;
use super::file_body::FileBody;
use super::websocket::Upgrade;
use crate::wait;

/// Bytes of a streamed body that are buffered before its writer has to wait.
const BUFFERED: usize = 64 << 10;

/// A response body.
pub enum Body {
    Empty,
    Full(Bytes),
    /// Written chunk by chunk through a [`BodyWriter`]. Boxed as all that is large: a response is moved several times.
    Stream(Box<StreamBody>),
    /// The contents of a [`SendableFile`](super::SendableFile).
    File(Box<FileBody>),
    /// Made by a [`Service`](super::Service).
    Other(Pin<Box<dyn hyper::body::Body<Data = Bytes, Error = BodyAborted>>>),
    /// No body: the connection becomes a WebSocket after this response.
    WebSocket(Upgrade),
}

impl Body {
    /// A body that is written while it is sent. `length` is its exact size if known.
    pub fn stream(length: Option<u64>) -> (BodyWriter, Self) {
        StreamBody::open(length, None)
    }

    pub(super) fn is_events(&self) -> bool {
        matches!(self, Self::Stream(stream) if stream.events.is_some())
    }

    /// A stream of events: it ends when the server stops. After each such duration without an event the bytes of `heartbeat` are
    /// sent.
    pub fn events(heartbeat: Option<(Duration, Bytes)>) -> (BodyWriter, Self) {
        let beats = heartbeat.map(|(every, bytes)| Heartbeat {
            every,
            bytes,
            next: None,
        });
        StreamBody::open(None, Some(Events { beats }))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        match bytes.is_empty() {
            true => Self::Empty,
            false => Self::Full(bytes),
        }
    }
}

#[derive(Default)]
pub(super) struct Pipe {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    end: Option<End>,
    /// The connection waits for something to send.
    reader: Option<Waker>,
    /// Notified when there is room, or when the body is not sent any further.
    room: Rc<Notify>,
    /// The body is not sent any further.
    closed: bool,
}

impl Pipe {
    /// Ends the body; later writes fail.
    pub(super) fn end(&mut self) {
        self.finish(End::Done(None));
    }

    fn has_room(&self) -> Option<Result<(), BodyAborted>> {
        match self.closed {
            true => Some(Err(BodyAborted)),
            false => (self.bytes < BUFFERED).then_some(Ok(())),
        }
    }

    fn finish(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
            wake(&mut self.reader);
        }
    }
}

enum End {
    Done(Option<HeaderMap>),
    Aborted,
}

/// Sends a body chunk by chunk. Dropping it before [`end`](Self::end) aborts the response.
pub struct BodyWriter {
    pipe: Rc<RefCell<Pipe>>,
}

impl BodyWriter {
    /// Buffers the chunk in any case. Returns false if the caller should await [`room`](Self::room) before the next write.
    ///
    /// # Errors
    /// [`BodyAborted`]: the client has disconnected.
    pub fn write(&self, chunk: Bytes) -> Result<bool, BodyAborted> {
        let mut pipe = self.pipe.borrow_mut();
        if pipe.closed || pipe.end.is_some() {
            return Err(BodyAborted);
        }
        if !chunk.is_empty() {
            pipe.bytes += chunk.len();
            pipe.waiting.push_back(chunk);
            wake(&mut pipe.reader);
        }
        Ok(pipe.bytes < BUFFERED)
    }

    /// Completes when the buffer has room, or the client has disconnected. Any number of tasks may wait.
    pub fn room(&self) -> impl Future<Output = Result<(), BodyAborted>> + use<> {
        let pipe = Rc::clone(&self.pipe);
        let room = Rc::clone(&pipe.borrow().room);
        async move { wait::until(&room, || pipe.borrow().has_room()).await }
    }

    pub fn end(&self, trailers: Option<HeaderMap>) {
        self.pipe.borrow_mut().finish(End::Done(trailers));
    }
}

impl Drop for BodyWriter {
    fn drop(&mut self) {
        self.pipe.borrow_mut().finish(End::Aborted);
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// The sending half of [`Body::stream`].
pub struct StreamBody {
    pipe: Rc<RefCell<Pipe>>,
    left: Option<u64>,
    events: Option<Events>,
    /// Called when nothing more is sent: true where its writer has ended or aborted the body before that. The client may not have got all of
    /// it.
    on_end: Option<Box<dyn FnOnce(bool)>>,
}

struct Events {
    beats: Option<Heartbeat>,
}

struct Heartbeat {
    every: Duration,
    bytes: Bytes,
    /// `None` until the connection has nothing to send for the first time.
    next: Option<Pin<Box<Sleep>>>,
}

impl Heartbeat {
    fn restart(&mut self) {
        if let Some(next) = &mut self.next {
            next.as_mut().reset(Instant::now() + self.every);
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        let next = self.next.get_or_insert_with(|| Box::pin(sleep(self.every)));
        ready!(next.as_mut().poll(context));
        self.restart();
        Poll::Ready(self.bytes.clone())
    }
}

impl StreamBody {
    fn open(left: Option<u64>, events: Option<Events>) -> (BodyWriter, Body) {
        let pipe = Rc::new(RefCell::new(Pipe::default()));
        let writer = BodyWriter {
            pipe: Rc::clone(&pipe),
        };
        let body = Self {
            pipe,
            left,
            events,
            on_end: None,
        };
        (writer, Body::Stream(Box::new(body)))
    }

    /// Calls `on_end` when nothing more is sent: true where its writer has ended or aborted the body before that, so that no handler has to
    /// learn that its client is gone.
    pub(super) fn on_end(&mut self, on_end: impl FnOnce(bool) + 'static) {
        self.on_end = Some(Box::new(on_end));
    }

    /// The pipe of a stream of events, by which a server that stops ends it.
    pub(super) fn events(&self) -> Option<Rc<RefCell<Pipe>>> {
        self.events.as_ref().map(|_| Rc::clone(&self.pipe))
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        let mut pipe = self.pipe.borrow_mut();
        if let Some(chunk) = pipe.waiting.pop_front() {
            pipe.bytes -= chunk.len();
            if pipe.bytes < BUFFERED {
                pipe.room.notify_waiters();
            }
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(chunk.len() as u64);
            }
            if let Some(beats) = self
                .events
                .as_mut()
                .and_then(|events| events.beats.as_mut())
            {
                beats.restart();
            }
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        match &mut pipe.end {
            Some(End::Done(trailers)) => Poll::Ready(
                trailers
                    .take()
                    .map(|trailers| Ok(Frame::trailers(trailers))),
            ),
            Some(End::Aborted) => Poll::Ready(Some(Err(BodyAborted))),
            None => {
                pipe.reader = Some(context.waker().clone());
                let beats = self
                    .events
                    .as_mut()
                    .and_then(|events| events.beats.as_mut());
                match beats.map(|beats| beats.poll(context)) {
                    Some(Poll::Ready(beat)) => Poll::Ready(Some(Ok(Frame::data(beat)))),
                    _ => Poll::Pending,
                }
            }
        }
    }

    fn is_at_end(&self) -> bool {
        let pipe = self.pipe.borrow();
        pipe.waiting.is_empty() && matches!(pipe.end, Some(End::Done(None)))
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        let mut pipe = self.pipe.borrow_mut();
        pipe.closed = true;
        pipe.waiting.clear();
        pipe.room.notify_waiters();
        let is_written = pipe.end.is_some();
        drop(pipe);
        if let Some(on_end) = self.on_end.take() {
            on_end(is_written);
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BodyAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        match self.get_mut() {
            Self::Empty | Self::WebSocket(_) => Poll::Ready(None),
            Self::Stream(stream) => stream.poll(context),
            Self::File(file) => file.poll(context),
            Self::Other(other) => other.as_mut().poll_frame(context),
            full @ Self::Full(_) => match std::mem::replace(full, Self::Empty) {
                Self::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                _ => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty | Self::WebSocket(_) => true,
            Self::Full(_) => false,
            Self::Stream(stream) => stream.is_at_end(),
            Self::File(file) => file.left() == 0,
            Self::Other(other) => other.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty | Self::WebSocket(_) => SizeHint::with_exact(0),
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(stream) => stream.left.map_or_else(SizeHint::new, SizeHint::with_exact),
            Self::File(file) => SizeHint::with_exact(file.left()),
            Self::Other(other) => other.size_hint(),
        }
    }
}
