//! SQL clients behind one vocabulary: a [`Statement`] goes in, a [`ResultSet`] or an [`Error`] comes out.

mod access;
mod book;
mod cache;
mod copy;
mod database;
mod dsn;
mod error;
mod hooks;
mod json;
pub mod mysql;
mod placeholder;
pub mod postgres;
mod served;
pub mod sqlite;
mod value;

pub use access::Access;
pub use copy::{CopyIn, CopyOut};
pub use database::{Database, Pending, PoolChange, RowStream, Transaction};
pub use dsn::{Endpoint, SslMode};
pub use error::{ConnectFailure, Error, ServerError};
pub use hooks::{Call, Calls, Hooks, Moment};
pub use placeholder::{Dialect, Params, ParseCache, ParsedSql};
pub use value::{Column, ResultSet, Statement, Value};
