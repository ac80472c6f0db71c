//! A PostgreSQL client (protocol 3.0) for one thread: statements are pipelined, the pool is shared by all tasks.
//!
//! [`Database`] lends pooled connections to statements and to [`Transaction`]s. A [`Connection`] sends a
//! [`Batch`] in one write with one `Sync` and reads one answer.

mod auth;
mod batch;
mod cache;
mod cancel_key;
mod config;
mod connection;
mod copy;
mod cursor;
mod database;
mod decode;
mod encode;
mod extended_query;
mod failure;
mod listener;
mod login;
#[cfg(test)]
mod malformed_input_tests;
mod prepare;
mod replies;
mod round_trip_queue;
mod rows;
mod server;
mod session_state;
mod shared_round_trips;
mod startup;
mod text;
mod transaction;
mod types;
mod wire;

pub(in crate::sql) use batch::is_rollback_to;

pub use auth::{AuthMethod, BindingMode, RequireAuth};
pub use batch::{Batch, End, Failure, Outcome};
pub use config::Config;
pub use connection::{Connection, TransactionStatus};
pub use copy::write_copy_row;
pub use database::Database;
pub use listener::{Listener, News, Notification};
pub use rows::RowStream;
pub use startup::{Connector, Postgres};
pub use transaction::{Isolation, Transaction, TransactionOptions};
