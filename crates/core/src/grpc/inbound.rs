use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body as _, Incoming};

use super::encoding::Encoding;
use super::frame::{Frame, Frames, too_large};
use super::status::{Code, Status};
use super::web::TextDecoder;

/// The messages of the other side. Its window grows by what is taken from here: not polling is back-pressure.
#[derive(Debug)]
pub(super) struct Inbound {
    /// `None` once it has ended.
    body: Option<Incoming>,
    frames: Frames,
    encoding: Option<Encoding>,
    text: Option<TextDecoder>,
    /// What has arrived of a body that is one message.
    whole: Option<BytesMut>,
    limit: usize,
    /// What it is to the call when the stream breaks.
    broken: fn(&hyper::Error) -> Status,
    failure: Option<Status>,
    trailers: Option<HeaderMap>,
    /// The last message that was taken.
    was_compressed: bool,
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
            failure: None,
            trailers: None,
            was_compressed: false,
        }
    }

    /// The whole body is one message, of `limit` bytes at most.
    pub(super) fn whole(body: Incoming, limit: usize, broken: fn(&hyper::Error) -> Status) -> Self {
        Self {
            whole: Some(BytesMut::new()),
            ..Self::new(body, None, false, limit, broken)
        }
    }

    /// The next message, `None` at the end. After a failure nothing else comes.
    pub(super) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Status>> {
        if let Some(failure) = &self.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        let result = ready!(self.poll_next(context));
        if let Err(failure) = &result {
            self.failure = Some(failure.clone());
            self.body = None;
        }
        Poll::Ready(result)
    }

    pub(super) fn was_compressed(&self) -> bool {
        self.was_compressed
    }

    /// What followed the messages, once their end was read.
    pub(super) fn take_trailers(&mut self) -> HeaderMap {
        self.trailers.take().unwrap_or_default()
    }

    /// The one message of a call whose client does not stream, once the client has ended.
    pub(super) fn poll_only_message(
        &mut self,
        context: &mut Context<'_>,
        first: &mut Option<Bytes>,
    ) -> Poll<Result<Bytes, Status>> {
        loop {
            match (ready!(self.poll_message(context))?, first.is_some()) {
                (Some(message), false) => *first = Some(message),
                (None, true) => return Poll::Ready(Ok(first.take().unwrap_or_default())),
                (None, false) => return Poll::Ready(Err(cardinality("none"))),
                (Some(_), true) => return Poll::Ready(Err(cardinality("more"))),
            }
        }
    }

    /// Nobody will read any more: what has not arrived is refused.
    pub(super) fn close(&mut self) {
        self.body = None;
        let ended = || Status::new(Code::CANCELLED, "the call has ended");
        self.failure.get_or_insert_with(ended);
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        loop {
            if let Some(frame) = self.frames.next()? {
                return Poll::Ready(self.open(frame).map(Some));
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(self.end());
            };
            match ready!(Pin::new(body).poll_frame(context)) {
                None => {
                    self.body = None;
                    if let Some(whole) = self.whole.take() {
                        return Poll::Ready(Ok(Some(whole.freeze())));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Err((self.broken)(&error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.push(data)?,
                    Err(frame) => self.trailers = frame.into_trailers().ok(),
                },
            }
        }
    }

    fn push(&mut self, data: Bytes) -> Result<(), Status> {
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

    fn end(&self) -> Result<Option<Bytes>, Status> {
        let is_inside =
            self.frames.is_inside() || self.text.as_ref().is_some_and(TextDecoder::is_inside);
        match is_inside {
            true => Err(Status::internal("the stream ended inside a message")),
            false => Ok(None),
        }
    }

    fn open(&mut self, frame: Frame) -> Result<Bytes, Status> {
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
