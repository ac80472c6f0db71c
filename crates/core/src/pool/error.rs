use std::fmt;
use std::time::Duration;

use super::borrower::{Holder, Holders};

/// Why a borrow failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error<E> {
    /// All connections are in use, and none was returned within the borrow timeout.
    #[error(
        "pool \"{pool}\" is exhausted: {in_use} of {size} connections in use, {waiting} waiting, timed out after {waited:?}{}",
        Holders(.holders)
    )]
    Exhausted {
        pool: String,
        waited: Duration,
        size: usize,
        in_use: usize,
        /// Borrowers in the queue at the timeout, this one included.
        waiting: usize,
        /// The longest first.
        holders: Vec<Holder>,
    },

    /// The pool has room, but no new connection was ready within the borrow timeout.
    #[error(
        "pool \"{pool}\" has no connection ready after {waited:?}: {creating} connecting for {age:?}, {failed} failed attempts before, {in_use} of {size} in use, {waiting} waiting{}",
        LastFailure(.error)
    )]
    Slow {
        pool: String,
        waited: Duration,
        size: usize,
        in_use: usize,
        creating: usize,
        /// How long the oldest attempt, or the row of failed ones, has taken.
        age: Duration,
        /// Failed attempts in a row.
        failed: u32,
        /// Why the last one failed.
        error: Option<E>,
        waiting: usize,
    },

    /// A deadlock: each task that holds a connection waits for another one.
    #[error(
        "pool \"{pool}\" is deadlocked: each of the tasks that hold its {size} connections waits for another one, this task included{}. \
         Use the connection that the task holds, or make the pool larger than the number of connections a task needs at a time",
        Holders(.holders)
    )]
    SelfBlocked {
        pool: String,
        size: usize,
        holders: Vec<Holder>,
    },

    /// Refused at once, because the last attempts to connect failed.
    #[error(
        "pool \"{pool}\" cannot connect: {error}; down for {since:?}, {attempts} failed attempts, the next one in {retry_in:?}"
    )]
    Down {
        pool: String,
        error: E,
        since: Duration,
        attempts: u32,
        retry_in: Duration,
    },

    #[error("pool \"{pool}\" is closed")]
    Closed { pool: String },

    /// The connection that was opened for this borrower failed, or its borrow hook did.
    #[error("{0}")]
    Connect(E),
}

struct LastFailure<'a, E>(&'a Option<E>);

impl<E: fmt::Display> fmt::Display for LastFailure<'_, E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(error) => write!(out, "; last failure: {error}"),
            None => Ok(()),
        }
    }
}
