use std::any::Any;
use std::cell::OnceCell;
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

/// What a [`Service`] keeps for a connection: one value of a type that only the service knows.
#[derive(Debug, Default)]
pub(crate) struct ServiceState(OnceCell<Rc<dyn Any>>);

impl ServiceState {
    /// The value, made when it is first asked for. With another type than before it is one that nobody else sees.
    pub(crate) fn get_or_default<T: Default + 'static>(&self) -> Rc<T> {
        let state = self.0.get_or_init(|| Rc::new(T::default()));
        Rc::clone(state).downcast().unwrap_or_default()
    }
}
