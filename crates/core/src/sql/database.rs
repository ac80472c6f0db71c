//! One face for all drivers.

use std::rc::Rc;
use std::time::Duration;

use super::{Dialect, Error, ResultSet, Statement, postgres, sqlite};

/// A database of any supported kind. Cheap to clone; lives on the reactor's thread.
#[derive(Clone)]
pub enum Database {
    Postgres(Rc<postgres::Database>),
    Sqlite(Rc<sqlite::Database>),
}

/// How many connections a database may hold and how long a borrower waits for one.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    pub size: usize,
    pub borrow_timeout: Duration,
    /// What messages call the pool; `None`: the database's own name.
    pub name: Option<String>,
}

