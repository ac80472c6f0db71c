use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use crate::grpc::outbound::Outbound;
use crate::grpc::web::Protocol;
use crate::http::BodyAborted;

/// A call whose messages are sent.
pub(super) trait Uploader {
    fn outbound(&self) -> &Outbound;

    /// The connection takes no more messages.
    fn upload_ended(&self);
}

/// The body of a request: the messages of a call.
pub(super) struct Upload(pub(super) Rc<dyn Uploader>);

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.upload_ended();
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        self.0.outbound().poll_frame(Protocol::Grpc, context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.outbound().is_end_stream()
    }
}
