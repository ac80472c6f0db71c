//! One pool for every kind of connection.
//!
//! [`Pool`] is the public handle. `state` is the bookkeeping: a state machine without `await`, each call of which is atomic
//! and is passed the time, so a model test explores it. `inner` joins it to the [`Manage`] implementation: `acquire` borrows,
//! `maintenance` opens, cleans and validates connections, and `reaper` does the periodic work.

mod acquire;
mod backoff;
mod borrower;
mod conn;
mod error;
mod handle;
mod inner;
mod lease;
mod leases;
mod maintenance;
mod manage;
mod metrics;
mod oneshot;
mod options;
mod reaper;
mod socket_check;
mod spawner;
mod state;
mod stats;

#[cfg(test)]
mod tests;

pub use acquire::{OnAcquired, Queued};
pub use borrower::{Borrower, Holder};
pub use error::Error;
pub use handle::Pool;
pub use lease::Lease;
pub use manage::{Condition, Manage};
pub use options::PoolOptions;
pub use stats::{Histogram, Stats};
