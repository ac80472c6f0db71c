use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body as _, Incoming};

use super::encoding::Encoding;
use super::frame::{Frame, Frames, too_large};
use super::status::{Code, Status};
use super::web::TextDecoder;
use crate::server::UNRESERVED;

/// Received messages. The sender's window grows by what is read, so that not polling is back-pressure.
#[derive(Debug)]
pub(super) struct Inbound {
    /// `None` once it has ended.
    body: Option<Incoming>,
    frames: Frames,
    encoding: Option<Encoding>,
    text: Option<TextDecoder>,
    /// The received bytes of a body that is one message.
    whole: Option<BytesMut>,
    limit: usize,
    /// The status for a broken stream.
    broken: fn(&hyper::Error) -> Status,
    is_closed: bool,
    /// Boxed, as the trailers are: most calls have neither.
    failure: Option<Box<Status>>,
    trailers: Option<Box<HeaderMap>>,
    /// Whether the last message was compressed.
    was_compressed: bool,
    /// Bytes of the body that have arrived.
    arrived: u64,
}

impl Inbound {
    /// Messages may have `limit` bytes, before and after decompression.
    pub(super) fn new(
        body: Incoming,
        encoding: Option<Encoding>,
        is_text: bool,
        limit: usize,
        broken: fn(&hyper::Error) -> Status,
    ) -> Self {
        Self {
            body: Some(body),
            frames: Frames::new(limit),
            encoding,
            text: is_text.then(TextDecoder::default),
            whole: None,
            limit,
            broken,
            is_closed: false,
            failure: None,
            trailers: None,
            was_compressed: false,
            arrived: 0,
        }
    }

    /// The whole body is one message, of `limit` bytes at most.
    pub(super) fn whole(body: Incoming, limit: usize, broken: fn(&hyper::Error) -> Status) -> Self {
        Self {
            whole: Some(BytesMut::new()),
            ..Self::new(body, None, false, limit, broken)
        }
    }

    /// Bytes of the body that have arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The next message, `None` at the end. After a failure nothing else comes.
    pub(super) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Status>> {
        let frame = ready!(self.poll_frame(context, |_| true))?;
        Poll::Ready(match frame {
            None => Ok(None),
            Some(frame) => self
                .open(frame)
                .map(Some)
                .map_err(|status| self.fail(status)),
        })
    }

    /// The same, as it was on the wire.
    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
        reserve: impl Fn(usize) -> bool,
    ) -> Poll<Result<Option<Frame>, Status>> {
        if let Some(failure) = &self.failure {
            return Poll::Ready(Err(Status::clone(failure)));
        }
        if self.is_closed {
            let status = Status::new(Code::CANCELLED, "the call has ended");
            return Poll::Ready(Err(status));
        }
        let result = ready!(self.poll_next(context, reserve));
        Poll::Ready(result.map_err(|status| self.fail(status)))
    }

    fn fail(&mut self, status: Status) -> Status {
        self.failure = Some(Box::new(status.clone()));
        self.body = None;
        status
    }

    pub(super) fn was_compressed(&self) -> bool {
        self.was_compressed
    }

    /// The trailers, once the end was read.
    pub(super) fn take_trailers(&mut self) -> HeaderMap {
        self.trailers
            .take()
            .map(|trailers| *trailers)
            .unwrap_or_default()
    }

    /// The message of a client that does not stream, once the client has ended. It stays compressed until it is taken, so that a waiting
    /// message takes no more memory than the client has sent.
    ///
    /// `reserve` reserves the bytes that the message needs, or returns false while they are not free.
    pub(super) fn poll_only_frame(
        &mut self,
        context: &mut Context<'_>,
        first: &mut Option<Frame>,
        reserve: impl Fn(usize) -> bool,
    ) -> Poll<Result<Frame, Status>> {
        loop {
            let frame = self.poll_frame(context, &reserve);
            // A second message is an error before it is complete.
            if frame.is_pending() && first.is_some() && self.frames.is_inside() {
                return Poll::Ready(Err(self.fail(cardinality("more"))));
            }
            match (ready!(frame)?, first.take()) {
                (Some(frame), None) => *first = Some(frame),
                (None, Some(frame)) => return Poll::Ready(Ok(frame)),
                (None, None) => return Poll::Ready(Err(cardinality("none"))),
                (Some(_), Some(_)) => return Poll::Ready(Err(cardinality("more"))),
            }
        }
    }

    /// Drops the body; later reads fail.
    pub(super) fn close(&mut self) {
        self.body = None;
        self.is_closed = true;
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        reserve: impl Fn(usize) -> bool,
    ) -> Poll<Result<Option<Frame>, Status>> {
        loop {
            if let Some(frame) = self.frames.next()? {
                return Poll::Ready(Ok(Some(frame)));
            }
            if !reserve(self.needed()) {
                return Poll::Pending;
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(self.end());
            };
            match ready!(Pin::new(&mut *body).poll_frame(context)) {
                None => {
                    self.body = None;
                    if let Some(whole) = self.whole.take() {
                        return Poll::Ready(Ok(Some(Frame::plain(whole.freeze()))));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Err((self.broken)(&error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        // Asking costs less than polling for the end.
                        if self.whole.is_none() && body.is_end_stream() {
                            self.body = None;
                        }
                        self.push(data)?;
                    }
                    Err(frame) => self.trailers = frame.into_trailers().ok().map(Box::new),
                },
            }
        }
    }

    /// The bytes that the message will take. A body without a length is counted with the limit.
    fn needed(&self) -> usize {
        let Some(whole) = &self.whole else {
            return self.frames.needed();
        };
        let length = self.body.as_ref().and_then(|body| body.size_hint().exact());
        match length {
            // More than the limit is never buffered.
            Some(left) => usize::try_from(left)
                .unwrap_or(usize::MAX)
                .saturating_add(whole.len())
                .min(self.limit),
            None if whole.len() > UNRESERVED / 2 => self.limit,
            None => whole.len(),
        }
    }

    fn push(&mut self, data: Bytes) -> Result<(), Status> {
        self.arrived += data.len() as u64;
        if let Some(whole) = &mut self.whole {
            let length = whole.len() + data.len();
            if length > self.limit {
                return Err(too_large(length, self.limit));
            }
            whole.extend_from_slice(&data);
            return Ok(());
        }
        let data = match &mut self.text {
            Some(text) => text.decode(&data)?,
            None => data,
        };
        self.frames.push(data);
        Ok(())
    }

    fn end(&self) -> Result<Option<Frame>, Status> {
        let is_inside =
            self.frames.is_inside() || self.text.as_ref().is_some_and(TextDecoder::is_inside);
        match is_inside {
            true => Err(Status::internal("the stream ended inside a message")),
            false => Ok(None),
        }
    }

    /// The message of a frame, decompressed.
    pub(super) fn open(&mut self, frame: Frame) -> Result<Bytes, Status> {
        self.was_compressed = frame.is_compressed;
        match (frame.is_compressed, self.encoding) {
            (false, _) => Ok(frame.payload),
            (true, Some(encoding)) => encoding.decompress(&frame.payload, self.limit),
            (true, None) => Err(Status::internal(
                "a message is marked as compressed, but the call names no grpc-encoding",
            )),
        }
    }
}

fn cardinality(how_many: &str) -> Status {
    let message = format!("the method takes exactly one message, the client sent {how_many}");
    Status::new(Code::UNIMPLEMENTED, message)
}
