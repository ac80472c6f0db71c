use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body as _, Frame, Incoming};

use super::clock::{Clock, Tick, ticks};

/// Bodies up to this size are read before their handler starts.
pub(super) const SMALL: u64 = 64 << 10;
const TICKS_PER_SECOND: u64 = 4;
/// How long a client that has its response may continue to send an unread body.
pub(super) const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of such a body that are received and discarded.
pub(super) const DISCARD_BYTES: usize = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the request body has more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the request body ended before it was complete: {reason}")]
    Incomplete { reason: String },
    #[error("the next chunk of the request body did not arrive within {} seconds", .after.as_secs_f64())]
    TimedOut { after: Duration },
    #[error("the request body arrived at less than {rate} bytes per second")]
    TooSlow { rate: u32 },
    #[error("the request body was read before, or is being read by another task")]
    Taken,
}

/// The slowest rate at which a client may send a body. Only time during which a reader waits counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyRate {
    /// Between two chunks; also the time that a client has in addition to `rate`.
    pub(super) timeout: Duration,
    /// Bytes per second on average.
    pub(super) rate: Option<u32>,
}

/// A request body. It is read on demand, and at most once.
///
/// Chunks that have arrived stay here until they are returned, so that a cancelled read loses nothing and the next one continues.
pub(super) struct RequestBody {
    state: RefCell<State>,
    /// Chunks that a read of the whole body has collected.
    collected: RefCell<Collected>,
    limit: u64,
    received: Cell<u64>,
    trailers: RefCell<Option<HeaderMap>>,
    is_http2: bool,
    is_being_read: Cell<bool>,
    clock: Rc<Clock>,
    /// Since when a reader waits for the next chunk, and its waker.
    waiting: RefCell<Option<(Tick, Waker)>>,
    /// How long readers have waited before that.
    waited: Cell<Tick>,
    late: RefCell<Option<BodyError>>,
}

/// The body of a request without one, which many requests may share.
impl Default for RequestBody {
    fn default() -> Self {
        Self {
            state: RefCell::new(State::Whole(Bytes::new())),
            collected: RefCell::default(),
            limit: 0,
            received: Cell::default(),
            trailers: RefCell::default(),
            is_http2: false,
            is_being_read: Cell::default(),
            clock: Rc::default(),
            waiting: RefCell::default(),
            waited: Cell::default(),
            late: RefCell::default(),
        }
    }
}

enum State {
    Whole(Bytes),
    Arriving(Incoming),
    Failed(BodyError),
}

/// Most bodies arrive in one chunk, which is passed on without a copy.
#[derive(Default)]
struct Collected {
    first: Bytes,
    /// `first` and all that followed it, once there is more.
    all: BytesMut,
}

impl Collected {
    fn push(&mut self, chunk: Bytes) {
        if self.first.is_empty() && self.all.is_empty() {
            self.first = chunk;
            return;
        }
        self.all.extend_from_slice(&std::mem::take(&mut self.first));
        self.all.extend_from_slice(&chunk);
    }

    fn take(&mut self) -> Bytes {
        let Self { first, all } = std::mem::take(self);
        match first.is_empty() {
            true => all.freeze(),
            false => first,
        }
    }
}

/// The only reader of a body. After its drop another reader continues.
struct Reader<'a>(&'a RequestBody);

impl<'a> Reader<'a> {
    fn of(body: &'a RequestBody) -> Result<Self, BodyError> {
        match body.is_being_read.replace(true) {
            true => Err(BodyError::Taken),
            false => Ok(Self(body)),
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.0.is_being_read.set(false);
        self.0.stop_waiting();
    }
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming, is_http2: bool, limit: u64, clock: Rc<Clock>) -> Self {
        Self {
            state: RefCell::new(State::Arriving(incoming)),
            limit,
            is_http2,
            clock,
            ..Self::default()
        }
    }

    /// Whether the declared length exceeds the limit.
    pub(super) fn is_declared_too_large(&self) -> bool {
        match &*self.state.borrow() {
            State::Arriving(incoming) => incoming.size_hint().lower() > self.limit,
            _ => false,
        }
    }

    /// Whether the body is read before the handler starts.
    pub(super) fn is_small(&self) -> bool {
        match &*self.state.borrow() {
            State::Arriving(incoming) => incoming
                .size_hint()
                .exact()
                .is_some_and(|size| size <= SMALL),
            _ => false,
        }
    }

    /// The whole body if it has arrived. May be called any number of times.
    pub(super) fn whole(&self) -> Option<Result<Bytes, BodyError>> {
        match &*self.state.borrow() {
            State::Whole(bytes) => Some(Ok(bytes.clone())),
            State::Failed(error) => Some(Err(error.clone())),
            State::Arriving(_) if self.is_being_read.get() => Some(Err(BodyError::Taken)),
            State::Arriving(_) => None,
        }
    }

    /// Reads to the end. A cancelled read keeps what has arrived for the next one.
    pub(super) async fn read(self: Rc<Self>) -> Result<Bytes, BodyError> {
        if let Some(whole) = self.whole() {
            return whole;
        }
        let _reader = Reader::of(&self)?;
        poll_fn(|context| self.poll_whole(context)).await
    }

