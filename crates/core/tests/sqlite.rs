//! SQLite through its public face, on real files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cell::Cell;
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::LocalSet;
use tokio::time::timeout;
use weft_core::sql::sqlite::{Config, Database, Location};
use weft_core::sql::{ConnectFailure, Error, ResultSet, Statement, Value};

const LIMIT: Duration = Duration::from_secs(60);

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "weft-sqlite-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn dsn(&self) -> String {
        format!("sqlite:{}", self.0.join("test.db").display())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let limited = async {
        timeout(LIMIT, future)
            .await
            .expect("the test took too long")
    };
    LocalSet::new().block_on(&runtime, limited)
}

async fn open(dsn: &str) -> Database {
    Database::open(Config::parse(dsn).unwrap()).await.unwrap()
}

fn statement(sql: &str, params: Vec<Value>) -> Statement {
    Statement::new(sql, params)
}

async fn sql(database: &Database, sql: &str) -> Result<ResultSet, Error> {
    database.execute(statement(sql, vec![])).await
}

async fn done(database: &Database, text: &str) -> ResultSet {
    sql(database, text).await.unwrap()
}

fn insert(id: i64) -> Statement {
    statement("INSERT INTO t (id) VALUES (?1)", vec![Value::Int(id)])
}

async fn ids(database: &Database) -> Vec<i64> {
    let rows = done(database, "SELECT id FROM t ORDER BY id").await.rows;
    rows.into_iter().map(|row| int(&row[0])).collect()
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        other => panic!("{other:?} is not an integer"),
    }
}

fn sqlstate<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result.unwrap_err() {
        Error::Server(error) => error.sqlstate,
        other => panic!("{other:?} has no SQLSTATE"),
    }
}

async fn table(dsn: &str) -> Database {
    let database = open(dsn).await;
    done(
        &database,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)",
    )
    .await;
    database
}

/// Polls a future once, which lets it begin, and drops it.
async fn begin_and_drop<T>(future: impl Future<Output = T>) {
    let mut future = std::pin::pin!(future);
    let begun = std::future::poll_fn(|context| {
        std::task::Poll::Ready(future.as_mut().poll(context).is_pending())
    });
    assert!(begun.await, "it has ended at once");
}

#[test]
fn a_commit_that_is_withdrawn_before_it_begins_is_rolled_back() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let holder = database.transaction();
        holder.push(insert(1)).unwrap();
        holder.flush().await.unwrap();
        // The writer is held: this commit waits in its queue.
        let waiting = database.transaction();
        waiting.push(insert(2)).unwrap();
        begin_and_drop(waiting.commit()).await;
        assert!(waiting.check_outcome().is_ok());
        assert!(!waiting.is_open());
        let over = waiting.commit().await.unwrap_err().to_string();
        assert!(over.contains("was rolled back"), "{over}");
        holder.commit().await.unwrap();
        assert_eq!(ids(&database).await, [1]);
        database.close().await.unwrap();
    });
}

#[test]
fn values_come_back_as_they_went() {
    for dsn in ["sqlite::memory:".to_owned(), Directory::new().dsn()] {
        let directory = Directory::new();
        let dsn = if dsn.contains("memory") {
            dsn
        } else {
            directory.dsn()
        };
        run(async {
            let database = open(&dsn).await;
            done(&database, "CREATE TABLE v (flag BOOLEAN, n INTEGER, f REAL, s TEXT, b BLOB, j JSON, d DATE, t DATETIME, ts TIMESTAMP(6), x)").await;
            let row = vec![
                Value::Bool(true),
                Value::Int(i64::MIN),
                Value::Float(-0.1),
                Value::Text("žluťoučký 𝄞 \0 '".into()),
                Value::Bytes(vec![0, 255, 128]),
                Value::Json("{\"a\":1}".into()),
                Value::Date("2024-02-29".into()),
                Value::Timestamp("2024-02-29 12:00:00".into()),
                Value::Timestamp("2024-02-29T12:00:00+02:00".into()),
                Value::Null,
            ];
            let inserted = database
                .execute(statement(
                    "INSERT INTO v VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
                    row.clone(),
                ))
                .await
                .unwrap();
            assert_eq!((inserted.affected, inserted.last_insert_id), (1, Some(1)));
            let result = done(&database, "SELECT * FROM v").await;
            assert_eq!(result.rows, [row]);
            let types: Vec<&str> = result
                .columns
                .iter()
                .map(|column| column.type_name.as_str())
                .collect();
            assert_eq!(
                types,
                [
                    "BOOLEAN",
                    "INTEGER",
                    "REAL",
                    "TEXT",
                    "BLOB",
                    "JSON",
                    "DATE",
                    "DATETIME",
                    "TIMESTAMP(6)",
                    ""
                ]
            );
        });
    }
}

