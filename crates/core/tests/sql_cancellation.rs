//! Every public future of the SQL clients, dropped at every poll: against PostgreSQL (`DATABASE_URL`), MariaDB or MySQL
//! (`WEFT_MYSQL_DSN`) and SQLite. What must hold: the connection comes back or is replaced, the next statement works, and a
//! transaction is there as a whole or not at all.

// Clippy exempts the tests themselves, not what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../src/cancellation_tests.rs"]
mod cancellation_tests;

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use cancellation_tests::{Ended, drop_at_every_poll};
use tokio::task::LocalSet;
use weft_core::pool::PoolOptions;
use weft_core::sql::postgres::{Listener, News};
use weft_core::sql::{Database, Error, Hooks, ResultSet, Session, Statement, Transaction, Value};

const DRIVERS: [&str; 3] = ["postgres", "mysql", "sqlite"];

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test)
}

fn server_dsn(driver: &str) -> String {
    match driver {
        "postgres" => std::env::var("DATABASE_URL").expect("DATABASE_URL is not set"),
        _ => std::env::var("WEFT_MYSQL_DSN").expect("WEFT_MYSQL_DSN is not set"),
    }
}

/// A database with one connection.
async fn open(dsn: &str) -> Database {
    let pool = PoolOptions {
        size: 1,
        borrow_timeout: Duration::from_secs(30),
        ..PoolOptions::default()
    };
    let db = Database::open(dsn, pool, Hooks::default());
    db.unwrap().await.unwrap()
}

/// A database with one connection and a table of its own, dropped by [`finish`](Self::finish).
struct Bed {
    db: Database,
    table: String,
    file: Option<std::path::PathBuf>,
    round: Cell<i64>,
}

impl Bed {
    async fn make(driver: &str, name: &str) -> Self {
        let unique = format!("weft_drop_{name}_{}", std::process::id());
        let file = (driver == "sqlite").then(|| std::env::temp_dir().join(format!("{unique}.db")));
        let dsn = match (driver, &file) {
            (_, Some(file)) => format!("sqlite:{}", file.display()),
            (server, None) => server_dsn(server),
        };
        let bed = Self {
            db: open(&dsn).await,
            table: unique,
            file,
            round: Cell::new(0),
        };
        bed.execute(&format!("DROP TABLE IF EXISTS {}", bed.table))
            .await;
        bed.execute(&format!("CREATE TABLE {} (round BIGINT)", bed.table))
            .await;
        bed
    }

    async fn execute(&self, sql: &str) -> ResultSet {
        self.db.execute(statement(sql)).await.unwrap()
    }

    /// One row of this run.
    fn insert(&self) -> Statement {
        let (table, round) = (&self.table, self.round.get());
        statement(&format!("INSERT INTO {table} VALUES ({round})"))
    }

    /// How many rows this run has left, and that the database works.
    async fn count(&self) -> i64 {
        let (table, round) = (&self.table, self.round.get());
        let sql = format!("SELECT count(*) FROM {table} WHERE round = {round}");
        match self.execute(&sql).await.rows[0][0] {
            Value::Int(count) => count,
            ref other => panic!("count(*) is {other:?}"),
        }
    }

    /// Nothing is lent, waits or is being cleaned once somebody else was served, and a new run begins.
    fn next_round(&self) {
        self.round.set(self.round.get() + 1);
        if let Some(stats) = self.db.stats() {
            assert_eq!((stats.in_use, stats.waiting), (0, 0), "{stats:?}");
            assert!(stats.idle + stats.connecting <= 1, "{stats:?}");
        }
    }

    async fn finish(self) {
        self.execute(&format!("DROP TABLE {}", self.table)).await;
        self.db.close().await.unwrap();
        for end in ["", "-wal", "-shm"] {
            if let Some(file) = &self.file {
                let _ = std::fs::remove_file(format!("{}{end}", file.display()));
            }
        }
    }
}

fn statement(sql: &str) -> Statement {
    Statement::new(sql, vec![])
}

#[test]
fn a_statement_takes_effect_or_not_and_its_connection_serves_the_next() {
    run(async {
        for driver in DRIVERS {
            let bed = Bed::make(driver, "statement").await;
            let polls = drop_at_every_poll(
                async || (),
                async |()| bed.db.execute(bed.insert()).await.map(drop),
                async |(), ended| {
                    let count = bed.count().await;
                    match ended {
                        Ended::Completed(outcome) => {
                            assert_eq!((outcome.is_ok(), count), (true, 1))
                        }
                        Ended::Dropped(_) => assert!(count <= 1, "{driver}: {ended:?}"),
                    }
                    bed.next_round();
                },
            )
            .await;
            assert!(polls > 1, "{driver}");
            bed.finish().await;
        }
    });
}