    /// The next chunk, empty at the end. A cancelled read loses nothing.
    pub(super) async fn next(self: Rc<Self>) -> Result<Bytes, BodyError> {
        match self.whole() {
            Some(Ok(bytes)) => {
                *self.state.borrow_mut() = State::Whole(Bytes::new());
                return Ok(bytes);
            }
            Some(Err(error)) => return Err(error),
            None => {}
        }
        let _reader = Reader::of(&self)?;
        let collected = self.collected.borrow_mut().take();
        if !collected.is_empty() {
            return Ok(collected);
        }
        let chunk = poll_fn(|context| self.poll_chunk(context)).await?;
        if chunk.is_none() {
            *self.state.borrow_mut() = State::Whole(Bytes::new());
        }
        Ok(chunk.unwrap_or_default())
    }

    /// The whole body, for its only reader.
    pub(super) fn poll_whole(&self, context: &mut Context<'_>) -> Poll<Result<Bytes, BodyError>> {
        while let Some(chunk) = ready!(self.poll_chunk(context))? {
            self.collected.borrow_mut().push(chunk);
        }
        let whole = self.collected.borrow_mut().take();
        *self.state.borrow_mut() = State::Whole(whole.clone());
        Poll::Ready(Ok(whole))
    }

    /// The body will not be read.
    pub(super) fn refuse(&self) {
        self.fail(BodyError::Taken);
    }

    /// A part of the body was read and lost, so that the rest is useless.
    pub(super) fn invalidate(&self) {
        let mut state = self.state.borrow_mut();
        if let State::Arriving(_) = *state {
            *state = State::Failed(BodyError::Taken);
        }
    }

    fn fail(&self, error: BodyError) {
        let is_forgotten = matches!(error, BodyError::TooLarge { .. } | BodyError::Taken);
        let state = self.state.replace(State::Failed(error));
        if let State::Arriving(incoming) = state
            && is_forgotten
        {
            self.forget(incoming);
        }
    }

    /// Discards the rest of a body that is too large, for a while. HTTP/2 would reset the stream, which some clients take for the
    /// response. HTTP/1 has its lingering close.
    fn forget(&self, mut incoming: Incoming) {
        if !self.is_http2 {
            return;
        }
        let reading = async move {
            let mut left = DISCARD_BYTES;
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
        tokio::task::spawn_local(tokio::time::timeout(DISCARD_TIMEOUT, reading));
    }

    /// The trailer fields, once the body has been read.
    pub(super) fn trailers(&self) -> Option<HeaderMap> {
        self.trailers.borrow().clone()
    }

    fn poll_chunk(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        let chunk = ready!(self.poll_data(context));
        if let Err(error) = &chunk {
            self.fail(error.clone());
        }
        Poll::Ready(chunk)
    }

    fn poll_data(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        while let Some(frame) = ready!(self.poll_frame(context))? {
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Poll::Ready(self.count(data).map(Some)),
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        *self.trailers.borrow_mut() = Some(trailers);
                    }
                }
            }
        }
        Poll::Ready(Ok(None))
    }

    fn poll_frame(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame<Bytes>>, BodyError>> {
        let mut state = self.state.borrow_mut();
        let State::Arriving(incoming) = &mut *state else {
            return Poll::Ready(Err(BodyError::Taken));
        };
        if incoming.is_end_stream() {
            return Poll::Ready(Ok(None));
        }
        if let Some(error) = self.late.take() {
            return Poll::Ready(Err(error));
        }
        match Pin::new(incoming).poll_frame(context) {
            Poll::Ready(frame) => {
                self.stop_waiting();
                Poll::Ready(frame.transpose().map_err(|error| {
                    let reason = error.to_string();
                    BodyError::Incomplete { reason }
                }))
            }
            Poll::Pending => {
                self.wait(context.waker());
                Poll::Pending
            }
        }
    }

    fn wait(&self, waker: &Waker) {
        let mut waiting = self.waiting.borrow_mut();
        match &mut *waiting {
            Some((_, known)) => known.clone_from(waker),
            None => *waiting = Some((self.clock.get(), waker.clone())),
        }
    }

    fn stop_waiting(&self) {
        if let Some((since, _)) = self.waiting.take() {
            let waited = self.waited.get() + (self.clock.get() - since);
            self.waited.set(waited);
        }
    }

    /// Fails a reader whose client sends too slowly.
    pub(super) fn enforce_rate(&self, limit: BodyRate) {
        let waiting = self.waiting.borrow();
        let Some((since, waker)) = &*waiting else {
            return;
        };
        let silent = self.clock.get() - since;
        let error = if silent >= ticks(limit.timeout) {
            BodyError::TimedOut {
                after: limit.timeout,
            }
        } else if let Some(rate) = limit.rate
            && u64::from(self.waited.get() + silent) >= self.allowance(limit.timeout, rate)
        {
            BodyError::TooSlow { rate }
        } else {
            return;
        };
        *self.late.borrow_mut() = Some(error);
        waker.wake_by_ref();
    }

    /// Ticks that readers may have waited for the bytes received so far.
    fn allowance(&self, timeout: Duration, rate: u32) -> u64 {
        let at_rate = self.received.get() * TICKS_PER_SECOND / u64::from(rate.max(1));
        u64::from(ticks(timeout)) + at_rate
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
