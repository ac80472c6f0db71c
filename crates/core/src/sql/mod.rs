//! SQL clients with a common interface: they run a [`Statement`] and return a [`ResultSet`] or an [`Error`].

mod cache;
mod connect_options;
mod copy;
mod database;
mod deferred_statements;
mod dsn;
mod error;
mod hooks;
mod json;
pub mod mysql;
mod pending;
mod placeholder;
mod pooled_database;
pub mod postgres;
mod server;
mod server_manager;
mod server_session;
mod session;
pub mod sqlite;
mod value;

pub use connect_options::ConnectOptions;
pub use copy::{CopyIn, CopyOut};
pub use database::{Database, PoolChange, RowStream, Transaction};
pub use dsn::{Endpoint, SslMode};
pub use error::{ConnectFailure, Error, ServerError};
pub use hooks::{HookPoint, Hooks, PoolEvent, PoolEvents};
pub use pending::Pending;
pub use placeholder::{Dialect, Params, ParseCache, ParsedSql};
pub use session::Session;
pub use value::{Column, ResultSet, Statement, Value};