#[test]
fn a_transaction_is_there_as_a_whole_or_not_and_says_if_nobody_knows() {
    run(async {
        for driver in DRIVERS {
            let bed = Bed::make(driver, "transaction").await;
            drop_at_every_poll(
                async || bed.db.transaction(),
                async |tx: &mut Transaction| {
                    tx.push(bed.insert())?;
                    tx.push(bed.insert())?;
                    tx.flush().await?;
                    tx.push(bed.insert())?;
                    tx.commit().await
                },
                async |tx, ended| {
                    let outcome = tx.check_outcome();
                    // A transaction that has not begun to commit can still be rolled back.
                    let _ = tx.rollback().await;
                    assert!(!tx.is_open());
                    let count = bed.count().await;
                    let expected: &[i64] = match (&ended, &outcome) {
                        (Ended::Completed(outcome), _) => {
                            assert!(outcome.is_ok(), "{driver}: {outcome:?}");
                            &[3]
                        }
                        (Ended::Dropped(_), Err(Error::OutcomeUnknown { .. })) => &[0, 3],
                        (Ended::Dropped(_), _) => &[0],
                    };
                    assert!(
                        expected.contains(&count),
                        "{driver}: {count} rows, {outcome:?}, {ended:?}"
                    );
                    bed.next_round();
                },
            )
            .await;
            bed.finish().await;
        }
    });
}

#[test]
fn a_transaction_that_is_sent_at_once_is_there_as_a_whole_or_not() {
    run(async {
        for driver in DRIVERS {
            let bed = Bed::make(driver, "commit").await;
            for rows in [1, 2] {
                drop_at_every_poll(
                    async || {
                        let tx = bed.db.transaction();
                        for _ in 0..rows {
                            tx.push(bed.insert()).unwrap();
                        }
                        tx
                    },
                    async |tx: &mut Transaction| tx.commit().await,
                    async |tx, ended| {
                        let outcome = tx.check_outcome();
                        let _ = tx.rollback().await;
                        let count = bed.count().await;
                        match (&ended, &outcome) {
                            (Ended::Completed(_), _) => assert_eq!(count, rows, "{driver}"),
                            (_, Err(_)) => {
                                assert!(count == 0 || count == rows, "{driver}: {count}")
                            }
                            (_, Ok(())) => assert_eq!(count, 0, "{driver}: {ended:?}"),
                        }
                        bed.next_round();
                    },
                )
                .await;
            }
            bed.finish().await;
        }
    });
}

#[test]
fn a_rollback_leaves_nothing() {
    run(async {
        for driver in DRIVERS {
            let bed = Bed::make(driver, "rollback").await;
            drop_at_every_poll(
                async || {
                    let tx = bed.db.transaction();
                    tx.push(bed.insert()).unwrap();
                    tx.flush().await.unwrap();
                    tx
                },
                async |tx: &mut Transaction| tx.rollback().await,
                async |tx, _| {
                    drop(tx);
                    assert_eq!(bed.count().await, 0, "{driver}");
                    bed.next_round();
                },
            )
            .await;
            bed.finish().await;
        }
    });
}

#[test]
fn a_stream_that_is_left_gives_its_connection_back() {
    run(async {
        for driver in DRIVERS {
            let bed = Bed::make(driver, "stream").await;
            drop_at_every_poll(
                async || (),
                async |()| {
                    let sql = "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3";
                    let rows = bed.db.stream(statement(sql), 1);
                    let mut seen = 0;
                    while let Some(chunk) = rows.next().await.unwrap() {
                        seen += chunk.rows.len();
                    }
                    seen
                },
                async |(), ended| {
                    assert!(matches!(ended, Ended::Dropped(_) | Ended::Completed(3)));
                    assert_eq!(bed.count().await, 0);
                    bed.next_round();
                },
            )
            .await;
            bed.finish().await;
        }
    });
}

#[test]
fn a_copy_stores_everything_or_nothing() {
    run(async {
        let bed = Bed::make("postgres", "copy").await;
        drop_at_every_poll(
            async || (),
            async |()| {
                let copy = bed
                    .db
                    .copy_in(statement(&format!("COPY {} FROM STDIN", bed.table)));
                let line = format!("{}\n", bed.round.get());
                for _ in 0..3 {
                    copy.send(Bytes::from(line.clone())).await.unwrap();
                }
                copy.finish().await.unwrap()
            },
            async |(), ended| {
                let count = bed.count().await;
                match ended {
                    Ended::Completed(rows) => assert_eq!((rows, count), (3, 3)),
                    Ended::Dropped(_) => assert!(count == 0 || count == 3, "{count}"),
                }
                bed.next_round();
            },
        )
        .await;
        drop_at_every_poll(
            async || (),
            async |()| {
                let sql = "COPY (SELECT generate_series(1, 1000)) TO STDOUT";
                let copy = bed.db.copy_out(statement(sql));
                while copy.next().await.unwrap().is_some() {}
            },
            async |(), _| {
                assert_eq!(bed.count().await, 0);
                bed.next_round();
            },
        )
        .await;
        bed.finish().await;
    });
}