#[test]
fn a_value_that_does_not_fit_its_declared_type_keeps_its_storage_class() {
    run(async {
        let database = open("sqlite::memory:").await;
        done(&database, "CREATE TABLE v (flag BOOLEAN, d DATE, s TEXT)").await;
        done(
            &database,
            "INSERT INTO v VALUES (7, 20240229, CAST(x'ff' AS TEXT))",
        )
        .await;
        let row = done(&database, "SELECT flag, d, s FROM v")
            .await
            .rows
            .remove(0);
        assert_eq!(
            row,
            [
                Value::Int(7),
                Value::Int(20_240_229),
                Value::Bytes(vec![255])
            ]
        );
    });
}

#[test]
fn a_list_is_a_json_array() {
    run(async {
        let database = open("sqlite::memory:").await;
        let list = Value::List(vec![
            Value::Int(1),
            Value::Text("a\"".into()),
            Value::Null,
            Value::Bool(false),
            Value::Float(1.5),
            Value::Json("{}".into()),
            Value::List(vec![]),
        ]);
        let result = database
            .execute(statement("SELECT ?1, json_array_length(?1)", vec![list]))
            .await
            .unwrap();
        assert_eq!(
            result.rows[0],
            [
                Value::Text("[1,\"a\\\"\",null,false,1.5,{},[]]".into()),
                Value::Int(7)
            ]
        );
    });
}

#[test]
fn values_that_sqlite_cannot_store_are_refused_by_number_not_by_value() {
    run(async {
        let database = open("sqlite::memory:").await;
        for (params, expected) in [
            (
                vec![Value::Int(1), Value::Float(f64::NAN)],
                "parameter 2 is NaN, which SQLite would store as NULL [statement: SELECT ?1, ?2]",
            ),
            (
                vec![Value::Int(1), Value::List(vec![Value::Bytes(vec![1])])],
                "parameter 2 is a list with bytes, which JSON cannot represent [statement: SELECT ?1, ?2]",
            ),
            (
                vec![Value::Int(1)],
                "the statement has 2 parameters, but 1 were given [statement: SELECT ?1, ?2]",
            ),
        ] {
            let error = database
                .execute(statement("SELECT ?1, ?2", params))
                .await
                .unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    });
}

#[test]
fn results_say_what_was_affected_and_inserted() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        assert_eq!(
            done(&database, "INSERT INTO t (id) VALUES (5), (6)")
                .await
                .last_insert_id,
            Some(6)
        );
        let ignored = done(&database, "INSERT OR IGNORE INTO t (id) VALUES (5)").await;
        assert_eq!((ignored.affected, ignored.last_insert_id), (0, None));
        let returned = done(&database, "INSERT INTO t (id) VALUES (7) RETURNING id").await;
        assert_eq!(
            (returned.affected, returned.rows),
            (1, vec![vec![Value::Int(7)]])
        );
        assert_eq!(
            done(&database, "UPDATE t SET name = 'x' WHERE id > 5")
                .await
                .affected,
            2
        );
        assert_eq!(
            done(
                &database,
                "CREATE TABLE u (k TEXT PRIMARY KEY) WITHOUT ROWID"
            )
            .await
            .affected,
            0
        );
        assert_eq!(
            done(&database, "INSERT INTO u VALUES ('a')")
                .await
                .last_insert_id,
            None
        );
        let with = done(
            &database,
            "WITH n AS (SELECT 9 AS id) INSERT INTO t (id) SELECT id FROM n",
        )
        .await;
        assert_eq!((with.affected, with.last_insert_id), (1, Some(9)));
        assert_eq!(done(&database, "SELECT id FROM t").await.affected, 4);
    });
}

#[test]
fn columns_follow_a_table_that_changes_under_a_prepared_statement() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        done(&database, "INSERT INTO t (id) VALUES (1)").await;
        assert_eq!(done(&database, "SELECT * FROM t").await.columns.len(), 2);
        done(&database, "ALTER TABLE t ADD COLUMN flag BOOLEAN DEFAULT 1").await;
        let result = done(&database, "SELECT * FROM t").await;
        assert_eq!(result.columns.len(), 3);
        assert_eq!(
            result.rows,
            [[Value::Int(1), Value::Null, Value::Bool(true)]]
        );
    });
}

