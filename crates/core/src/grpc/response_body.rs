use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::call::Open;
use super::web::Protocol;
use crate::http::BodyAborted;

/// A response body: the messages of a call and its trailers.
pub(super) struct ResponseBody(pub(super) Open);

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        let call = self.0.call();
        call.outbound.poll_frame(call.protocol, context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.call().outbound.is_end_stream()
    }

    /// Exact only for JSON: a body with a declared length has no trailers.
    fn size_hint(&self) -> SizeHint {
        let call = self.0.call();
        match call.outbound.remaining() {
            Some(length) if call.protocol == Protocol::Json => SizeHint::with_exact(length as u64),
            _ => SizeHint::default(),
        }
    }
}
