//! A MySQL and MariaDB client for one thread; the pool is shared by all tasks.
//!
//! [`Database`] lends pooled connections to statements and to [`Transaction`]s. A [`Connection`] keeps the
//! commands it has sent in a queue and reads their answers in that order.
//!
//! The packets of the handshake and the authentication plugins are `mysql_common`'s. Its sibling `mysql_async` has no way
//! to check an idle connection without a round trip, closes a connection whose future is dropped,
//! does not report the session's status after every statement and cannot send a second command before the first is
//! answered; the pool and the transactions here need all four.

mod batch;
mod cache;
mod config;
mod connection;
mod cursor;
mod cursor_fetch;
mod database;
mod decode;
mod encode;
mod failure;
mod local_infile;
mod local_infile_name;
mod local_infile_upload;
mod login;
#[cfg(test)]
mod malformed_input_tests;
mod reply;
mod rows;
mod run;
mod server;
mod startup;
mod statement_kind;
mod transaction;
mod wire;

pub use config::Config;
pub use connection::Connection;
pub use cursor::Cursor;
pub use database::Database;
pub use rows::RowStream;
pub use startup::{Connector, Mysql};
pub use transaction::Transaction;
