//! SQLite: one writer thread per file with group commit, reader threads beside it.
//!
//! `Database` and `Transaction` are what a caller sees. Their jobs go through the `engine` of the file to its `writer` or a
//! `reader`; answers come back through a `reply_queue` in batches.

mod changes;
mod client;
mod config;
mod connection;
mod database;
mod engine;
mod failure;
mod jobs;
#[cfg(test)]
mod panic_tests;
mod prepared;
mod reader;
mod registry;
mod reply_queue;
mod session;
mod statement_kind;
mod stream;
mod transaction;
mod transaction_statements;
mod writer;

pub use config::{Config, Location, Synchronous};
pub use database::Database;
pub use registry::shutdown;
pub use session::Session;
pub use stream::RowStream;
pub use transaction::Transaction;
