//! The PHP-free half of Weft.
//!
//! Futures run on the PHP thread, inside the [`reactor::Reactor`]. Work that must continue while PHP computes (an AMQP connection, an SQLite
//! writer) has a thread of its own and hands over its completions in batches.

pub mod amqp;
pub mod blocking;
#[cfg(test)]
mod cancellation_tests;
pub mod fd_wait;
#[cfg(test)]
extern crate self as weft_core;
#[cfg(test)]
#[path = "../tests/support/fuzz.rs"]
mod fuzz;
pub mod grpc;
pub mod http;
mod id_map;
pub mod ids;
#[cfg(test)]
#[path = "../tests/support/local.rs"]
mod local;
pub mod metrics;
pub mod net;
mod panics;
pub mod pool;
#[cfg(test)]
mod proptest_config;
pub mod protobuf;
pub mod reactor;
mod server;
pub mod signal;
pub mod sql;
mod thread;
mod wait;
pub mod workers;
