//! The PostgreSQL client against a real server, named by `DATABASE_URL`.

// Clippy exempts the tests themselves, not what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod batches;
mod cancellation;
mod connecting;
mod fake_server;
mod scram;
mod shared_round_trips;
mod streaming;
mod support;
mod tls;
mod transactions;
mod values;