#[test]
fn errors_carry_the_sqlstate_the_constraint_and_the_statement() {
    let directory = Directory::new();
    run(async {
        let database = open(&directory.dsn()).await;
        done(&database, "CREATE TABLE p (id INTEGER PRIMARY KEY)").await;
        done(&database, "CREATE TABLE c (id INTEGER PRIMARY KEY, email TEXT UNIQUE, age INT NOT NULL CONSTRAINT adult CHECK (age > 17), p INT REFERENCES p)").await;
        done(&database, "INSERT INTO c VALUES (1, 'a', 20, NULL)").await;
        for (text, expected) in [
            ("INSERT INTO c VALUES (2, 'a', 20, NULL)", "23505"),
            ("INSERT INTO c VALUES (1, 'b', 20, NULL)", "23505"),
            ("INSERT INTO c VALUES (2, 'b', NULL, NULL)", "23502"),
            ("INSERT INTO c VALUES (2, 'b', 20, 9)", "23503"),
            ("INSERT INTO c VALUES (2, 'b', 2, NULL)", "23514"),
            ("SELECT * FROM nowhere", "42P01"),
            ("INSERT INTO nowhere VALUES (1)", "42P01"),
            ("SELECT nonesuch FROM c", "42703"),
            ("INSERT INTO c (nonesuch) VALUES (1)", "42703"),
            ("SELEC 1", "42601"),
            ("SELECT 'open", "42601"),
            ("SELECT 1; SELECT 2", "42601"),
            ("INSERT INTO p VALUES (1); DELETE FROM p", "42601"),
            ("", "42601"),
            ("SELECT nofunction(1)", "42883"),
            ("CREATE TABLE p (x)", "42P07"),
        ] {
            assert_eq!(sqlstate(sql(&database, text).await), expected, "{text}");
        }
        let long = format!(
            "INSERT INTO c VALUES (2, 'a', 20, NULL) -- {}",
            "é".repeat(2_000)
        );
        let Err(Error::Server(error)) = sql(&database, &long).await else {
            panic!()
        };
        assert_eq!(error.constraint.as_deref(), Some("c.email"));
        assert_eq!(error.statement.chars().count(), 1_001);
        let Err(Error::Server(error)) =
            sql(&database, "INSERT INTO c VALUES (2, 'b', 2, NULL)").await
        else {
            panic!()
        };
        assert_eq!(error.constraint.as_deref(), Some("adult"));
    });
}

#[test]
fn a_database_that_cannot_be_opened_says_why() {
    let directory = Directory::new();
    let file = directory.0.join("not.db");
    std::fs::write(&file, "This is a text, and it is longer than the header of a database, which has 100 bytes. Really longer.").unwrap();
    run(async {
        for (path, reason) in [
            (file.as_path(), "not an SQLite database"),
            (
                Path::new("/no/such/directory/a.db"),
                "the directory \"/no/such/directory\" does not exist",
            ),
            (directory.0.as_path(), "it is a directory"),
            (Path::new("/proc/weft.db"), "cannot be created in \"/proc\""),
        ] {
            let config = Config::at(Location::File(path.to_owned()));
            let Err(error) = Database::open(config).await else {
                panic!("{path:?} was opened")
            };
            let message = error.to_string();
            assert!(
                message.contains(reason) && message.contains(path.to_str().unwrap()),
                "{message}"
            );
            assert!(
                matches!(
                    error,
                    Error::Connect {
                        failure: ConnectFailure::File,
                        ..
                    }
                ),
                "{error:?}"
            );
        }
    });
}

#[test]
fn transaction_boundaries_are_refused_as_statements() {
    run(async {
        let database = table("sqlite::memory:").await;
        for text in [
            "BEGIN",
            "COMMIT",
            "rollback",
            "/* x */ END",
            "SAVEPOINT a",
            "RELEASE a",
            "ROLLBACK TO a",
        ] {
            assert!(
                matches!(sql(&database, text).await, Err(Error::Usage { .. })),
                "{text}"
            );
        }
        let transaction = database.transaction();
        transaction.push(insert(1)).unwrap();
        transaction.push(statement("COMMIT", vec![])).unwrap();
        assert!(matches!(
            transaction.commit().await,
            Err(Error::Usage { .. })
        ));
        assert!(ids(&database).await.is_empty());
    });
}

#[test]
fn a_transaction_that_is_only_committed_travels_as_a_whole() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let transaction = database.transaction();
        assert_eq!(transaction.push(insert(1)).unwrap(), 0);
        assert_eq!(
            transaction
                .push(statement("SELECT count(*) FROM t", vec![]))
                .unwrap(),
            1
        );
        assert!(transaction.take_result(1).is_none());
        transaction.commit().await.unwrap();
        assert_eq!(
            transaction.take_result(1).unwrap().unwrap().rows,
            [[Value::Int(1)]]
        );
        assert!(transaction.take_result(1).is_none());
        assert!(!transaction.is_open());
        assert!(matches!(
            transaction.push(insert(2)),
            Err(Error::Usage { .. })
        ));
        assert!(matches!(
            transaction.commit().await,
            Err(Error::Usage { .. })
        ));
        assert!(matches!(
            transaction.flush().await,
            Err(Error::Usage { .. })
        ));
    });
}

