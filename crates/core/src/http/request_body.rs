use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body as _, Frame, Incoming};

use super::linger;
use super::sweep::Tick;

/// Bodies up to this size are read before their handler starts.
pub(super) const SMALL: u64 = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the request body has more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the request body ended before it was complete: {reason}")]
    Incomplete { reason: String },
    #[error("the next piece of the request body did not arrive within {} seconds", .after.as_secs_f64())]
    TimedOut { after: Duration },
    #[error("the request body was read before, or is being read by another task")]
    Taken,
}

/// The body of a request, read at most once, never before somebody asks.
pub(super) struct RequestBody {
    state: RefCell<State>,
    limit: u64,
    received: Cell<u64>,
    trailers: RefCell<Option<HeaderMap>>,
    is_http2: bool,
    clock: Rc<Cell<Tick>>,
    /// Since when somebody waits for the next piece, and who.
    waiting: RefCell<Option<(Tick, Waker)>>,
    timed_out: Cell<Option<Duration>>,
}

/// That of a request that has none; any number of them may share one.
impl Default for RequestBody {
    fn default() -> Self {
        Self {
            state: RefCell::new(State::Whole(Bytes::new())),
            limit: 0,
            received: Cell::default(),
            trailers: RefCell::default(),
            is_http2: false,
            clock: Rc::default(),
            waiting: RefCell::default(),
            timed_out: Cell::default(),
        }
    }
}

enum State {
    Whole(Bytes),
    Arriving(Incoming),
    /// Being read, or read by piece.
    Taken,
    Failed(BodyError),
}

impl RequestBody {
    pub(super) fn new(
        incoming: Incoming,
        is_http2: bool,
        limit: u64,
        clock: Rc<Cell<Tick>>,
    ) -> Self {
        Self {
            state: RefCell::new(State::Arriving(incoming)),
            limit,
            is_http2,
            clock,
            ..Self::default()
        }
    }

    /// The declared length, where it says that the limit is passed.
    pub(super) fn is_declared_too_large(&self) -> bool {
        match &*self.state.borrow() {
            State::Arriving(incoming) => incoming.size_hint().lower() > self.limit,
            _ => false,
        }
    }

    /// It is so small that it is read before the handler starts.
    pub(super) fn is_small(&self) -> bool {
        match &*self.state.borrow() {
            State::Arriving(incoming) => incoming
                .size_hint()
                .exact()
                .is_some_and(|size| size <= SMALL),
            _ => false,
        }
    }

    /// The whole body, when it is here already. It can be asked for any number of times.
    pub(super) fn whole(&self) -> Option<Result<Bytes, BodyError>> {
        match &*self.state.borrow() {
            State::Whole(bytes) => Some(Ok(bytes.clone())),
            State::Failed(error) => Some(Err(error.clone())),
            State::Taken => Some(Err(BodyError::Taken)),
            State::Arriving(_) => None,
        }
    }

    /// Reads to the end. Cancelled in the middle, the rest is never read.
    pub(super) async fn read(self: Rc<Self>) -> Result<Bytes, BodyError> {
        if let Some(whole) = self.whole() {
            return whole;
        }
        let mut incoming = self.take()?;
        let read = self.collect(&mut incoming).await;
        if let Err(BodyError::TooLarge { .. }) = read {
            self.forget(incoming);
        }
        *self.state.borrow_mut() = match &read {
            Ok(bytes) => State::Whole(bytes.clone()),
            Err(error) => State::Failed(error.clone()),
        };
        read
    }

