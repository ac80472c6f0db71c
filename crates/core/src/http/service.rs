use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response};

use super::body::Body;
use super::peer::Peer;

/// The future of a [`Service`]'s response.
pub type ServiceFuture = Pin<Box<dyn Future<Output = Response<Body>>>>;

/// Answers requests of another protocol that shares the server's connections, such as gRPC.
///
/// The service gets hyper's own request. Polling the [`Incoming`] body yields data and trailers frames; on HTTP/2 the client's window
/// grows by what was polled, so that not polling is back-pressure. [`Body::stream`] responds chunk by chunk, with trailers. The future
/// is dropped when the client resets the stream or disconnects.
pub trait Service {
    /// Whether a request, judged by its head, is for this service.
    fn takes(&self, request: &Request<Incoming>) -> bool;

    /// How long an HTTP/2 client may read nothing of its responses before its connection is closed; `None` is unlimited.
    fn write_timeout(&self) -> Option<Duration>;

    fn call(&self, request: Request<Incoming>, peer: Rc<Peer>) -> ServiceFuture;
}
