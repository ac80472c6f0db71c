//! Every public future of the SQL clients, dropped at every poll: against PostgreSQL (`DATABASE_URL`), MariaDB or MySQL
//! (`WEFT_MYSQL_DSN`) and SQLite. What must hold: the connection comes back or is replaced, the next statement works, and a
//! transaction is there as a whole or not at all.

// Clippy exempts the tests themselves, not what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../src/cancellation_tests.rs"]
mod cancellation_tests;

use std::cell::Cell;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use cancellation_tests::{Ended, drop_at_every_poll};
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use weft_core::pool::PoolOptions;
use weft_core::sql::postgres::{Listener, News};
use weft_core::sql::{
    Database, Error, Hooks, PoolEvent, ResultSet, Session, Statement, Transaction, Value,
};

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

fn with_option(dsn: &str, option: &str) -> String {
    let separator = if dsn.contains('?') { '&' } else { '?' };
    format!("{dsn}{separator}{option}")
}

/// A database with one connection.
async fn open(dsn: &str) -> Database {
    open_with(dsn, Hooks::default()).await
}

async fn open_with(dsn: &str, hooks: Hooks) -> Database {
    let pool = PoolOptions {
        size: 1,
        borrow_timeout: Duration::from_secs(30),
        ..PoolOptions::default()
    };
    let db = Database::open(dsn, pool, hooks);
    db.unwrap().await.unwrap()
}

/// A database with one connection and a table of its own, dropped by [`finish`](Self::finish).
struct Bed {
    db: Database,
    dsn: String,
    table: String,
    file: Option<PathBuf>,
    round: Cell<i64>,
}

impl Bed {
    async fn make(driver: &str, name: &str) -> Self {
        Self::with_options(driver, name, "").await
    }