#[test]
fn a_failed_statement_fails_the_whole_transaction() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        for flush in [false, true] {
            let transaction = database.transaction();
            for id in [1, 1, 2] {
                transaction.push(insert(id)).unwrap();
            }
            if flush {
                assert_eq!(sqlstate(transaction.flush().await), "23505");
                assert_eq!(
                    sqlstate({
                        transaction.push(insert(3)).unwrap();
                        transaction.flush().await
                    }),
                    "25P02"
                );
            }
            assert_eq!(sqlstate(transaction.commit().await), "23505");
            assert!(transaction.take_result(0).unwrap().is_ok());
            assert_eq!(sqlstate(transaction.take_result(1).unwrap()), "23505");
            assert_eq!(sqlstate(transaction.take_result(2).unwrap()), "25P02");
            assert!(!transaction.is_open());
            assert!(ids(&database).await.is_empty());
        }
    });
}

#[test]
fn a_savepoint_recovers_a_failed_transaction() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let transaction = database.transaction();
        transaction.push(insert(1)).unwrap();
        transaction
            .push(statement("SAVEPOINT one", vec![]))
            .unwrap();
        transaction.push(insert(1)).unwrap();
        assert_eq!(sqlstate(transaction.flush().await), "23505");
        transaction
            .push(statement("ROLLBACK TO one", vec![]))
            .unwrap();
        transaction.push(insert(2)).unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(ids(&database).await, [1, 2]);
    });
}

#[test]
fn an_interactive_transaction_sees_its_own_writes_and_others_do_not() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let transaction = database.transaction();
        transaction.push(insert(1)).unwrap();
        let count = transaction
            .push(statement("SELECT count(*) FROM t", vec![]))
            .unwrap();
        transaction.flush().await.unwrap();
        assert_eq!(
            transaction.take_result(count).unwrap().unwrap().rows,
            [[Value::Int(1)]]
        );
        assert!(ids(&database).await.is_empty());
        transaction.push(insert(2)).unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(ids(&database).await, [1, 2]);
    });
}

#[test]
fn a_rolled_back_or_dropped_transaction_leaves_nothing_and_frees_the_writer() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        for flush in [false, true] {
            for drop_it in [false, true] {
                let transaction = database.transaction();
                transaction.push(insert(1)).unwrap();
                if flush {
                    transaction.flush().await.unwrap();
                }
                if !drop_it {
                    transaction.rollback().await.unwrap();
                    assert!(matches!(
                        transaction.rollback().await,
                        Err(Error::Usage { .. })
                    ));
                }
            }
        }
        database.execute(insert(9)).await.unwrap();
        assert_eq!(ids(&database).await, [9]);
    });
}

#[test]
fn an_interactive_transaction_keeps_other_writers_waiting_in_order() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let transaction = database.transaction();
        transaction.push(insert(1)).unwrap();
        transaction.flush().await.unwrap();
        let order = Rc::new(Cell::new(0));
        let waiting: Vec<_> = (0..3)
            .map(|position| {
                let (database, order) = (database.clone(), Rc::clone(&order));
                tokio::task::spawn_local(async move {
                    database.execute(insert(10 + position)).await.unwrap();
                    assert_eq!(order.replace(order.get() + 1), position);
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(order.get(), 0);
        transaction.commit().await.unwrap();
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(ids(&database).await, [1, 10, 11, 12]);
    });
}

#[test]
fn a_transaction_that_holds_the_writer_too_long_is_rolled_back() {
    let directory = Directory::new();
    run(async {
        let database = table(&format!("{}?transaction_timeout=0.1", directory.dsn())).await;
        let transaction = database.transaction();
        transaction.push(insert(1)).unwrap();
        transaction.flush().await.unwrap();
        database.execute(insert(2)).await.unwrap();
        transaction.push(insert(3)).unwrap();
        let error = transaction.commit().await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("for more than 100ms and was rolled back"),
            "{error}"
        );
        assert_eq!(sqlstate::<()>(Err(error)), "25P04");
        assert_eq!(ids(&database).await, [2]);

        let endless = database.transaction();
        endless.push(statement("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", vec![])).unwrap();
        assert_eq!(sqlstate(endless.flush().await), "25P04");
    });
}

/// xorshift64*: the same choices on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}

