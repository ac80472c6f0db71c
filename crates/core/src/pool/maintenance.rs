//! Opening, cleaning and validating connections, each in a task of its own.
//!
//! The destructor of each task updates the bookkeeping, so the connection's room is free again however the task ends.

use std::rc::Rc;

use tokio::time::Instant;

use super::conn::Conn;
use super::inner::Inner;
use super::options::enabled;
use super::state::{ConnectSlot, IdleCheck};
use super::{Condition, Manage};

impl<M: Manage> Inner<M> {
    /// Validates idle connections and opens new ones while borrowers wait for them and there is room.
    pub(super) fn replenish(self: &Rc<Self>) {
        let now = Instant::now();
        loop {
            let check = self.state.borrow_mut().next_validation(now);
            match check {
                Some(IdleCheck::Validate(conn)) => self.validate(conn),
                Some(IdleCheck::Expired(connection)) => self.close_connections(Some(connection)),
                None => break,
            }
        }
        loop {
            let slot = self.state.borrow_mut().claim_connect(now);
            let Some(slot) = slot else { break };
            self.spawner.spawn(Connecting::new(self, slot).run());
        }
        let mut state = self.state.borrow_mut();
        state.fail_stranded(now);
        let retry_at = state.retry_at(now);
        drop(state);
        if let Some(at) = retry_at
            && let Some(running) = self.retry_timer.start()
        {
            let pool = Rc::downgrade(self);
            self.spawner.spawn(async move {
                tokio::time::sleep_until(at).await;
                drop(running);
                if let Some(pool) = pool.upgrade() {
                    pool.replenish();
                }
            });
        }
    }

    fn finish_connect(
        self: &Rc<Self>,
        slot: ConnectSlot,
        outcome: Result<M::Connection, Option<M::Error>>,
    ) {
        let now = Instant::now();
        let surplus = match outcome {
            Ok(connection) => self.state.borrow_mut().connected(slot, connection, now),
            Err(error) => {
                let is_down = error
                    .as_ref()
                    .is_some_and(|error| self.manager.is_down(error));
                self.state
                    .borrow_mut()
                    .connect_failed(slot, error, is_down, now);
                None
            }
        };
        self.close_connections(surplus);
        self.replenish();
        self.state.borrow_mut().fail_unserved(now);
    }

    /// Cleans a connection that was returned dirty.
    pub(super) fn recover(self: &Rc<Self>, conn: Conn<M::Connection>) {
        let task = Maintenance::new(self, Kind::Recovery);
        self.spawner.spawn(task.run(conn));
    }

    /// Checks with a round trip whether an idle connection works.
    pub(super) fn validate(self: &Rc<Self>, conn: Conn<M::Connection>) {
        let task = Maintenance::new(self, Kind::Validation);
        self.spawner.spawn(task.run(conn));
    }

    fn finish_maintenance(self: &Rc<Self>, healthy: Option<Conn<M::Connection>>, kind: Kind) {
        let was_validated = kind == Kind::Validation;
        let now = Instant::now();
        let surplus = match healthy {
            Some(conn) => self
                .state
                .borrow_mut()
                .finish_maintenance(conn, was_validated, now),
            None => {
                self.state.borrow_mut().fail_maintenance(was_validated);
                None
            }
        };
        self.close_connections(surplus);
        self.replenish();
        self.state.borrow_mut().fail_unserved(now);
    }
}

/// Opens one connection. Dropping it frees the claimed room.
struct Connecting<M: Manage> {
    pool: Option<Rc<Inner<M>>>,
    slot: ConnectSlot,
}

impl<M: Manage> Connecting<M> {
    fn new(pool: &Rc<Inner<M>>, slot: ConnectSlot) -> Self {
        Self {
            pool: Some(Rc::clone(pool)),
            slot,
        }
    }

    async fn run(mut self) {
        let Some(pool) = self.pool.clone() else {
            return;
        };
        let limit = enabled(pool.state.borrow().options().create_timeout);
        let connect = pool.manager.connect();
        let outcome = match limit {
            Some(limit) => tokio::time::timeout(limit, connect).await.ok(),
            None => Some(connect.await),
        };
        self.pool = None;
        match outcome {
            Some(outcome) => pool.finish_connect(self.slot, outcome.map_err(Some)),
            None => pool.finish_connect(self.slot, Err(None)),
        }
    }
}

impl<M: Manage> Drop for Connecting<M> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.finish_connect(self.slot, Err(None));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Cleans a connection that was returned dirty.
    Recovery,
    /// Validates a connection that was idle for long.
    Validation,
}

/// Cleans or validates one connection. Dropping it frees the connection's room.
struct Maintenance<M: Manage> {
    pool: Option<Rc<Inner<M>>>,
    kind: Kind,
}

impl<M: Manage> Maintenance<M> {
    fn new(pool: &Rc<Inner<M>>, kind: Kind) -> Self {
        Self {
            pool: Some(Rc::clone(pool)),
            kind,
        }
    }

    async fn run(mut self, conn: Conn<M::Connection>) {
        let Some(pool) = self.pool.clone() else {
            return;
        };
        let (mut connection, rejoin) = conn.split();
        let (limit, terminate) = {
            let state = pool.state.borrow();
            match self.kind {
                Kind::Recovery => (
                    state.options().return_timeout,
                    pool.manager.terminate(&mut connection),
                ),
                Kind::Validation => (state.options().validation_timeout, None),
            }
        };
        let work = tokio::time::timeout(limit, async {
            match self.kind {
                Kind::Recovery => pool.manager.recover(connection).await,
                Kind::Validation => pool.manager.validate(connection).await,
            }
        });
        let outcome = work.await;
        if let (Err(_), Some(terminate)) = (&outcome, terminate) {
            // A task of its own: the connection's room is free at once, and no timeout of the pool interrupts it.
            pool.spawner.spawn(terminate);
        }
        self.pool = None;
        // A connection that is still dirty is closed instead of cleaned again.
        let healthy = outcome.ok().flatten().and_then(|mut connection| {
            match pool.manager.condition(&mut connection) {
                Condition::Clean => Some(rejoin(connection)),
                Condition::Dirty | Condition::Broken => {
                    pool.manager.close(connection);
                    None
                }
            }
        });
        pool.finish_maintenance(healthy, self.kind);
    }
}

impl<M: Manage> Drop for Maintenance<M> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.finish_maintenance(None, self.kind);
        }
    }
}