    /// `options` are those of the DSN, `name=value`.
    async fn with_options(driver: &str, name: &str, options: &str) -> Self {
        let unique = format!("weft_drop_{name}_{}", std::process::id());
        let file = (driver == "sqlite").then(|| std::env::temp_dir().join(format!("{unique}.db")));
        let dsn = match (driver, &file) {
            (_, Some(file)) => format!("sqlite:{}", file.display()),
            (server, None) if options.is_empty() => server_dsn(server),
            (server, None) => with_option(&server_dsn(server), options),
        };
        let bed = Self {
            db: open(&dsn).await,
            dsn,
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
fn a_transaction_that_shares_a_round_trip_is_there_as_a_whole_or_not_and_so_is_the_other() {
    run(async {
        let bed = Bed::with_options("postgres", "shared", "max_pipeline=8").await;
        let insert = |round| {
            let sql = format!("INSERT INTO {} VALUES ($1)", bed.table);
            Statement::new(sql, vec![Value::Int(round)])
        };
        let committing = |statements: Vec<Statement>| {
            let tx = bed.db.transaction();
            for statement in statements {
                tx.push(statement).unwrap();
            }
            spawn_local(async move { tx.commit().await })
        };
        bed.db.execute(insert(-1)).await.unwrap();
        for is_first in [true, false] {
            let polls = drop_at_every_poll(
                async || {
                    let occupying = committing(vec![statement("SELECT pg_sleep(0.01)")]);
                    while bed.db.stats().unwrap().in_use == 0 {
                        tokio::task::yield_now().await;
                    }
                    let other = committing(vec![insert(-bed.round.get() - 2)]);
                    if !is_first {
                        tokio::task::yield_now().await;
                    }
                    let tx = bed.db.transaction();
                    tx.push(insert(bed.round.get())).unwrap();
                    tx.push(insert(bed.round.get())).unwrap();
                    (tx, occupying, other)
                },
                async |(tx, ..): &mut (Transaction, _, _)| tx.commit().await,
                async |(tx, occupying, other), ended| {
                    let outcome = tx.check_outcome();
                    let _ = tx.rollback().await;
                    assert!(!tx.is_open());
                    occupying.await.unwrap().unwrap();
                    other.await.unwrap().unwrap();
                    let count = bed.count().await;
                    match (&ended, &outcome) {
                        (Ended::Completed(outcome), _) => {
                            assert_eq!((outcome.is_ok(), count), (true, 2))
                        }
                        (_, Err(_)) => assert!(count == 0 || count == 2, "{count}"),
                        (_, Ok(())) => assert_eq!(count, 0, "{ended:?}"),
                    }
                    bed.next_round();
                },
            )
            .await;
            assert!(polls > 1, "{polls}");
        }
        let count = format!("SELECT count(*) FROM {} WHERE round < -1", bed.table);
        let others = bed.execute(&count).await;
        assert_eq!(others.rows[0][0], Value::Int(bed.round.get()));
        bed.finish().await;
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
fn a_listener_that_is_dropped_while_it_reconnects_reports_the_gap_once_and_listens_again() {
    run(async {
        let bed = Bed::make("postgres", "reconnect").await;
        let channel = bed.table.clone();
        let terminate = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN \"{channel}\"'"
        );
        let news_of = async |listener: &mut Listener| {
            let mut news = listener.take();
            while news.is_empty() {
                listener.wait().await.unwrap();
                news = listener.take();
            }
            news
        };
        let polls = drop_at_every_poll(
            async || {
                let channels = vec![channel.clone()];
                let listening = bed.db.listen(channels, Duration::from_secs(30)).unwrap();
                let listener = listening.await.unwrap();
                while bed.execute(&terminate).await.rows.is_empty() {}
                listener
            },
            async |listener: &mut Listener| listener.wait().await,
            async |mut listener, ended| {
                if let Ended::Completed(outcome) = ended {
                    outcome.unwrap();
                }
                let news = news_of(&mut listener).await;
                assert!(matches!(news[..], [News::Missed { .. }]), "{news:?}");
                bed.execute(&format!("NOTIFY {channel}, 'news'")).await;
                let news = news_of(&mut listener).await;
                assert!(
                    matches!(&news[..], [News::Notification(news)] if news.payload == "news"),
                    "{news:?}"
                );
            },
        )
        .await;
        // The loss, and the steps of a log-in.
        assert!(polls > 3, "{polls}");
        bed.finish().await;
    });
}

/// A database whose hooks run a statement on their connection, as those of a program do.
struct Hooked {
    db: Database,
    calls: Rc<Cell<usize>>,
    answering: AbortHandle,
}

impl Hooked {
    async fn open(dsn: &str) -> Self {
        let hooks = Hooks {
            created: true,
            borrowed: true,
            returned: true,
            closed: true,
        };
        let db = open_with(dsn, hooks).await;
        let calls = Rc::new(Cell::new(0));
        let answering = spawn_local(answer_hooks(db.clone(), Rc::clone(&calls)));
        Self {
            db,
            calls,
            answering: answering.abort_handle(),
        }
    }

    /// Waits until nothing is lent, being returned or opened.
    async fn settle(&self) {
        loop {
            let stats = self.db.stats().unwrap();
            if (stats.in_use, stats.waiting, stats.connecting) == (0, 0, 0) {
                return assert!(stats.idle <= 1, "{stats:?}");
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn close(self) {
        self.db.close().await.unwrap();
        self.answering.abort();
    }
}

async fn answer_hooks(db: Database, calls: Rc<Cell<usize>>) {
    let events = db.events().unwrap();
    loop {
        events.wait().await;
        for event in events.take() {
            // 0 is a connection that is closed, which awaits no answer.
            if let PoolEvent::Hook { call, .. } = event
                && call > 0
            {
                calls.set(calls.get() + 1);
                // An error where the borrower has left.
                let outcome = db.execute_in_hook(call, statement("SELECT 1")).await;
                db.end_hook(call, outcome.map(drop));
            }
        }
    }
}

#[test]
fn a_borrower_for_whom_hooks_run_may_leave_at_any_time() {
    run(async {
        for driver in ["postgres", "mysql"] {
            let bed = Bed::make(driver, "hooks").await;
            for is_connected in [false, true] {
                let polls = drop_at_every_poll(
                    async || {
                        let hooked = Hooked::open(&bed.dsn).await;
                        if is_connected {
                            hooked.db.execute(statement("SELECT 1")).await.unwrap();
                            hooked.settle().await;
                        }
                        hooked
                    },
                    async |hooked: &mut Hooked| hooked.db.execute(bed.insert()).await.map(drop),
                    async |hooked, ended| {
                        let next = hooked.db.execute(statement("SELECT 1")).await;
                        assert!(next.is_ok(), "{driver}: {next:?}, {ended:?}");
                        hooked.settle().await;
                        // Hooks of a new connection, of its borrower, and after it.
                        let calls = hooked.calls.get();
                        assert!(calls >= 3, "{driver}: {calls}");
                        let count = bed.count().await;
                        match ended {
                            Ended::Completed(outcome) => {
                                assert_eq!((outcome.is_ok(), count), (true, 1), "{driver}")
                            }
                            Ended::Dropped(_) => assert!(count <= 1, "{driver}: {ended:?}"),
                        }
                        hooked.close().await;
                        bed.next_round();
                    },
                )
                .await;
                assert!(polls > 2, "{driver}: {polls}");
            }
            bed.finish().await;
        }
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

/// Rows of an operation of several steps, as its caller knows them where it is dropped.
#[derive(Default)]
struct Progress {
    sent: Cell<i64>,
    /// Rows of the steps that have returned.
    answered: Cell<i64>,
    is_committing: Cell<bool>,
}

impl Progress {
    /// A step that writes so many rows.
    async fn step<T>(
        &self,
        rows: i64,
        step: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.sent.set(self.sent.get() + rows);
        let result = step.await?;
        self.answered.set(self.answered.get() + rows);
        Ok(result)
    }

    async fn commit(&self, commit: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        self.is_committing.set(true);
        commit.await
    }

    /// `committed`: what a commit after the drop has returned.
    fn check<T: std::fmt::Debug>(&self, ended: &Ended<Result<(), T>>, committed: bool, count: i64) {
        let (sent, answered) = (self.sent.get(), self.answered.get());
        let is_sound = match ended {
            Ended::Completed(outcome) => outcome.is_ok() && count == sent,
            // Of the commit that was dropped only the server knows the outcome.
            Ended::Dropped(_) if self.is_committing.get() => count == 0 || count == sent,
            Ended::Dropped(_) if committed => (answered..=sent).contains(&count),
            Ended::Dropped(_) => count == 0,
        };
        assert!(
            is_sound,
            "{count} rows of {sent}, {answered} of them answered: {ended:?}, then committed: {committed}"
        );
    }
}

#[test]
fn a_statement_of_a_session_takes_effect_or_not_and_the_session_serves_the_next() {
    run(async {
        for driver in DRIVERS {
            let bed = Bed::make(driver, "alone").await;
            // The session holds a connection before the statement, or borrows one for it.
            for keep in [false, true] {
                drop_at_every_poll(
                    async || {
                        let session = Session::new(&bed.db);
                        let first = session.execute(&bed.db, statement("SELECT 1"), keep);
                        first.await.unwrap();
                        session
                    },
                    async |session: &mut Session| {
                        let inserted = session.execute(&bed.db, bed.insert(), keep).await;
                        inserted.map(drop)
                    },
                    async |session, ended| {
                        let next = session.execute(&bed.db, statement("SELECT 1"), false).await;
                        assert!(next.is_ok(), "{driver}: {next:?}, {ended:?}");
                        drop(session);
                        let count = bed.count().await;
                        match ended {
                            Ended::Completed(outcome) => {
                                assert_eq!((outcome.is_ok(), count), (true, 1), "{driver}")
                            }
                            Ended::Dropped(_) => assert!(count <= 1, "{driver}: {ended:?}"),
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

/// How a caller whose call was dropped ends its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    RollBack,
    Reset,
}

#[test]
fn a_transaction_of_a_session_has_all_that_was_answered_or_nothing() {
    run(async {
        for driver in DRIVERS {
            let bed = Bed::make(driver, "session").await;
            for end in [End::Commit, End::RollBack, End::Reset] {
                drop_at_every_poll(
                    async || (Session::new(&bed.db), Progress::default()),
                    async |(session, progress): &mut (Session, Progress)| {
                        session.begin().unwrap();
                        for _ in 0..2 {
                            let insert = session.execute(&bed.db, bed.insert(), false);
                            progress.step(1, insert).await?;
                        }
                        progress.commit(session.commit()).await
                    },
                    async |(session, progress), ended| {
                        let is_committed = match end {
                            End::Commit => session.commit().await.is_ok(),
                            _ => false,
                        };
                        match end {
                            End::Reset => session.reset(),
                            _ => session.roll_back().await.unwrap(),
                        }
                        let next = session.execute(&bed.db, statement("SELECT 1"), false).await;
                        assert!(next.is_ok(), "{driver}, {end:?}: {next:?}, {ended:?}");
                        drop(session);
                        progress.check(&ended, is_committed, bed.count().await);
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
fn a_rollback_of_a_session_leaves_nothing() {
    run(async {
        for driver in DRIVERS {
            let bed = Bed::make(driver, "undone").await;
            drop_at_every_poll(
                async || {
                    let session = Session::new(&bed.db);
                    session.begin().unwrap();
                    let inserted = session.execute(&bed.db, bed.insert(), false).await;
                    inserted.unwrap();
                    session
                },
                async |session: &mut Session| session.roll_back().await,
                async |session, ended| {
                    // Before it was polled, the transaction goes on.
                    session.roll_back().await.unwrap();
                    let next = session.execute(&bed.db, statement("SELECT 1"), false).await;
                    assert!(next.is_ok(), "{driver}: {next:?}, {ended:?}");
                    drop(session);
                    assert_eq!(bed.count().await, 0, "{driver}: {ended:?}");
                    bed.next_round();
                },
            )
            .await;
            bed.finish().await;
        }
    });
}

#[test]
fn a_session_that_is_reset_during_a_statement_is_a_new_one() {
    run(async {
        for driver in DRIVERS {
            let bed = Bed::make(driver, "reset").await;
            drop_at_every_poll(
                async || {
                    let session = Session::new(&bed.db);
                    session.begin().unwrap();
                    session
                },
                async |session: &mut Session| {
                    let insert = session.execute(&bed.db, bed.insert(), false);
                    let (inserted, ()) = tokio::join!(insert, async { session.reset() });
                    inserted.map(drop)
                },
                async |session, ended| {
                    let is_reset = !matches!(ended, Ended::Dropped(point) if point.polls == 0);
                    assert_eq!(session.begin().is_ok(), is_reset, "{driver}: {ended:?}");
                    let next = session.execute(&bed.db, statement("SELECT 1"), false).await;
                    assert!(next.is_ok(), "{driver}: {next:?}, {ended:?}");
                    session.commit().await.unwrap();
                    drop(session);
                    assert_eq!(bed.count().await, 0, "{driver}: {ended:?}");
                    bed.next_round();
                },
            )
            .await;
            bed.finish().await;
        }
    });
}

/// A statement that changes a setting of the session, and one that reads it.
const SETTINGS: [(&str, [&str; 2]); 2] = [
    (
        "postgres",
        ["SET application_name = 'kept'", "SHOW application_name"],
    ),
    ("mysql", ["SET @setting = 'kept'", "SELECT @setting"]),
];

#[test]
fn a_session_keeps_its_settings_or_says_that_it_has_lost_them() {
    run(async {
        for (driver, [set, read]) in SETTINGS {
            let bed = Bed::make(driver, "settings").await;
            for end in [End::Commit, End::RollBack] {
                drop_at_every_poll(
                    async || {
                        let session = Session::new(&bed.db);
                        let changed = session.execute(&bed.db, statement(set), false).await;
                        changed.unwrap();
                        session.begin().unwrap();
                        let inserted = session.execute(&bed.db, bed.insert(), false).await;
                        inserted.unwrap();
                        session
                    },
                    async |session: &mut Session| match end {
                        End::Commit => session.commit().await,
                        _ => session.roll_back().await,
                    },
                    async |session, ended| {
                        let setting = session.execute(&bed.db, statement(read), false).await;
                        match (setting, &ended) {
                            (Ok(setting), _) => {
                                let kept = Value::Text("kept".to_owned());
                                assert_eq!(setting.rows[0][0], kept, "{driver}: {ended:?}");
                            }
                            (
                                Err(Error::Cancelled { .. } | Error::OutcomeUnknown { .. }),
                                Ended::Dropped(point),
                            ) if point.polls > 0 => {}
                            (Err(error), _) => panic!("{driver}: {error}, {ended:?}"),
                        }
                        session.roll_back().await.unwrap();
                        let next = session.execute(&bed.db, statement("SELECT 1"), false).await;
                        assert!(next.is_ok(), "{driver}: {next:?}, {ended:?}");
                        drop(session);
                        let count = bed.count().await;
                        assert!(count <= i64::from(end == End::Commit), "{driver}: {count}");
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
fn a_cursor_in_a_transaction_that_is_left_ends_the_transaction() {
    run(async {
        let bed = Bed::make("mysql", "cursor").await;
        for end in [End::Commit, End::RollBack] {
            drop_at_every_poll(
                async || (bed.db.transaction(), Progress::default()),
                async |(tx, progress): &mut (Transaction, Progress)| {
                    progress.step(1, async { tx.push(bed.insert()) }).await?;
                    let sql = "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3";
                    let rows = tx.stream(statement(sql), 1)?;
                    let mut seen = 0;
                    while let Some(chunk) = rows.next().await? {
                        seen += chunk.rows.len();
                    }
                    assert_eq!(seen, 3);
                    progress.step(1, async { tx.push(bed.insert()) }).await?;
                    progress.commit(tx.commit()).await
                },
                async |(tx, progress), ended| {
                    check_transaction(&bed, tx, &progress, end, &ended).await;
                },
            )
            .await;
        }
        bed.finish().await;
    });
}

#[test]
fn a_copy_in_a_transaction_stores_everything_or_nothing() {
    run(async {
        let bed = Bed::make("postgres", "copies").await;
        for end in [End::Commit, End::RollBack] {
            drop_at_every_poll(
                async || (bed.db.transaction(), Progress::default()),
                async |(tx, progress): &mut (Transaction, Progress)| {
                    progress.step(1, async { tx.push(bed.insert()) }).await?;
                    let copy = tx.copy_in(statement(&format!("COPY {} FROM STDIN", bed.table)));
                    let line = format!("{}\n", bed.round.get());
                    let stored = progress.step(3, async {
                        for _ in 0..3 {
                            copy.send(Bytes::from(line.clone())).await?;
                        }
                        copy.finish().await
                    });
                    assert_eq!(stored.await?, 3);
                    progress.step(1, async { tx.push(bed.insert()) }).await?;
                    let sql = "COPY (SELECT generate_series(1, 1000)) TO STDOUT";
                    let copy = tx.copy_out(statement(sql));
                    while copy.next().await?.is_some() {}
                    progress.commit(tx.commit()).await
                },
                async |(tx, progress), ended| {
                    check_transaction(&bed, tx, &progress, end, &ended).await;
                },
            )
            .await;
        }
        bed.finish().await;
    });
}

/// Ends a transaction whose call was dropped, and checks what it has left.
async fn check_transaction(
    bed: &Bed,
    tx: Transaction,
    progress: &Progress,
    end: End,
    ended: &Ended<Result<(), Error>>,
) {
    let is_committed = match end {
        End::Commit => tx.commit().await.is_ok(),
        _ => false,
    };
    let outcome = tx.check_outcome();
    let _ = tx.rollback().await;
    assert!(!tx.is_open());
    drop(tx);
    let count = bed.count().await;
    progress.check(ended, is_committed, count);
    // Only a commit that was sent may have an outcome that is unknown.
    let is_unknown = outcome.is_err();
    assert!(!is_unknown || progress.is_committing.get(), "{outcome:?}");
    if !is_committed && !is_unknown && matches!(ended, Ended::Dropped(_)) {
        assert_eq!(count, 0, "{ended:?}");
    }
    bed.next_round();
}

/// A file of that many lines: the number of the round, and what is not stored.
fn write_lines(file: &Path, round: i64, lines: usize, length: usize) {
    let line = format!("{round}\t{}\n", "x".repeat(length));
    std::fs::write(file, line.repeat(lines)).unwrap();
}

#[test]
fn a_file_that_is_loaded_is_stored_as_a_whole_or_not() {
    const LINES: usize = 12;
    run(async {
        let bed = Bed::with_options("mysql", "infile", "local_infile=on").await;
        let file = std::env::temp_dir().join(format!("{}.tsv", bed.table));
        let load = format!(
            "LOAD DATA LOCAL INFILE '{}' INTO TABLE {} (round, @unused)",
            file.display(),
            bed.table
        );
        let observer = open(&bed.dsn).await;
        for is_in_transaction in [false, true] {
            let begun = bed.round.get();
            drop_at_every_poll(
                // Several parts are sent, and a drop may leave the server with some of them.
                async || write_lines(&file, bed.round.get(), LINES, 60_000),
                async |()| {
                    if !is_in_transaction {
                        return bed.db.execute(statement(&load)).await.map(drop);
                    }
                    let tx = bed.db.transaction();
                    tx.push(bed.insert())?;
                    tx.push(statement(&load))?;
                    tx.flush().await
                },
                async |(), ended| {
                    let count = bed.count().await;
                    let all = if is_in_transaction { 0 } else { LINES as i64 };
                    match ended {
                        Ended::Completed(outcome) => {
                            assert!(outcome.is_ok(), "{outcome:?}");
                            assert_eq!(count, all);
                        }
                        Ended::Dropped(_) => {
                            assert!(count == 0 || count == all, "{count} rows: {ended:?}")
                        }
                    }
                    bed.next_round();
                },
            )
            .await;
            // Sessions that the client has left may have gone on for a while.
            let all = if is_in_transaction { 0 } else { LINES };
            let sql = format!(
                "SELECT round, count(*) FROM {} WHERE round >= {begun} GROUP BY round HAVING count(*) <> {all}",
                bed.table
            );
            let parts = observer.execute(statement(&sql)).await.unwrap().rows;
            assert!(parts.is_empty(), "{parts:?}");
        }
        observer.close().await.unwrap();
        std::fs::remove_file(&file).unwrap();
        bed.finish().await;
    });
}

#[test]
fn a_wait_for_changes_that_is_dropped_misses_none() {
    run(async {
        let bed = Bed::make("sqlite", "change").await;
        let other = open(&bed.dsn).await;
        // The change comes before the wait, or during it.
        for is_before in [true, false] {
            drop_at_every_poll(
                async || {
                    if is_before {
                        other.execute(bed.insert()).await.unwrap();
                    }
                },
                async |()| {
                    let changed = bed.db.wait_for_change().unwrap();
                    let (changed, ()) = tokio::join!(changed, async {
                        if !is_before {
                            other.execute(bed.insert()).await.unwrap();
                        }
                    });
                    changed
                },
                async |(), ended| {
                    let is_completed = matches!(ended, Ended::Completed(_));
                    let changed = match ended {
                        Ended::Completed(changed) => changed,
                        Ended::Dropped(_) => {
                            if bed.count().await == 0 {
                                other.execute(bed.insert()).await.unwrap();
                            }
                            bed.db.wait_for_change().unwrap().await
                        }
                    };
                    assert!(changed.is_ok(), "{changed:?}");
                    // Nothing has changed since, also not for a wait that was dropped before.
                    let again = bed.db.wait_for_change().unwrap();
                    let again = tokio::time::timeout(Duration::from_millis(1), again).await;
                    assert!(again.is_err(), "{again:?}, completed: {is_completed}");
                    bed.next_round();
                },
            )
            .await;
        }
        other.close().await.unwrap();
        bed.finish().await;
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
            let db = open(&with_option(&server_dsn(driver), "statement_cache=1")).await;
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