#[test]
fn failing_jobs_leave_no_trace_and_the_good_ones_beside_them_are_there() {
    let directory = Directory::new();
    run(async {
        let database = open(&directory.dsn()).await;
        done(&database, "CREATE TABLE p (id INTEGER PRIMARY KEY)").await;
        done(&database, "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, p INT REFERENCES p DEFERRABLE INITIALLY DEFERRED)").await;
        done(&database, "INSERT INTO t (id) VALUES (0)").await;
        let mut random = Random(99);
        let mut tasks = Vec::new();
        for id in 1..=3_000_i64 {
            let kind = random.below(8);
            let database = database.clone();
            tasks.push(tokio::task::spawn_local(async move {
                let transaction = database.transaction();
                transaction.push(insert(id)).unwrap();
                let outcome = match kind {
                    0 => database.execute(insert(0)).await.map(drop),
                    1 => {
                        transaction.push(insert(0)).unwrap();
                        transaction.commit().await
                    }
                    // Rolls back the whole group, not only itself.
                    2 => database
                        .execute(statement(
                            "INSERT OR ROLLBACK INTO t (id) VALUES (0)",
                            vec![],
                        ))
                        .await
                        .map(drop),
                    3 => {
                        transaction
                            .push(statement(
                                "INSERT OR ROLLBACK INTO t (id) VALUES (0)",
                                vec![],
                            ))
                            .unwrap();
                        transaction.commit().await
                    }
                    // Fails only at COMMIT.
                    4 => database
                        .execute(statement(
                            "INSERT INTO t (id, p) VALUES (?1, 7)",
                            vec![Value::Int(id)],
                        ))
                        .await
                        .map(drop),
                    5 | 6 => transaction.commit().await,
                    _ => database.execute(insert(id)).await.map(drop),
                };
                assert_eq!(outcome.is_ok(), kind > 4, "{kind} {outcome:?}");
                outcome.ok().map(|()| id)
            }));
        }
        let mut expected = vec![0];
        for task in tasks {
            expected.extend(task.await.unwrap());
        }
        assert_eq!(ids(&database).await, expected);
    });
}

#[test]
fn an_answered_write_is_visible_to_the_next_read() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        for id in 1..200 {
            database.execute(insert(id)).await.unwrap();
            assert_eq!(
                done(&database, "SELECT count(*) FROM t").await.rows[0][0],
                Value::Int(id)
            );
        }
    });
}

#[test]
fn pragmas_and_vacuum_run_outside_of_the_group() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        assert_eq!(
            done(&database, "PRAGMA foreign_keys").await.rows,
            [[Value::Int(1)]]
        );
        assert_eq!(
            done(&database, "PRAGMA synchronous").await.rows,
            [[Value::Int(2)]]
        );
        assert_eq!(
            done(&database, "PRAGMA journal_mode").await.rows,
            [[Value::Text("wal".into())]]
        );
        let (inserted, vacuumed) =
            tokio::join!(database.execute(insert(1)), sql(&database, "VACUUM"));
        inserted.unwrap();
        vacuumed.unwrap();
        assert_eq!(ids(&database).await, [1]);
    });
}

#[test]
fn attached_databases_and_temporary_tables_are_read_in_a_transaction() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let missing = sql(&database, "SELECT id FROM u").await.unwrap_err();
        assert!(!missing.to_string().contains("transaction"), "{missing}");
        let path = directory.0.join("other.db").display().to_string();
        let attach = statement("ATTACH ?1 AS other", vec![Value::Text(path.clone())]);
        database.execute(attach).await.unwrap();
        done(&database, "CREATE TABLE other.u (id INTEGER)").await;
        done(&database, "CREATE TEMPORARY TABLE v (id INTEGER)").await;
        for insert in ["INSERT INTO other.u VALUES (1)", "INSERT INTO v VALUES (1)"] {
            done(&database, insert).await;
        }
        // Its threads are the same.
        let second = open(&directory.dsn()).await;
        for (database, table) in [(&database, "other.u"), (&second, "u"), (&second, "v")] {
            let select = format!("SELECT id FROM {table}");
            let rows = database.stream(statement(&select, vec![]), 10);
            let errors = [
                sql(database, &select).await.unwrap_err(),
                rows.next().await.unwrap_err(),
            ];
            for error in errors {
                let message = error.to_string();
                assert!(
                    message.contains("no such table")
                        && message.contains(
                            "belong to the connection that writes: read them in a transaction"
                        ),
                    "{message}"
                );
            }
            let transaction = database.transaction();
            let index = transaction.push(statement(&select, vec![])).unwrap();
            transaction.push(insert(1)).unwrap();
            transaction.flush().await.unwrap();
            let result = transaction.take_result(index).unwrap();
            assert_eq!(int(&result.unwrap().rows[0][0]), 1, "{table}");
            transaction.rollback().await.unwrap();
        }
        second.close().await.unwrap();
        database.close().await.unwrap();
        // The rows are in the other file.
        let other = open(&format!("sqlite:{path}")).await;
        assert_eq!(done(&other, "SELECT id FROM u").await.rows.len(), 1);
        other.close().await.unwrap();
    });
}

async fn numbers(database: &Database, count: i64) {
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) INSERT INTO t (id) SELECT i FROM n";
    database
        .execute(statement(fill, vec![Value::Int(count)]))
        .await
        .unwrap();
}

