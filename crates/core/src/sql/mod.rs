//! SQL clients behind one vocabulary: a [`Statement`] goes in, a [`ResultSet`] or an [`Error`] comes out.

mod error;
mod placeholder;
mod value;

pub use error::{ConnectFailure, Error, ServerError};
pub use placeholder::{Dialect, Params, ParsedSql};
pub use value::{Column, ResultSet, Statement, Value};
