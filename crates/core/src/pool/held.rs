//! A connection with what the pool knows about it.

use tokio::time::Instant;

use super::loans::LoanId;

#[derive(Debug)]
pub(super) struct Held<C> {
    pub(super) connection: C,
    pub(super) vitals: Vitals,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Vitals {
    pub(super) expires: Option<Instant>,
    /// When it was last heard of.
    pub(super) seen: Instant,
    /// When it became idle.
    pub(super) idle_since: Instant,
    /// Connections of earlier generations are not kept.
    pub(super) generation: u64,
}

/// A connection on loan.
#[derive(Debug)]
pub(super) struct Parcel<C> {
    pub(super) held: Held<C>,
    pub(super) loan: LoanId,
}

impl Vitals {
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}

impl<C> Parcel<C> {
    pub(super) fn connection(&mut self) -> &mut C {
        &mut self.held.connection
    }
}

impl<C> Held<C> {
    /// Passes the connection through care.
    pub(super) fn split(self) -> (C, impl FnOnce(C) -> Held<C>) {
        let vitals = self.vitals;
        (self.connection, move |connection| Held {
            connection,
            vitals,
        })
    }
}
