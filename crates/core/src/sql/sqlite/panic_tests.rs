//! A panic on a thread of SQLite, which is a bug in Weft: the callers whose statements it was running get an error, and the next call
//! works.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::LocalSet;

use super::{Config, Database};
use crate::sql::{Error, ResultSet, Statement, Value};

/// A statement with this comment panics on the thread that runs it.
const PANICS: &str = "/* panics */";
/// Only ends a test that hangs.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) fn panic_on_purpose(sql: &str) {
    assert!(!sql.contains(PANICS), "on purpose");
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let limited = async { tokio::time::timeout(LIMIT, test).await };
    let outcome = LocalSet::new().block_on(&runtime, limited);
    outcome.expect("the test took too long")
}

/// A file that goes with the test.
struct File(PathBuf);

impl File {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weft-panics-{}-{number}.db", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    async fn open(&self) -> Database {
        open(&format!("sqlite:{}", self.0.display())).await
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

async fn open(dsn: &str) -> Database {
    let database = Database::open(Config::parse(dsn).unwrap()).await.unwrap();
    let table = "CREATE TABLE IF NOT EXISTS t (id INTEGER)";
    execute(&database, table).await.unwrap();
    database
}

fn statement(sql: &str) -> Statement {
    Statement::new(sql, Vec::new())
}

async fn execute(database: &Database, sql: &str) -> Result<ResultSet, Error> {
    database.execute(statement(sql)).await
}

fn insert(id: i64) -> String {
    format!("INSERT INTO t VALUES ({id})")
}

fn panicking(sql: &str) -> String {
    format!("{sql} {PANICS}")
}

async fn ids(database: &Database) -> Vec<i64> {
    let result = execute(database, "SELECT id FROM t ORDER BY id").await;
    let id = |row: &Vec<Value>| match row[0] {
        Value::Int(id) => id,
        ref other => panic!("{other:?} is no id"),
    };
    result.unwrap().rows.iter().map(id).collect()
}

fn is_lost<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::ConnectionLost { .. }))
}

#[test]
fn a_panic_of_a_reader_fails_its_read_and_the_next_one_works() {
    run(async {
        let file = File::new();
        let database = file.open().await;
        execute(&database, &insert(1)).await.unwrap();
        // More often than there are readers.
        for _ in 0..5 {
            let outcome = execute(&database, &panicking("SELECT 1")).await;
            assert!(is_lost(&outcome), "{outcome:?}");
            assert_eq!(ids(&database).await, [1]);
        }
        execute(&database, &insert(2)).await.unwrap();
        assert_eq!(ids(&database).await, [1, 2]);
        database.close().await.unwrap();
    });
}

#[test]
fn a_panic_of_the_writer_fails_what_was_to_be_committed_with_it_and_the_next_write_works() {
    run(async {
        let file = File::new();
        let (database, other) = (file.open().await, file.open().await);
        let mut stored = Vec::new();
        for round in 0..5 {
            let [first, second] = [2 * round, 2 * round + 1];
            let [before, between, after] = [insert(first), panicking(&insert(-1)), insert(second)];
            let outcomes = tokio::join!(
                execute(&database, &before),
                execute(&other, &between),
                execute(&database, &after),
            );
            assert!(is_lost(&outcomes.1), "{:?}", outcomes.1);
            // Those that share the commit of the failed one fail with it.
            for (id, outcome) in [(first, outcomes.0), (second, outcomes.2)] {
                match outcome {
                    Ok(_) => stored.push(id),
                    lost => assert!(is_lost(&lost), "{lost:?}"),
                }
            }
            let id = 100 + round;
            execute(&database, &insert(id)).await.unwrap();
            stored.push(id);
            stored.sort_unstable();
            assert_eq!(ids(&other).await, stored);
        }
        // Each still knows the commits of the other.
        other.wait_for_change().await.unwrap();
        database.close().await.unwrap();
        other.close().await.unwrap();
    });
}

#[test]
fn a_panic_in_a_transaction_that_holds_the_writer_rolls_it_back_and_lets_the_next_have_it() {
    run(async {
        let file = File::new();
        let (database, other) = (file.open().await, file.open().await);
        let transaction = database.transaction();
        transaction.push(statement(&insert(1))).unwrap();
        transaction.flush().await.unwrap();
        transaction.push(statement(&panicking(&insert(2)))).unwrap();
        let waiting = insert(3);
        let (outcome, waited) = tokio::join!(transaction.flush(), execute(&other, &waiting));
        assert!(is_lost(&outcome), "{outcome:?}");
        waited.unwrap();
        assert!(transaction.commit().await.is_err());
        assert_eq!(ids(&database).await, [3]);

        let transaction = other.transaction();
        transaction.push(statement(&insert(4))).unwrap();
        transaction.push(statement(&panicking(&insert(5)))).unwrap();
        let outcome = transaction.commit().await;
        assert!(
            matches!(outcome, Err(Error::OutcomeUnknown { .. })),
            "{outcome:?}"
        );
        assert_eq!(ids(&database).await, [3]);
        execute(&other, "VACUUM").await.unwrap();
        assert!(is_lost(&execute(&other, &panicking("VACUUM")).await));
        execute(&database, &insert(6)).await.unwrap();
        assert_eq!(ids(&other).await, [3, 6]);
        database.close().await.unwrap();
        other.close().await.unwrap();
    });
}

#[test]
fn a_panic_with_an_in_memory_database_fails_every_later_statement_with_its_message() {
    run(async {
        let database = open("sqlite::memory:").await;
        assert!(is_lost(&execute(&database, &panicking("SELECT 1")).await));
        for sql in ["SELECT 1", "INSERT INTO t VALUES (1)"] {
            let error = execute(&database, sql).await.unwrap_err().to_string();
            let named = "internal error in the writing thread: on purpose";
            assert!(error.contains(named), "{error}");
        }
        // Another one is not concerned.
        let another = open("sqlite::memory:").await;
        execute(&another, &insert(1)).await.unwrap();
        assert_eq!(ids(&another).await, [1]);
        another.close().await.unwrap();
    });
}