#[test]
fn a_listener_whose_wait_is_dropped_loses_no_notification() {
    run(async {
        let bed = Bed::make("postgres", "listener").await;
        let channel = bed.table.clone();
        let notify = format!("NOTIFY {channel}, 'news'");
        drop_at_every_poll(
            async || {
                let channels = vec![channel.clone()];
                let listening = bed.db.listen(channels, Duration::from_secs(30)).unwrap();
                let listener = listening.await.unwrap();
                bed.execute(&notify).await;
                listener
            },
            async |listener: &mut Listener| listener.wait().await,
            async |mut listener, _| {
                listener.wait().await.unwrap();
                let news = listener.take();
                assert!(
                    matches!(&news[..], [News::Notification(news)] if news.payload == "news"),
                    "{news:?}"
                );
            },
        )
        .await;
        drop_at_every_poll(
            async || (),
            async |()| {
                let listening = bed
                    .db
                    .listen(vec![channel.clone()], Duration::from_secs(30));
                listening.unwrap().await.map(drop)
            },
            async |(), _| {
                bed.count().await;
            },
        )
        .await;
        bed.finish().await;
    });
}

#[test]
fn a_close_that_is_dropped_is_finished_by_the_next() {
    run(async {
        for driver in DRIVERS {
            drop_at_every_poll(
                async || {
                    let bed = Bed::make(driver, "close").await;
                    bed.execute(&format!("DROP TABLE {}", bed.table)).await;
                    bed
                },
                async |bed: &mut Bed| bed.db.close().await,
                async |bed, _| {
                    bed.db.close().await.unwrap();
                    let refused = bed.db.execute(statement("SELECT 1")).await;
                    assert!(refused.is_err(), "{driver}");
                    for end in ["", "-wal", "-shm"] {
                        if let Some(file) = &bed.file {
                            let _ = std::fs::remove_file(format!("{}{end}", file.display()));
                        }
                    }
                },
            )
            .await;
        }
    });
}

/// A server's own number of the session, a statement with one parameter, one with two.
const STATEMENTS: [(&str, [&str; 3]); 2] = [
    (
        "postgres",
        [
            "SELECT pg_backend_pid()",
            "SELECT $1::int",
            "SELECT $1::int + $2::int",
        ],
    ),
    (
        "mysql",
        ["SELECT CONNECTION_ID()", "SELECT ?", "SELECT ? + ?"],
    ),
];

fn with_ints(sql: &str, count: i64) -> Statement {
    Statement::new(sql, (0..count).map(Value::Int).collect())
}

fn is_parameter_error(outcome: Result<ResultSet, Error>) -> bool {
    matches!(outcome, Err(Error::Parameter { .. }))
}

#[test]
fn a_statement_with_missing_parameters_costs_no_connection() {
    run(async {
        for (driver, [session_id, one, two]) in STATEMENTS {
            let dsn = server_dsn(driver);
            let separator = if dsn.contains('?') { '&' } else { '?' };
            let db = open(&format!("{dsn}{separator}statement_cache=1")).await;
            let before = db.execute(statement(session_id)).await.unwrap().rows;
            for _ in 0..3 {
                db.execute(with_ints(one, 1)).await.unwrap();
                // Evicts the other statement, which is to be closed with the next request.
                db.execute(with_ints(two, 2)).await.unwrap();
                assert!(is_parameter_error(db.execute(with_ints(two, 1)).await));
            }
            let after = db.execute(statement(session_id)).await.unwrap().rows;
            assert_eq!(before, after, "{driver}");
            assert_eq!(db.stats().unwrap().broken, 0, "{driver}");
            db.close().await.unwrap();
        }
    });
}

#[test]
fn a_transaction_whose_first_statement_is_not_sent_costs_no_connection() {
    run(async {
        for (driver, [session_id, _, two]) in STATEMENTS {
            let db = open(&server_dsn(driver)).await;
            let before = db.execute(statement(session_id)).await.unwrap().rows;
            db.execute(with_ints(two, 2)).await.unwrap();
            let session = Session::new(&db);
            session.begin().unwrap();
            let refused = session.execute(&db, with_ints(two, 1), false).await;
            assert!(is_parameter_error(refused), "{driver}");
            session.roll_back().await.unwrap();
            let after = db.execute(statement(session_id)).await.unwrap().rows;
            assert_eq!(before, after, "{driver}");
            assert_eq!(db.stats().unwrap().broken, 0, "{driver}");
            db.close().await.unwrap();
        }
    });
}

#[test]
fn a_session_keeps_its_transaction_when_a_statement_has_a_nul_byte() {
    run(async {
        let bed = Bed::make("postgres", "nul").await;
        let session = Session::new(&bed.db);
        session.begin().unwrap();
        let inserted = session.execute(&bed.db, bed.insert(), false).await;
        inserted.unwrap();
        let refused = session.execute(&bed.db, statement("SELECT '\0'"), false);
        assert!(is_parameter_error(refused.await));
        let inserted = session.execute(&bed.db, bed.insert(), false).await;
        inserted.unwrap();
        session.commit().await.unwrap();
        let copy = bed.db.copy_in(statement("COPY \0 FROM STDIN"));
        let refused = copy.finish().await;
        assert!(
            matches!(refused, Err(Error::Parameter { .. })),
            "{refused:?}"
        );
        assert_eq!(bed.count().await, 2);
        let stats = bed.db.stats().unwrap();
        assert_eq!((stats.created, stats.broken), (1, 0));
        bed.finish().await;
    });
}