#[test]
fn a_stream_gives_every_row_once_in_chunks() {
    let directory = Directory::new();
    for dsn in [directory.dsn(), "sqlite::memory:".into()] {
        run(async {
            let database = table(&dsn).await;
            numbers(&database, 2_500).await;
            let stream = database.stream(statement("SELECT id FROM t ORDER BY id", vec![]), 1_000);
            let (mut seen, mut sizes) = (Vec::new(), Vec::new());
            while let Some(chunk) = stream.next().await.unwrap() {
                assert_eq!(chunk.columns[0].name, "id");
                sizes.push(chunk.rows.len());
                seen.extend(chunk.rows.iter().map(|row| int(&row[0])));
            }
            assert_eq!(sizes, [1_000, 1_000, 500]);
            assert!(seen.into_iter().eq(1..=2_500));
            assert!(stream.next().await.unwrap().is_none());
            let empty = database.stream(statement("SELECT id FROM t WHERE id < 0", vec![]), 10);
            assert_eq!(empty.next().await.unwrap().unwrap().rows.len(), 0);
            assert!(empty.next().await.unwrap().is_none());
        });
    }
}

#[test]
fn a_stream_reports_its_errors_and_refuses_to_write() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let stream = database.stream(statement("SELECT * FROM nowhere", vec![]), 10);
        assert_eq!(sqlstate(stream.next().await), "42P01");
        assert!(stream.next().await.unwrap().is_none());
        let stream = database.stream(insert(1), 10);
        assert!(matches!(stream.next().await, Err(Error::Usage { .. })));
        assert!(ids(&database).await.is_empty());
    });
}

#[test]
fn more_streams_than_readers_do_not_block_a_read() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        numbers(&database, 1_000).await;
        let streams: Vec<_> = (0..5)
            .map(|_| database.stream(statement("SELECT id FROM t", vec![]), 1))
            .collect();
        for stream in &streams {
            stream.next().await.unwrap();
        }
        assert_eq!(ids(&database).await.len(), 1_000);
        drop(streams);
        database.close().await.unwrap();
    });
}

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

#[test]
fn dropping_a_future_interrupts_its_running_statement() {
    let directory = Directory::new();
    run(async {
        let database = table(&format!("{}?readers=1", directory.dsn())).await;
        let write = format!("INSERT INTO t (id) {ENDLESS}");
        for text in [ENDLESS, &write] {
            let endless = timeout(Duration::from_millis(100), sql(&database, text)).await;
            assert!(endless.is_err(), "{text} ended");
            database.execute(insert(text.len() as i64)).await.unwrap();
            assert!(!ids(&database).await.is_empty());
        }
        let stream = database.stream(statement(ENDLESS, vec![]), 1);
        assert!(
            timeout(Duration::from_millis(100), stream.next())
                .await
                .is_err()
        );
        drop(stream);
        database.close().await.unwrap();
    });
}

#[test]
fn an_interrupted_write_does_not_take_the_rest_of_its_group_along() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let good = (1..=20).map(|id| tokio::task::spawn_local(database.execute(insert(id))));
        let good: Vec<_> = good.collect();
        let write = format!("INSERT INTO t (id) {ENDLESS}");
        let endless = timeout(Duration::from_millis(100), sql(&database, &write)).await;
        assert!(endless.is_err());
        for task in good {
            task.await.unwrap().unwrap();
        }
        assert!(ids(&database).await.into_iter().eq(1..=20));
    });
}

#[test]
fn a_dropped_future_withdraws_a_statement_that_has_not_begun() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let transaction = database.transaction();
        transaction.push(insert(1)).unwrap();
        transaction.flush().await.unwrap();
        assert!(
            timeout(Duration::from_millis(20), database.execute(insert(2)))
                .await
                .is_err()
        );
        let queued = database.transaction();
        queued.push(insert(3)).unwrap();
        assert!(
            timeout(Duration::from_millis(20), queued.flush())
                .await
                .is_err()
        );
        assert!(matches!(queued.commit().await, Err(Error::Usage { .. })));
        drop(queued);
        transaction.commit().await.unwrap();
        database.execute(insert(4)).await.unwrap();
        assert_eq!(ids(&database).await, [1, 4]);
    });
}

#[test]
fn another_databases_commit_is_noticed_and_ones_own_is_not() {
    let directory = Directory::new();
    run(async {
        let (database, other) = (table(&directory.dsn()).await, open(&directory.dsn()).await);
        timeout(Duration::from_secs(5), other.wait_for_change())
            .await
            .unwrap_or(Ok(()))
            .unwrap();
        database.execute(insert(1)).await.unwrap();
        assert!(
            timeout(Duration::from_millis(100), database.wait_for_change())
                .await
                .is_err()
        );
        other.execute(insert(2)).await.unwrap();
        timeout(Duration::from_secs(5), database.wait_for_change())
            .await
            .unwrap()
            .unwrap();
        assert!(
            timeout(Duration::from_millis(100), database.wait_for_change())
                .await
                .is_err()
        );
        other.execute(insert(3)).await.unwrap();
        other.execute(insert(4)).await.unwrap();
        timeout(Duration::from_secs(5), database.wait_for_change())
            .await
            .unwrap()
            .unwrap();
    });
}

