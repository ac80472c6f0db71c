//! Admission and life cycle of requests, for every protocol that is served.
//!
//! [`State`](state::State) decides: which connections and requests are accepted, which wait, whose handler starts next, what has
//! expired, and when the server is drained. It is a state machine without `await`, cells or wakers and is told the time, so that a
//! model explores it with a random scheduler. [`Admission`] is the shell around it that protocols use: it wakes tasks and hands
//! [actions](Action) to the requests they are for. Places are held by guards, [`ConnectionGuard`] and [`RequestGuard`], whose drop
//! gives them back at any point.

mod admission;
mod capacity;
mod queue;
mod refusal;
mod refusals;
mod slab;
mod state;
mod timers;

pub(crate) use admission::{Admission, ConnectionGuard, RequestGuard, Requester};
pub use capacity::ConcurrencyLimits;
pub(crate) use capacity::{Capacity, LaneLimits};
pub(crate) use refusal::{ReachedLimit, Refusal, Scope};
pub use refusals::RefusalReport;
pub(crate) use refusals::{RefusalReason, refusal_counters};
pub use slab::Id;
pub(crate) use slab::Slab;
#[cfg(test)]
pub(crate) use state::Counts;
pub use state::Event;
pub(crate) use state::{Action, Arrival, UNRESERVED};
