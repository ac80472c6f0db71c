use std::pin::Pin;
use std::rc::Rc;

use hyper::body::Incoming;
use hyper::{Request, Response};

use super::body::Body;
use super::connection::Peer;

/// The answer of a [`Service`], on its way.
pub type ServiceFuture = Pin<Box<dyn Future<Output = Response<Body>>>>;

/// Answers requests of another protocol that shares the server's connections, such as gRPC.
///
/// It gets hyper's own request: polling the [`Incoming`] body gives data and trailers frames, and on HTTP/2 the client's
/// window grows by what has been polled, so that not polling is back-pressure. [`Body::stream`] answers piece by piece, with
/// trailers. The future is dropped when the client resets the stream or goes away.
pub trait Service {
    /// Whether a request is for this service, by its head alone.
    fn takes(&self, request: &Request<Incoming>) -> bool;

    fn call(&self, request: Request<Incoming>, peer: Rc<Peer>) -> ServiceFuture;
}
