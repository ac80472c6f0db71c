//! The jobs of SQLite's threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::reply_queue::Reply;
use crate::sql::{Error, Statement};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The id of a job or a transaction; unique and not 0.
pub(super) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

pub(super) enum Job {
    Unit(Unit),
    Begin(Command),
    /// Answered after all jobs that were queued before it.
    Marker(Reply),
}

/// A job that commits or fails as a whole, without interaction.
pub(super) struct Unit {
    pub work: Work,
    pub reply: Reply,
    pub queued: Instant,
}

impl Unit {
    pub(super) fn new(work: Work, reply: Reply) -> Self {
        Self {
            work,
            reply,
            queued: Instant::now(),
        }
    }
}

pub(super) enum Work {
    One(Statement),
    Transaction(Vec<Statement>),
}

/// The next part of an interactive transaction.
pub(super) struct Command {
    pub session: u64,
    pub statements: Vec<Statement>,
    pub then: Then,
    /// `None` if the waiter was dropped.
    pub reply: Option<Reply>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Continue,
    Commit,
    Rollback,
}

pub(super) struct Watcher {
    /// The number of commits by others that its owner knows.
    pub seen: u64,
    pub reply: Reply,
}

pub(super) struct Read {
    pub statement: Statement,
    pub reply: Reply,
}

impl Job {
    pub(super) fn id(&self) -> Option<u64> {
        match self {
            Self::Unit(unit) => Some(unit.reply.id),
            Self::Begin(command) => command.reply.as_ref().map(|reply| reply.id),
            Self::Marker(reply) => Some(reply.id),
        }
    }

    pub(super) fn fail(self, error: Error) {
        match self {
            Self::Unit(unit) => unit.reply.fail(error),
            Self::Marker(reply) => reply.fail(error),
            Self::Begin(command) => {
                if let Some(reply) = command.reply {
                    reply.fail(error);
                }
            }
        }
    }
}
