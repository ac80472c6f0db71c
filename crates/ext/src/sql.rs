//! `Weft\Native\SqlDatabase`, `SqlTransaction`, `SqlCursor`.

use std::cell::RefCell;
use std::rc::Rc;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};

use weft_core::sql::{
    ConnectFailure, Database, Error, ParseCache, PoolOptions, ResultSet, Statement, Transaction,
};

use crate::convert;
use crate::failure::{Detail, Failure};
use crate::process::Process;
use crate::runtime::{Payload, seconds, start};

/// Parsed statements remembered per database.
const PARSED_STATEMENTS: usize = 512;

#[php_class]
#[php(name = "Weft\\Native\\SqlDatabase")]
pub struct SqlDatabase {
    database: Database,
    parsed: Rc<RefCell<ParseCache>>,
}

#[php_impl]
impl SqlDatabase {
    pub fn open(dsn: &str, pool_size: i64, borrow_timeout: f64, name: &str) -> PhpResult<Self> {
        let process = Process::current()?;
        let _context = process.reactor.enter();
        let pool = PoolOptions {
            size: usize::try_from(pool_size).unwrap_or(1).max(1),
            borrow_timeout: seconds(borrow_timeout),
            name: (!name.is_empty()).then(|| name.to_owned()),
        };
        let database = Database::open(dsn, pool).map_err(failure)?;
        let parsed = ParseCache::new(database.dialect(), PARSED_STATEMENTS);
        Ok(Self {
            database,
            parsed: Rc::new(RefCell::new(parsed)),
        })
    }

    pub fn driver(&self) -> &'static str {
        self.database.driver()
    }

    pub fn execute(&self, sql: &str, params: &ZendHashTable) -> PhpResult<i64> {
        let statement = statement(&self.parsed, sql, params)?;
        let database = self.database.clone();
        start(async move {
            let result = database.execute(statement).await.map_err(failure)?;
            Ok(Payload::build(move || convert::result_set(result)))
        })
    }

    pub fn transaction(&self) -> SqlTransaction {
        SqlTransaction {
            transaction: Rc::new(RefCell::new(Some(self.database.transaction()))),
            parsed: Rc::clone(&self.parsed),
        }
    }
}

/// The transaction is taken out while an operation runs on it: a second one at the same time is refused.
#[php_class]
#[php(name = "Weft\\Native\\SqlTransaction")]
pub struct SqlTransaction {
    transaction: Rc<RefCell<Option<Transaction>>>,
    parsed: Rc<RefCell<ParseCache>>,
}
