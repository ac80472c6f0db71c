use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::delivery::{Arrival, Receiver};
use super::held::Parcel;
use super::inner::Inner;
use super::state::{Delivery, Ticket};
use super::{Error, Lease, Manage};

/// A place in the queue. Leaving it early passes on what was delivered in the last moment.
pub(super) struct Place<M: Manage> {
    pool: Rc<Inner<M>>,
    ticket: Ticket,
    delivery: Receiver<Delivery<M::Connection, M::Error>>,
}

impl<M: Manage> Place<M> {
    pub(super) fn new(
        pool: &Rc<Inner<M>>,
        ticket: Ticket,
        delivery: Receiver<Delivery<M::Connection, M::Error>>,
    ) -> Self {
        Self {
            pool: Rc::clone(pool),
            ticket,
            delivery,
        }
    }

    pub(super) fn has_arrived(&self) -> bool {
        self.delivery.has_arrived()
    }
}

impl<M: Manage> Future for Place<M> {
    type Output = Result<Parcel<M::Connection>, Error<M::Error>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.delivery.poll(context)
    }
}

impl<M: Manage> Drop for Place<M> {
    fn drop(&mut self) {
        if self.delivery.is_awaited() {
            self.pool.state.borrow_mut().forget(self.ticket);
        } else if let Some(Ok(parcel)) = self.delivery.take() {
            self.pool.take_back(parcel);
        }
    }
}

/// A place in the queue that is held by no task. Dropping it leaves the queue.
pub struct Queued<M: Manage>(Place<M>);

/// What [`Queued`] waits for, to be handed to a call.
pub struct Delivered<M: Manage> {
    pool: Rc<Inner<M>>,
    arrival: Arrival<Delivery<M::Connection, M::Error>>,
}

impl<M: Manage> Queued<M> {
    pub(super) fn new(place: Place<M>) -> Self {
        Self(place)
    }

    pub fn delivered(&self) -> Delivered<M> {
        Delivered {
            pool: Rc::clone(&self.0.pool),
            arrival: self.0.delivery.arrival(),
        }
    }
}

impl<M: Manage> Delivered<M> {
    /// `call` is made once, perhaps at once, and never after the place was left. It must neither use the pool nor drop the
    /// lease.
    pub fn to(self, call: impl FnOnce(Result<Lease<M>, Error<M::Error>>) + 'static) {
        let pool = self.pool;
        self.arrival
            .then(move |delivery| call(delivery.map(|parcel| Lease::new(&pool, parcel))));
    }
}
