use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;
use weft_core::pool::PoolOptions;
use weft_core::sql::postgres::{Config, Database, Transaction, TransactionOptions};
use weft_core::sql::{Error, ResultSet, Statement, Value};

/// No test of this suite has a reason to take longer.
const DEADLINE: Duration = Duration::from_secs(60);

pub fn url() -> String {
    std::env::var("DATABASE_URL").expect(
        "DATABASE_URL is not set: these tests need a PostgreSQL server (`make services` starts one)",
    )
}

pub fn tls_url() -> String {
    std::env::var("DATABASE_TLS_URL")
        .expect("DATABASE_TLS_URL is not set: `make services` starts a PostgreSQL server with TLS")
}

pub fn config() -> Config {
    Config::parse(&url()).unwrap()
}

pub fn pool(size: usize) -> PoolOptions {
    PoolOptions {
        size,
        ..PoolOptions::default()
    }
}

pub fn database(size: usize) -> Rc<Database> {
    Database::open(config(), pool(size))
}

/// Runs a test as the reactor would: everything on one thread, inside a `LocalSet`.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let within = async { tokio::time::timeout(DEADLINE, test).await };
    LocalSet::new()
        .block_on(&runtime, within)
        .expect("the test took longer than a minute")
}

pub fn sql(text: &str, params: Vec<Value>) -> Statement {
    Statement::new(text, params)
}

pub fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

pub async fn execute(db: &Database, statement: &str) -> ResultSet {
    query(db, statement, vec![]).await.unwrap()
}

pub async fn query(db: &Database, statement: &str, params: Vec<Value>) -> Result<ResultSet, Error> {
    db.execute(sql(statement, params)).await
}

/// The one value of the one row.
pub async fn scalar(db: &Database, statement: &str) -> Value {
    let mut result = execute(db, statement).await;
    result.rows.remove(0).remove(0)
}

pub fn begin(db: &Database) -> Transaction {
    db.transaction(TransactionOptions::default())
}

pub fn push(tx: &Transaction, statement: &str, params: Vec<Value>) -> usize {
    tx.push(sql(statement, params)).unwrap()
}

pub fn sqlstate(error: &Error) -> &str {
    match error {
        Error::Server(error) => &error.sqlstate,
        other => panic!("not an error of the server: {other}"),
    }
}

/// A table of this test alone, dropped at the end even when the test fails.
pub struct Table {
    pub name: String,
}

impl Table {
    pub async fn create(name: &str, columns: &str) -> Self {
        let name = format!("weft_test_{name}_{}", std::process::id());
        let db = database(1);
        execute(&db, &format!("DROP TABLE IF EXISTS {name}")).await;
        execute(&db, &format!("CREATE TABLE {name} ({columns})")).await;
        db.close().await;
        Self { name }
    }

    pub async fn count(&self, db: &Database) -> i64 {
        match scalar(db, &format!("SELECT count(*) FROM {}", self.name)).await {
            Value::Int(count) => count,
            other => panic!("count(*) is {other:?}"),
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let statement = format!("DROP TABLE IF EXISTS {}", self.name);
        // A runtime of its own: the one of the test may be on its way out.
        let dropped = std::thread::spawn(move || {
            run(async move {
                let db = database(1);
                db.execute(sql(&statement, vec![])).await.map(drop)
            })
        });
        let outcome = dropped.join();
        if !std::thread::panicking() {
            outcome.unwrap().unwrap();
        }
    }
}
