use std::fmt;
use std::time::Duration;

use super::borrower::{Holder, Holders};

/// Why [`Pool::borrow`](super::Pool::borrow) lent nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error<E> {
    /// All are in use, and none came back in time.
    #[error(
        "pool \"{pool}\" had no free connection within {waited:?}: {in_use} of {size} in use, {waiting} waiting{}",
        Holders(.holders)
    )]
    Exhausted {
        pool: String,
        waited: Duration,
        size: usize,
        in_use: usize,
        /// Borrowers in the queue when this one gave up, itself included.
        waiting: usize,
        /// The oldest first.
        holders: Vec<Holder>,
    },

    /// There was room, but no new connection was ready in time.
    #[error(
        "pool \"{pool}\" had no connection ready within {waited:?}: {creating} being opened for {age:?}, {failed} attempts have failed before, {in_use} of {size} in use, {waiting} waiting{}",
        LastFailure(.error)
    )]
    Slow {
        pool: String,
        waited: Duration,
        size: usize,
        in_use: usize,
        creating: usize,
        /// Since when the oldest is being opened, or in vain.
        age: Duration,
        /// Attempts in a row.
        failed: u32,
        /// Of the last of them.
        error: Option<E>,
        waiting: usize,
    },

    /// Nobody who could give a connection back can go on: they all wait for one themselves.
    #[error(
        "pool \"{pool}\" would never have a free connection: all {size} are held by tasks that wait for another one, this one included{}. \
         Use the connection that is held, or raise the size above the number of connections a task holds at a time",
        Holders(.holders)
    )]
    SelfBlocked {
        pool: String,
        size: usize,
        holders: Vec<Holder>,
    },

    /// Refused at once because the last attempts to connect have failed.
    #[error(
        "pool \"{pool}\" has no server: {error}; down for {since:?}, {attempts} attempts failed, the next is due in {retry_in:?}"
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

    /// The attempt this borrower waited for failed, or the last look at what it was to get.
    #[error("{0}")]
    Connect(E),
}

struct LastFailure<'a, E>(&'a Option<E>);

impl<E: fmt::Display> fmt::Display for LastFailure<'_, E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(error) => write!(out, "; the last one with: {error}"),
            None => Ok(()),
        }
    }
}
