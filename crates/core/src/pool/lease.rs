use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;

use super::Manage;
use super::conn::Checkout;
use super::inner::Inner;

/// The right to use one connection. Dropping it returns the connection to the pool.
///
/// A lease cannot be cloned, so a connection is returned once and is never used afterwards.
pub struct Lease<M: Manage> {
    /// `None` only inside `drop`.
    checkout: Option<Checkout<M::Connection>>,
    pool: Rc<Inner<M>>,
}

impl<M: Manage> Lease<M> {
    pub(super) fn new(pool: &Rc<Inner<M>>, checkout: Checkout<M::Connection>) -> Self {
        Self {
            checkout: Some(checkout),
            pool: Rc::clone(pool),
        }
    }

    /// Sets the statement that error messages and leak reports show for this lease.
    pub fn set_statement(&self, statement: &Arc<str>) {
        if let Some(checkout) = &self.checkout {
            let mut state = self.pool.state.borrow_mut();
            state.set_statement(checkout.lease, statement);
        }
    }

    /// Separates the lease from its task: the task may borrow another connection without counting as one that waits for itself.
    pub fn disown(&self) {
        if let Some(checkout) = &self.checkout {
            self.pool.state.borrow_mut().disown(checkout.lease);
        }
    }

    /// Closes the connection instead of returning it.
    pub fn discard(mut self) {
        if let Some(checkout) = self.checkout.take() {
            self.pool.discard(checkout);
        }
    }
}

impl<M: Manage> Deref for Lease<M> {
    type Target = M::Connection;

    fn deref(&self) -> &Self::Target {
        match &self.checkout {
            Some(checkout) => &checkout.conn.connection,
            None => unreachable!("a lease holds its connection until it is dropped"),
        }
    }
}

impl<M: Manage> DerefMut for Lease<M> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.checkout {
            Some(checkout) => &mut checkout.conn.connection,
            None => unreachable!("a lease holds its connection until it is dropped"),
        }
    }
}

impl<M: Manage> Drop for Lease<M> {
    fn drop(&mut self) {
        if let Some(checkout) = self.checkout.take() {
            self.pool.check_in(checkout);
        }
    }
}
