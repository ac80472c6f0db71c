//! One pool for every kind of connection.
//!
//! [`Pool`] is what callers see, `inner` does the waiting, `state` is the bookkeeping: a machine without `await`, so that
//! each of its steps is indivisible on the one thread that uses it.

mod api;
mod error;
mod inner;
mod nursery;
mod state;

#[cfg(test)]
mod tests;

pub use api::{Condition, Lease, Manage, Pool, PoolOptions};
pub use error::Error;
pub use state::Stats;
