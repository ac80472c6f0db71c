use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};

use super::body::{Body, Broken};
use super::connection::{Connection, InFlight};

/// A body on its way to a connection, which counts as busy until it has been sent.
pub(super) struct TrackedBody {
    body: Body,
    in_flight: Option<InFlight>,
    is_timed: bool,
    /// There is something, or may be, that nobody has asked for.
    owed: Option<Owed>,
}

impl TrackedBody {
    pub(super) fn new(body: Body, in_flight: Option<InFlight>) -> Self {
        Self {
            body,
            in_flight,
            is_timed: false,
            owed: None,
        }
    }

    /// The same on a stream of HTTP/2, of which the client decides how much is sent and when: it has the connection's
    /// `write_timeout` for each step of that.
    pub(super) fn timed(mut self) -> Self {
        self.is_timed = true;
        self.owe();
        self
    }

    fn owe(&mut self) {
        if self.is_timed && self.owed.is_none() {
            self.owed = self.in_flight.as_ref().map(|it| Owed::on(it.connection()));
        }
    }

    fn piece(&self, bytes: Bytes) -> Piece {
        // HTTP/1 goes on to the next request while the pieces of this answer wait for the socket.
        let in_flight = self.in_flight.as_ref().map(InFlight::connection);
        let in_flight = in_flight.filter(|connection| connection.is_http2());
        Piece {
            bytes,
            _in_flight: in_flight.map(Connection::enter),
            owed: in_flight.filter(|_| self.is_timed).map(Owed::on),
        }
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Piece;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Broken>>> {
        let sending = self.get_mut();
        let frame = Pin::new(&mut sending.body).poll_frame(context);
        match &frame {
            Poll::Ready(Some(Ok(frame))) if frame.is_data() => sending.owe(),
            _ => sending.owed = None,
        }
        frame.map_ok(|frame| frame.map_data(|bytes| sending.piece(bytes)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A part of an answer. On HTTP/2 it waits for its turn and for the client's window: only then it has been sent.
pub(super) struct Piece {
    bytes: Bytes,
    _in_flight: Option<InFlight>,
    owed: Option<Owed>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, length: usize) {
        self.bytes.advance(length);
        if let Some(owed) = &self.owed {
            owed.0.paid();
        }
    }
}

/// A client may have this, and has not taken it, for as long as this lives.
struct Owed(Rc<Connection>);

impl Owed {
    fn on(connection: &Rc<Connection>) -> Self {
        connection.owe();
        Self(Rc::clone(connection))
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.settle();
    }
}
