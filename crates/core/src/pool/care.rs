//! What happens to connections beside their borrowers: opening, cleaning, checking.
//!
//! Each is a task of its own whose destructor settles the books, so that room is free again however the task ends.

use std::rc::Rc;

use super::held::Held;
use super::inner::Inner;
use super::state::Room;
use super::{Condition, Manage};

/// Room claimed for a connection that is being opened; free again when the task vanishes.
pub(super) struct Claim<M: Manage> {
    pool: Option<Rc<Inner<M>>>,
    room: Room,
}

impl<M: Manage> Claim<M> {
    pub(super) fn new(pool: &Rc<Inner<M>>, room: Room) -> Self {
        Self {
            pool: Some(Rc::clone(pool)),
            room,
        }
    }

    pub(super) async fn run(mut self) {
        let Some(pool) = self.pool.clone() else {
            return;
        };
        let outcome = tokio::time::timeout(pool.create_timeout(), pool.manager.connect()).await;
        self.pool = None;
        match outcome {
            Ok(outcome) => pool.connected(self.room, outcome.map_err(Some)),
            Err(_) => pool.connected(self.room, Err(None)),
        }
    }
}

impl<M: Manage> Drop for Claim<M> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.connected(self.room, Err(None));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It came back dirty.
    Recovery,
    /// Nobody has heard from it for long.
    Check,
}

/// A connection being cleaned or checked; its room is free again when the task vanishes.
pub(super) struct Care<M: Manage> {
    pool: Option<Rc<Inner<M>>>,
    kind: Kind,
}

impl<M: Manage> Care<M> {
    pub(super) fn new(pool: &Rc<Inner<M>>, kind: Kind) -> Self {
        Self {
            pool: Some(Rc::clone(pool)),
            kind,
        }
    }

    pub(super) async fn run(mut self, held: Held<M::Connection>) {
        let Some(pool) = self.pool.clone() else {
            return;
        };
        let (mut connection, held_again) = held.split();
        let terminate = match self.kind {
            Kind::Recovery => pool.manager.terminate(&mut connection),
            Kind::Check => None,
        };
        let cared = tokio::time::timeout(pool.limit(self.kind), async {
            match self.kind {
                Kind::Recovery => pool.manager.recover(connection).await,
                Kind::Check => pool.manager.validate(connection).await,
            }
        });
        let cared = cared.await;
        if let (Err(_), Some(terminate)) = (&cared, terminate) {
            // A task of its own: the room of the connection is free at once, and no timeout of the pool ends it halfway.
            pool.nursery.spawn(terminate);
        }
        let outcome = cared.ok().flatten();
        self.pool = None;
        // What is still dirty now would be cleaned for ever.
        let healthy =
            outcome.and_then(
                |mut connection| match pool.manager.condition(&mut connection) {
                    Condition::Clean => Some(held_again(connection)),
                    Condition::Dirty | Condition::Broken => {
                        pool.manager.close(connection);
                        None
                    }
                },
            );
        pool.cared_for(healthy, self.kind);
    }
}

impl<M: Manage> Drop for Care<M> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.cared_for(None, self.kind);
        }
    }
}