#[test]
fn closing_waits_for_what_was_submitted_and_ends_every_use() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let running = tokio::task::spawn_local(database.execute(insert(1)));
        tokio::task::yield_now().await;
        database.close().await.unwrap();
        running.await.unwrap().unwrap();
        assert!(matches!(
            database.execute(insert(2)).await,
            Err(Error::PoolClosed { .. })
        ));
        assert!(matches!(
            database.wait_for_change().await,
            Err(Error::PoolClosed { .. })
        ));
        assert!(matches!(
            database.stream(insert(2), 1).next().await,
            Err(Error::PoolClosed { .. })
        ));
        let late = database.transaction();
        late.push(insert(2)).unwrap();
        assert!(matches!(late.commit().await, Err(Error::PoolClosed { .. })));
        database.close().await.unwrap();
        assert!(!Path::new(&format!("{}-wal", directory.0.join("test.db").display())).exists());
        assert_eq!(ids(&open(&directory.dsn()).await).await, [1]);
    });
}

#[test]
fn closing_moves_the_log_into_the_file_also_when_readers_close_at_the_same_time() {
    let directory = Directory::new();
    let log = format!("{}-wal", directory.0.join("test.db").display());
    run(async {
        table(&directory.dsn()).await.close().await.unwrap();
        for id in 1..=50 {
            let database = open(&directory.dsn()).await;
            database.execute(insert(id)).await.unwrap();
            let reads: Vec<_> = (0..4)
                .map(|_| database.execute(statement("SELECT id FROM t", vec![])))
                .collect();
            for read in reads {
                read.await.unwrap();
            }
            database.close().await.unwrap();
            assert!(!Path::new(&log).exists(), "after {id} rows");
        }
    });
}

#[test]
fn closing_cuts_a_stream_that_nobody_reads_on_with_an_error() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        numbers(&database, 1_000).await;
        let stream = database.stream(statement("SELECT id FROM t", vec![]), 1);
        stream.next().await.unwrap();
        database.close().await.unwrap();
        let mut outcome = stream.next().await;
        while let Ok(Some(_)) = outcome {
            outcome = stream.next().await;
        }
        assert!(
            matches!(outcome, Err(Error::ConnectionLost { .. })),
            "{outcome:?}"
        );
    });
}

#[test]
#[ignore = "another process of the test below"]
fn child_that_shuts_every_thread_down() {
    let Some(dsn) = child_dsn() else { return };
    run(async {
        let (file, memory) = (open(&dsn).await, open("sqlite::memory:").await);
        let stream = file.stream(statement("SELECT id FROM t", vec![]), 1);
        stream.next().await.unwrap();
        let held = file.transaction();
        held.push(insert(-1)).unwrap();
        held.flush().await.unwrap();
        let endless = tokio::task::spawn_local(file.execute(statement(ENDLESS, vec![])));
        tokio::task::yield_now().await;
        assert!(weft_core::sql::sqlite::shutdown(Duration::from_secs(10)));
        assert!(endless.await.unwrap().is_err());
        for database in [&file, &memory] {
            assert!(matches!(
                database.execute(insert(1)).await,
                Err(Error::PoolClosed { .. })
            ));
            assert!(matches!(
                sql(database, "SELECT 1").await,
                Err(Error::PoolClosed { .. })
            ));
            assert!(matches!(
                database.wait_for_change().await,
                Err(Error::PoolClosed { .. })
            ));
        }
        assert!(held.commit().await.is_err());
    });
    println!("all threads are gone");
}

#[test]
fn shutdown_ends_every_thread_and_what_comes_later_is_refused() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        numbers(&database, 100).await;
        database.close().await.unwrap();
    });
    let output = child("child_that_shuts_every_thread_down", &directory.dsn())
        .wait_with_output()
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("all threads are gone"));
}

