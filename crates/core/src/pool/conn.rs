//! A connection with what the pool knows about it.

use tokio::time::Instant;

use super::leases::LeaseId;

#[derive(Debug)]
pub(super) struct Conn<C> {
    pub(super) connection: C,
    pub(super) meta: ConnMeta,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ConnMeta {
    pub(super) expires_at: Option<Instant>,
    /// When the server answered last.
    pub(super) last_seen: Instant,
    pub(super) idle_since: Instant,
    /// Connections of earlier generations are closed instead of being lent again.
    pub(super) generation: u64,
}

/// A connection that is lent.
#[derive(Debug)]
pub(super) struct Checkout<C> {
    pub(super) conn: Conn<C>,
    pub(super) lease: LeaseId,
}

impl ConnMeta {
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.expires_at.is_some_and(|expires_at| now >= expires_at)
    }
}

impl<C> Checkout<C> {
    pub(super) fn connection(&mut self) -> &mut C {
        &mut self.conn.connection
    }
}

impl<C> Conn<C> {
    /// Takes the connection out; the function puts it back together.
    pub(super) fn split(self) -> (C, impl FnOnce(C) -> Conn<C>) {
        let meta = self.meta;
        (self.connection, move |connection| Conn { connection, meta })
    }
}
