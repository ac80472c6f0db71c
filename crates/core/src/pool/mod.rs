//! One pool for every kind of connection.
//!
//! [`Pool`] is what callers see, `inner` does the waiting, `state` is the bookkeeping: a machine without `await`, so that
//! each of its steps is indivisible on the one thread that uses it, and which is told the time, so that a model can explore
//! it. `care` and `upkeep` are what happens beside the borrowers.

mod api;
mod borrower;
mod care;
mod delivery;
mod error;
mod held;
mod histogram;
mod inner;
mod loans;
mod manage;
mod nursery;
mod options;
mod outage;
mod place;
mod published;
mod state;
mod stats;
mod upkeep;

#[cfg(test)]
mod bugs;
#[cfg(test)]
mod cancellation;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use api::{Lease, Pool};
pub use borrower::{Borrower, Holder};
pub use error::Error;
pub use histogram::Histogram;
pub use manage::{Condition, Manage};
pub use options::PoolOptions;
pub use place::{Delivered, Queued};
pub use stats::Stats;