#[test]
fn writers_that_waited_together_for_a_lock_fail_together() {
    let directory = Directory::new();
    run(async {
        let database = table(&format!("{}?busy_timeout=1.5", directory.dsn())).await;
        let other = rusqlite::Connection::open(directory.0.join("test.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let started = Instant::now();
        let tasks: Vec<_> = (0..20)
            .map(|id| tokio::task::spawn_local(database.execute(insert(id))))
            .collect();
        for task in tasks {
            assert_eq!(sqlstate(task.await.unwrap()), "55P03");
        }
        // One after the other they would wait for 30 s.
        assert!(
            started.elapsed() < Duration::from_secs(15),
            "{:?}",
            started.elapsed()
        );
    });
}

#[test]
fn a_file_replaced_by_another_is_opened_anew() {
    let directory = Directory::new();
    run(async {
        let first = table(&directory.dsn()).await;
        for suffix in ["", "-wal", "-shm"] {
            std::fs::remove_file(format!("{}{suffix}", directory.0.join("test.db").display()))
                .unwrap();
        }
        let second = open(&directory.dsn()).await;
        assert_eq!(sqlstate(sql(&second, "SELECT * FROM t").await), "42P01");
        drop(first);
    });
}

/// Runs one of the tests below, marked ignored, in another process.
fn child(role: &str, dsn: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", role])
        .env("WEFT_TEST_DSN", dsn)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn child_dsn() -> Option<String> {
    std::env::var("WEFT_TEST_DSN").ok()
}

#[test]
#[ignore = "another process of the tests below"]
fn child_that_writes_until_it_is_killed() {
    let Some(dsn) = child_dsn() else { return };
    run(async {
        let database = open(&dsn).await;
        let next = Rc::new(Cell::new(1));
        let writers = (0..20).map(|number| {
            let (database, next) = (database.clone(), Rc::clone(&next));
            tokio::task::spawn_local(async move {
                loop {
                    let id = next.replace(next.get() + 2);
                    let transaction = database.transaction();
                    transaction.push(insert(id)).unwrap();
                    transaction.push(insert(id + 1)).unwrap();
                    if number == 0 {
                        transaction.flush().await.unwrap();
                    }
                    transaction.commit().await.unwrap();
                    // One write, so that a kill cannot cut it: shorter than PIPE_BUF.
                    std::io::stdout()
                        .write_all(format!("answered {id}\n").as_bytes())
                        .unwrap();
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        std::future::pending::<()>().await;
        drop(writers);
    });
}

#[test]
fn nothing_answered_is_lost_when_the_process_is_killed() {
    let mut random = Random(std::process::id().into());
    for _ in 0..8 {
        let directory = Directory::new();
        run(async { table(&directory.dsn()).await.close().await.unwrap() });
        let mut child = child("child_that_writes_until_it_is_killed", &directory.dsn());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let kill_at = Instant::now() + Duration::from_millis(150 + random.below(300));
        let mut answered = Vec::new();
        for line in lines {
            answered.extend(
                line.unwrap()
                    .strip_prefix("answered ")
                    .map(|id| id.parse::<i64>().unwrap()),
            );
            if Instant::now() >= kill_at {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(answered.len() > 10, "only {} answers", answered.len());
        run(async {
            let there = ids(&open(&directory.dsn()).await).await;
            for id in answered {
                assert!(
                    there.binary_search(&id).is_ok() && there.binary_search(&(id + 1)).is_ok(),
                    "{id} was lost"
                );
            }
            assert!(
                there
                    .iter()
                    .all(|id| there.binary_search(&(((id - 1) ^ 1) + 1)).is_ok()),
                "half a transaction is there"
            );
        });
    }
}

#[test]
#[ignore = "another process of the tests below"]
fn child_that_writes_a_thousand_rows() {
    let Some(dsn) = child_dsn() else { return };
    run(async {
        let database = open(&dsn).await;
        let writers = (0..1_000).map(|_| {
            let write = statement("INSERT INTO t (name) VALUES ('child')", vec![]);
            tokio::task::spawn_local(database.execute(write))
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap().unwrap();
        }
    });
}

#[test]
fn two_processes_write_to_the_same_file() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        let mut children: Vec<Child> = (0..2)
            .map(|_| child("child_that_writes_a_thousand_rows", &directory.dsn()))
            .collect();
        for _ in 0..500 {
            database
                .execute(statement("INSERT INTO t (name) VALUES ('parent')", vec![]))
                .await
                .unwrap();
        }
        for child in &mut children {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(ids(&database).await.len(), 2_500);
    });
}

#[test]
fn another_processs_commit_ends_the_wait_for_a_change() {
    let directory = Directory::new();
    run(async {
        let database = table(&directory.dsn()).await;
        assert!(
            timeout(Duration::from_millis(100), database.wait_for_change())
                .await
                .is_err()
        );
        let mut child = child("child_that_writes_a_thousand_rows", &directory.dsn());
        timeout(Duration::from_secs(10), database.wait_for_change())
            .await
            .unwrap()
            .unwrap();
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn a_lock_of_another_process_is_an_error_after_the_busy_timeout() {
    let directory = Directory::new();
    run(async {
        let database = table(&format!("{}?busy_timeout=0.1", directory.dsn())).await;
        let other = rusqlite::Connection::open(directory.0.join("test.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(sqlstate(database.execute(insert(1)).await), "55P03");
        let transaction = database.transaction();
        transaction.push(insert(2)).unwrap();
        assert_eq!(sqlstate(transaction.flush().await), "55P03");
        assert_eq!(sqlstate(transaction.take_result(0).unwrap()), "55P03");
        other.execute_batch("COMMIT").unwrap();
        database.execute(insert(3)).await.unwrap();
        assert_eq!(ids(&database).await, [3]);
    });
}