    /// The next piece, empty at the end.
    pub(super) async fn next(self: Rc<Self>) -> Result<Bytes, BodyError> {
        let whole = self.whole();
        match whole {
            Some(Ok(bytes)) => {
                *self.state.borrow_mut() = State::Whole(Bytes::new());
                return Ok(bytes);
            }
            Some(Err(error)) => return Err(error),
            None => {}
        }
        let mut incoming = self.take()?;
        let piece = self.piece(&mut incoming).await;
        *self.state.borrow_mut() = match &piece {
            Ok(Some(_)) => State::Arriving(incoming),
            Ok(None) => State::Whole(Bytes::new()),
            Err(error) => {
                if let BodyError::TooLarge { .. } = error {
                    self.forget(incoming);
                }
                State::Failed(error.clone())
            }
        };
        piece.map(Option::unwrap_or_default)
    }

    /// Nobody is going to read it.
    pub(super) fn refuse(&self) {
        if let Ok(incoming) = self.take() {
            self.forget(incoming);
        }
    }

    /// Reads on for a while what is too much. HTTP/2 would reset the stream, and there are clients that take that for the answer;
    /// on HTTP/1 the connection waits where it ends.
    fn forget(&self, mut incoming: Incoming) {
        if !self.is_http2 {
            return;
        }
        let reading = async move {
            let mut left = linger::MOST;
            while let Some(Ok(frame)) =
                poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)).await
            {
                let length = frame.data_ref().map_or(0, Bytes::len);
                match left.checked_sub(length) {
                    Some(rest) => left = rest,
                    None => break,
                }
            }
        };
        tokio::task::spawn_local(tokio::time::timeout(linger::LONGEST, reading));
    }

    /// What came after the body, once it has been read.
    pub(super) fn trailers(&self) -> Option<HeaderMap> {
        self.trailers.borrow().clone()
    }

    fn take(&self) -> Result<Incoming, BodyError> {
        let mut state = self.state.borrow_mut();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Arriving(incoming) => Ok(incoming),
            other => {
                *state = other;
                Err(BodyError::Taken)
            }
        }
    }

    async fn collect(&self, incoming: &mut Incoming) -> Result<Bytes, BodyError> {
        let Some(first) = self.piece(incoming).await? else {
            return Ok(Bytes::new());
        };
        // Most bodies arrive in one piece, which is passed on as it is.
        let Some(second) = self.piece(incoming).await? else {
            return Ok(first);
        };
        let mut whole = BytesMut::from(&first[..]);
        whole.extend_from_slice(&second);
        while let Some(piece) = self.piece(incoming).await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    async fn piece(&self, incoming: &mut Incoming) -> Result<Option<Bytes>, BodyError> {
        loop {
            if incoming.is_end_stream() {
                return Ok(None);
            }
            let since = self.clock.get();
            let frame = poll_fn(|context| self.poll_frame(incoming, since, context)).await;
            self.waiting.take();
            let Some(frame) = frame? else {
                return Ok(None);
            };
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return self.count(data).map(Some),
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        *self.trailers.borrow_mut() = Some(trailers);
                    }
                }
            }
        }
    }

    fn poll_frame(
        &self,
        incoming: &mut Incoming,
        since: Tick,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame<Bytes>>, BodyError>> {
        if let Some(after) = self.timed_out.get() {
            return Poll::Ready(Err(BodyError::TimedOut { after }));
        }
        match Pin::new(incoming).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(frame.transpose().map_err(|error| {
                let reason = error.to_string();
                BodyError::Incomplete { reason }
            })),
            Poll::Pending => {
                *self.waiting.borrow_mut() = Some((since, context.waker().clone()));
                Poll::Pending
            }
        }
    }

    /// Ends the wait for the next piece if it began before `since`.
    pub(super) fn time_out(&self, since: Tick, after: Duration) {
        let late = self
            .waiting
            .borrow_mut()
            .take_if(|(began, _)| *began <= since);
        if let Some((_, waker)) = late {
            self.timed_out.set(Some(after));
            waker.wake();
        }
    }

    fn count(&self, data: Bytes) -> Result<Bytes, BodyError> {
        let received = self.received.get() + data.len() as u64;
        self.received.set(received);
        match received > self.limit {
            true => Err(BodyError::TooLarge { limit: self.limit }),
            false => Ok(data),
        }
    }
}
