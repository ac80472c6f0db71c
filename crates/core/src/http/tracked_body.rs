use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};

use super::body::Body;
use super::body_aborted::BodyAborted;
use super::connection::{AnswerKind, Connection, InFlight};

/// The body of an answer on its way to its connection, which counts as busy until the body has been sent.
pub(super) struct TrackedBody {
    body: Body,
    in_flight: Option<InFlight>,
    /// On a stream of HTTP/2 the client decides how much is sent and when: it has the write timeout for each step.
    timed: Option<AnswerKind>,
    /// hyper has not asked for the next part of the body, so there may be one.
    unsent: Option<UnsentGuard>,
}

impl TrackedBody {
    pub(super) fn new(body: Body, in_flight: Option<InFlight>, timed: Option<AnswerKind>) -> Self {
        let mut tracked = Self {
            body,
            in_flight,
            timed,
            unsent: None,
        };
        tracked.expect_poll();
        tracked
    }

    fn expect_poll(&mut self) {
        if self.unsent.is_none() {
            let connection = self.in_flight.as_ref().map(InFlight::connection);
            self.unsent = connection.zip(self.timed).map(UnsentGuard::of);
        }
    }

    fn chunk(&self, bytes: Bytes) -> TrackedChunk {
        // HTTP/1 goes on to the next request while the chunks of this answer wait for the socket.
        let in_flight = self.in_flight.as_ref().map(InFlight::connection);
        let in_flight = in_flight.filter(|connection| connection.is_http2());
        TrackedChunk {
            bytes,
            _in_flight: in_flight.map(Connection::enter),
            unsent: in_flight.zip(self.timed).map(UnsentGuard::of),
        }
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = TrackedChunk;
    type Error = BodyAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<TrackedChunk>, BodyAborted>>> {
        let tracked = self.get_mut();
        let frame = Pin::new(&mut tracked.body).poll_frame(context);
        match &frame {
            Poll::Ready(Some(Ok(frame))) if frame.is_data() => tracked.expect_poll(),
            _ => tracked.unsent = None,
        }
        frame.map_ok(|frame| frame.map_data(|bytes| tracked.chunk(bytes)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A part of an answer. On HTTP/2 it waits for its turn and for the client's window: it has been sent when it is dropped.
pub(super) struct TrackedChunk {
    bytes: Bytes,
    _in_flight: Option<InFlight>,
    unsent: Option<UnsentGuard>,
}

impl Buf for TrackedChunk {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, length: usize) {
        self.bytes.advance(length);
        if let Some(unsent) = &self.unsent {
            unsent.connection.unsent_progress(unsent.answer);
        }
    }
}

/// The client may take something, and has not taken it, for as long as this lives.
struct UnsentGuard {
    connection: Rc<Connection>,
    answer: AnswerKind,
}

impl UnsentGuard {
    fn of((connection, answer): (&Rc<Connection>, AnswerKind)) -> Self {
        connection.begin_unsent(answer);
        Self {
            connection: Rc::clone(connection),
            answer,
        }
    }
}

impl Drop for UnsentGuard {
    fn drop(&mut self) {
        self.connection.end_unsent(self.answer);
    }
}
