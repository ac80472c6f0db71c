use std::time::Duration;

/// Why [`Pool::borrow`](super::Pool::borrow) lent nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error<E> {
    #[error(
        "pool \"{pool}\" had no free connection within {waited:?}: {in_use} of {size} in use, {waiting} waiting"
    )]
    Exhausted {
        pool: String,
        waited: Duration,
        size: usize,
        in_use: usize,
        /// Borrowers in the queue when this one gave up, itself included.
        waiting: usize,
    },

    #[error("pool \"{pool}\" is closed")]
    Closed { pool: String },

    #[error("{0}")]
    Connect(E),
}
