use std::cell::RefCell;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::Frame;

use super::frame;
use super::web::{Protocol, text, trailers_frame};
use crate::http::BodyAborted;

/// Bytes that are buffered before the writer has to wait.
const BUFFERED: usize = 64 << 10;

/// The peer takes no more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call has ended: nothing more can be sent")]
pub struct Closed;

/// Messages to send. Small buffered ones are sent together.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BytesMut,
    end: Option<End>,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Debug)]
enum End {
    Trailers(HeaderMap),
    Sent,
}

impl Outbound {
    /// Buffers the message in any case. Returns false if the caller should await [`poll_room`](Self::poll_room) before the next one.
    pub(super) fn write(&self, is_compressed: bool, message: &[u8]) -> Result<bool, Closed> {
        self.append(|waiting| frame::write(waiting, is_compressed, message))
    }

    /// The same for bytes without the prefix of a gRPC message.
    pub(super) fn write_raw(&self, bytes: &[u8]) -> Result<bool, Closed> {
        self.append(|waiting| waiting.extend_from_slice(bytes))
    }

    fn append(&self, append: impl FnOnce(&mut BytesMut)) -> Result<bool, Closed> {
        let mut state = self.state.borrow_mut();
        if state.closed || state.end.is_some() {
            return Err(Closed);
        }
        append(&mut state.waiting);
        wake(&mut state.reader);
        Ok(state.waiting.len() < BUFFERED)
    }

    /// Whether bytes are buffered.
    pub(super) fn is_waiting(&self) -> bool {
        !self.state.borrow().waiting.is_empty()
    }

    /// The number of bytes left to send, once the end is known.
    pub(super) fn remaining(&self) -> Option<usize> {
        let state = self.state.borrow();
        state.end.as_ref().map(|_| state.waiting.len())
    }

    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let mut state = self.state.borrow_mut();
        if state.closed || state.end.is_some() {
            return Poll::Ready(Err(Closed));
        }
        if state.waiting.len() < BUFFERED {
            return Poll::Ready(Ok(()));
        }
        state.writer = Some(context.waker().clone());
        Poll::Pending
    }

    /// Ends the messages. Buffered ones are still sent.
    pub(super) fn end(&self, trailers: HeaderMap) {
        let mut state = self.state.borrow_mut();
        if state.end.is_none() {
            state.end = Some(End::Trailers(trailers));
            wake(&mut state.reader);
            wake(&mut state.writer);
        }
    }

    /// Discards buffered messages; later writes fail.
    pub(super) fn close(&self) {
        let mut state = self.state.borrow_mut();
        state.closed = true;
        state.waiting = BytesMut::new();
        wake(&mut state.writer);
        wake(&mut state.reader);
    }

    pub(super) fn poll_frame(
        &self,
        protocol: Protocol,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        let mut state = self.state.borrow_mut();
        if state.closed {
            return Poll::Ready(Some(Err(BodyAborted)));
        }
        if !state.waiting.is_empty() {
            let bytes = std::mem::take(&mut state.waiting).freeze();
            wake(&mut state.writer);
            return Poll::Ready(Some(Ok(Frame::data(encode_text(protocol, bytes)))));
        }
        match state.end.take() {
            None => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
            Some(End::Trailers(trailers)) => {
                state.end = Some(End::Sent);
                Poll::Ready(last(protocol, trailers).map(Ok))
            }
            Some(End::Sent) => {
                state.end = Some(End::Sent);
                Poll::Ready(None)
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let state = self.state.borrow();
        if state.closed || !state.waiting.is_empty() {
            return false;
        }
        match &state.end {
            Some(End::Sent) => true,
            Some(End::Trailers(trailers)) => trailers.is_empty(),
            None => false,
        }
    }
}

/// The last frame of the body, if the protocol has one.
fn last(protocol: Protocol, trailers: HeaderMap) -> Option<Frame<Bytes>> {
    match protocol {
        Protocol::Json => None,
        Protocol::Grpc if trailers.is_empty() => None,
        Protocol::Grpc => Some(Frame::trailers(trailers)),
        Protocol::Web | Protocol::WebText => {
            let frame = trailers_frame(&trailers);
            Some(Frame::data(encode_text(protocol, frame)))
        }
    }
}

fn encode_text(protocol: Protocol, bytes: Bytes) -> Bytes {
    match protocol {
        Protocol::WebText => text(&bytes),
        _ => bytes,
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
