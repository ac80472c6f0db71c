//! `max_pipeline`: statements that wait for a connection are sent together.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_local};
use weft_core::pool::Borrower;
use weft_core::sql::postgres::{Config, Database, Isolation, Transaction, TransactionOptions};
use weft_core::sql::{Error, ResultSet, Value};

use super::support::{
    Table, begin, execute, pool, push, query, run, scalar, sql, sqlstate, text, url,
};

fn open(limit: usize, size: usize) -> Rc<Database> {
    let url = format!("{}?max_pipeline={limit}", url());
    Database::open(Config::parse(&url).unwrap(), pool(size))
}

/// One connection, on which the statements are prepared already.
async fn database(limit: usize, prepared: &[&str]) -> Rc<Database> {
    let db = open(limit, 1);
    for statement in prepared {
        let parameters = statement.matches('$').count();
        query(&db, statement, vec![Value::Int(-1); parameters])
            .await
            .unwrap();
    }
    db
}

fn start(
    db: &Rc<Database>,
    statement: &str,
    params: Vec<Value>,
) -> JoinHandle<Result<ResultSet, Error>> {
    let (db, statement) = (Rc::clone(db), sql(statement, params));
    spawn_local(async move { db.execute_single(statement).await })
}

async fn value(task: JoinHandle<Result<ResultSet, Error>>) -> Value {
    task.await.unwrap().unwrap().rows.remove(0).remove(0)
}

/// Starts what has the only connection until others wait for it.
async fn occupy(db: &Rc<Database>) -> JoinHandle<Result<ResultSet, Error>> {
    let occupied = start(db, "SELECT pg_sleep(0.05)", vec![]);
    is_lent(db).await;
    occupied
}

async fn is_lent(db: &Database) {
    while db.stats().in_use == 0 {
        tokio::task::yield_now().await;
    }
}

async fn serves_and_closes(db: &Rc<Database>) {
    let next = start(db, "SELECT $1::int", vec![Value::Int(7)]);
    assert_eq!(value(next).await, Value::Int(7));
    db.close().await;
}

const DOUBLE: &str = "SELECT $1::int * 2, pg_current_xact_id_if_assigned() IS NULL, now()";

#[test]
fn each_task_gets_its_own_result_of_a_transaction_of_its_own() {
    run(async {
        let db = database(8, &[DOUBLE]).await;
        let occupied = occupy(&db).await;
        let tasks: Vec<_> = (0..20)
            .map(|number| start(&db, DOUBLE, vec![Value::Int(number)]))
            .collect();
        let mut times = Vec::new();
        for (number, task) in tasks.into_iter().enumerate() {
            let mut row = task.await.unwrap().unwrap().rows.remove(0);
            times.push(row.remove(2));
            assert_eq!(row[0], Value::Int(number as i64 * 2));
        }
        occupied.await.unwrap().unwrap();
        let distinct: std::collections::BTreeSet<_> =
            times.iter().map(|time| format!("{time:?}")).collect();
        assert_eq!(distinct.len(), 20, "now() is the begin of a transaction");
        assert_eq!(db.stats().in_use, 0);
        db.close().await;
    });
}

#[test]
fn those_that_wait_share_round_trips_up_to_the_limit() {
    run(async {
        for (limit, lends) in [(1, 16), (4, 4), (16, 1), (1_000, 1)] {
            let db = database(limit, &[DOUBLE]).await;
            let occupied = occupy(&db).await;
            let before = db.stats().borrowed;
            let tasks: Vec<_> = (0..16)
                .map(|number| start(&db, DOUBLE, vec![Value::Int(number)]))
                .collect();
            for task in tasks {
                task.await.unwrap().unwrap();
            }
            occupied.await.unwrap().unwrap();
            assert_eq!(db.stats().borrowed - before, lends, "at most {limit}");
            db.close().await;
        }
    });
}

#[test]
fn one_that_fails_fails_alone_with_its_own_words() {
    run(async {
        let table = Table::create("shared_failure", "id int PRIMARY KEY").await;
        let insert = format!("INSERT INTO {} VALUES ($1) RETURNING id", table.name);
        let db = database(16, &[&insert, "SELECT 1 / $1::int"]).await;
        let occupied = occupy(&db).await;
        let tasks: Vec<_> = [0, 1, 1, 2, 3]
            .map(|id| start(&db, &insert, vec![Value::Int(id)]))
            .into();
        let division = start(&db, "SELECT 1 / $1::int", vec![Value::Int(0)]);
        let misfit = start(&db, &insert, vec![text("no number")]);
        let last = start(&db, &insert, vec![Value::Int(4)]);
        let mut failed = Vec::new();
        for task in tasks {
            failed.extend(task.await.unwrap().err());
        }
        assert_eq!(failed.len(), 1);
        assert_eq!(sqlstate(&failed[0]), "23505");
        assert!(
            failed[0].to_string().contains("INSERT INTO"),
            "{}",
            failed[0]
        );
        let division = division.await.unwrap().unwrap_err();
        assert_eq!(sqlstate(&division), "22012");
        let misfit = misfit.await.unwrap().unwrap_err();
        assert_eq!(sqlstate(&misfit), "22P02");
        last.await.unwrap().unwrap();
        occupied.await.unwrap().unwrap();
        assert_eq!(table.count(&db).await, 6, "-1 and 0 to 4");
        db.close().await;
    });
}

#[test]
fn the_others_go_on_when_the_first_one_is_cancelled_in_the_middle() {
    run(async {
        let table = Table::create("shared_cancel", "id int").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let sleep = "SELECT pg_sleep($1::int / 100.0)";
        let db = database(16, &[&insert, sleep]).await;
        let occupied = occupy(&db).await;
        let first = start(&db, sleep, vec![Value::Int(10)]);
        let others: Vec<_> = (0..5)
            .map(|id| start(&db, &insert, vec![Value::Int(id)]))
            .collect();
        occupied.await.unwrap().unwrap();
        is_lent(&db).await;
        first.abort();
        for other in others {
            other.await.unwrap().unwrap();
        }
        assert_eq!(table.count(&db).await, 6);
        db.close().await;
    });
}

#[test]
fn statements_that_nobody_waits_for_any_more_are_cancelled() {
    run(async {
        let sleep = "SELECT pg_sleep($1::int)";
        let db = database(16, &["SELECT $1::int", sleep]).await;
        let occupied = occupy(&db).await;
        let tasks: Vec<_> = (0..3)
            .map(|_| start(&db, sleep, vec![Value::Int(600)]))
            .collect();
        occupied.await.unwrap().unwrap();
        is_lent(&db).await;
        tasks.iter().for_each(JoinHandle::abort);
        serves_and_closes(&db).await;
    });
}

#[test]
fn a_slow_statement_is_cancelled_when_the_others_have_their_results() {
    run(async {
        let sleep = "SELECT pg_sleep($1::int)";
        let db = database(16, &["SELECT $1::int", sleep]).await;
        let occupied = occupy(&db).await;
        let fast = start(&db, "SELECT $1::int", vec![Value::Int(1)]);
        let slow = start(&db, sleep, vec![Value::Int(600)]);
        assert_eq!(value(fast).await, Value::Int(1));
        slow.abort();
        occupied.await.unwrap().unwrap();
        serves_and_closes(&db).await;
    });
}

#[test]
fn the_first_task_of_a_group_borrows_again_while_the_others_wait() {
    run(async {
        let sleep = "SELECT $1::int, pg_sleep(0.1)";
        let db = database(16, &["SELECT $1::int", sleep]).await;
        let of_task = |task| {
            Rc::new(db.on_behalf_of(Borrower {
                task: Some(task),
                ..Borrower::default()
            }))
        };
        let (first, second) = (of_task(1), of_task(2));
        let occupied = occupy(&db).await;
        let begun = start(&first, "SELECT $1::int", vec![Value::Int(1)]);
        let slow = start(&second, sleep, vec![Value::Int(2)]);
        assert_eq!(value(begun).await, Value::Int(1));
        let next = start(&first, "SELECT $1::int", vec![Value::Int(3)]);
        assert_eq!(value(next).await, Value::Int(3));
        assert_eq!(value(slow).await, Value::Int(2));
        occupied.await.unwrap().unwrap();
        db.close().await;
    });
}

#[test]
fn statements_run_beside_each_other_while_connections_are_idle() {
    run(async {
        let db = open(16, 3);
        let sleep = "SELECT pg_backend_pid(), pg_sleep($1::int / 20.0)";
        let sessions = async || {
            let tasks: Vec<_> = (0..3)
                .map(|_| start(&db, sleep, vec![Value::Int(1)]))
                .collect();
            let mut sessions = std::collections::BTreeSet::new();
            for task in tasks {
                sessions.insert(format!("{:?}", value(task).await));
            }
            sessions.len()
        };
        assert_eq!(sessions().await, 3);
        // After a pause the pool looks at its sockets before it lends.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(sessions().await, 3);
        db.close().await;
    });
}

#[test]
fn a_task_that_is_cancelled_while_it_waits_is_not_sent() {
    run(async {
        let table = Table::create("shared_leave", "id int").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let db = database(16, &[&insert]).await;
        let occupied = occupy(&db).await;
        let tasks: Vec<_> = (0..6)
            .map(|id| start(&db, &insert, vec![Value::Int(id)]))
            .collect();
        tokio::task::yield_now().await;
        for task in tasks.iter().step_by(2) {
            task.abort();
        }
        for task in tasks.into_iter().skip(1).step_by(2) {
            task.await.unwrap().unwrap();
        }
        occupied.await.unwrap().unwrap();
        let ids = execute(&db, &format!("SELECT id FROM {} ORDER BY id", table.name)).await;
        let ids: Vec<_> = ids.rows.into_iter().flatten().collect();
        assert_eq!(ids, [-1, 1, 3, 5].map(Value::Int));
        db.close().await;
    });
}

#[test]
fn those_after_a_lost_connection_fail_and_the_next_ones_get_another() {
    run(async {
        let kill =
            "SELECT pg_terminate_backend(CASE $1::int WHEN 0 THEN pg_backend_pid() ELSE 0 END)";
        let db = database(16, &[DOUBLE, kill]).await;
        let occupied = occupy(&db).await;
        let before = start(&db, DOUBLE, vec![Value::Int(1)]);
        let end = start(&db, kill, vec![Value::Int(0)]);
        let after: Vec<_> = (0..3)
            .map(|number| start(&db, DOUBLE, vec![Value::Int(number)]))
            .collect();
        occupied.await.unwrap().unwrap();
        assert_eq!(value(before).await, Value::Int(2));
        for task in std::iter::once(end).chain(after) {
            let lost = task.await.unwrap().unwrap_err();
            assert!(matches!(lost, Error::ConnectionLost { .. }), "{lost}");
        }
        assert_eq!(
            value(start(&db, DOUBLE, vec![Value::Int(4)])).await,
            Value::Int(8)
        );
        db.close().await;
    });
}

#[test]
fn a_statement_whose_table_has_changed_is_prepared_again() {
    run(async {
        let table = Table::create("shared_change", "id int").await;
        let select = format!("SELECT * FROM {} WHERE $1::int < 9", table.name);
        let db = database(16, &[&select, DOUBLE]).await;
        execute(&db, &format!("INSERT INTO {} VALUES (1)", table.name)).await;
        execute(&db, &format!("ALTER TABLE {} ADD name text", table.name)).await;
        let occupied = occupy(&db).await;
        let mut tasks = Vec::new();
        for number in 0..3 {
            tasks.push((start(&db, &select, vec![Value::Int(number)]), 2));
            tasks.push((start(&db, DOUBLE, vec![Value::Int(number)]), 3));
        }
        for (task, columns) in tasks {
            assert_eq!(task.await.unwrap().unwrap().columns.len(), columns);
        }
        occupied.await.unwrap().unwrap();
        db.close().await;
    });
}

#[test]
fn what_changes_the_session_or_is_not_prepared_is_sent_alone() {
    run(async {
        let set = "SELECT set_config('application_name', 'x' || $1::int, false)";
        let name = "SELECT current_setting('application_name'), $1::int";
        let db = database(16, &[set, name]).await;
        let occupied = occupy(&db).await;
        let changed = start(&db, set, vec![Value::Int(1)]);
        let seen = start(&db, name, vec![Value::Int(1)]);
        let new = start(&db, "SELECT 'new', $1::int", vec![Value::Int(1)]);
        assert_eq!(value(changed).await, text("x1"));
        assert_ne!(value(seen).await, text("x1"));
        assert_eq!(value(new).await, text("new"));
        occupied.await.unwrap().unwrap();
        db.close().await;
    });
}

#[test]
fn nothing_is_lost_or_mixed_up_when_tasks_are_cancelled_at_any_time() {
    run(async {
        let db = database(5, &[DOUBLE]).await;
        let mut random = 1_u64;
        for round in 0..60 {
            let tasks: Vec<_> = (0..30)
                .map(|number| start(&db, DOUBLE, vec![Value::Int(round * 100 + number)]))
                .collect();
            for (number, task) in tasks.into_iter().enumerate() {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                match random >> 60 {
                    0..4 => task.abort(),
                    4 => {
                        tokio::time::sleep(Duration::from_micros(random >> 54)).await;
                        task.abort();
                    }
                    _ => assert_eq!(
                        value(task).await,
                        Value::Int((round * 100 + number as i64) * 2)
                    ),
                }
            }
        }
        assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
        db.close().await;
        assert_eq!(db.stats().in_use, 0);
    });
}

/// A transaction that inserts each id by a statement of its own.
fn insert_all(
    db: &Rc<Database>,
    options: TransactionOptions,
    insert: &str,
    ids: &[i64],
) -> JoinHandle<Result<(), Error>> {
    let tx = db.transaction(options);
    for &id in ids {
        push(&tx, insert, vec![Value::Int(id)]);
    }
    spawn_local(async move { tx.commit().await })
}

fn commit(tx: &Rc<Transaction>) -> JoinHandle<Result<(), Error>> {
    let tx = Rc::clone(tx);
    spawn_local(async move { tx.commit().await })
}

const NONE: TransactionOptions = TransactionOptions {
    isolation: None,
    read_only: false,
};

#[test]
fn transactions_that_are_sent_as_a_whole_share_round_trips() {
    run(async {
        for (limit, lends) in [(1, 8), (4, 4), (5, 4), (16, 1)] {
            let table = Table::create("shared_whole", "id int").await;
            let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
            let db = database(limit, &[&insert]).await;
            let occupied = occupy(&db).await;
            let before = db.stats().borrowed;
            let tasks: Vec<_> = (0..8)
                .map(|id| insert_all(&db, NONE, &insert, &[2 * id, 2 * id + 1]))
                .collect();
            for task in tasks {
                task.await.unwrap().unwrap();
            }
            occupied.await.unwrap().unwrap();
            assert_eq!(db.stats().borrowed - before, lends, "at most {limit}");
            assert_eq!(table.count(&db).await, 17);
            let transactions = format!("SELECT count(DISTINCT xmin::text) FROM {}", table.name);
            assert_eq!(scalar(&db, &transactions).await, Value::Int(9));
            db.close().await;
        }
    });
}

#[test]
fn results_of_a_transaction_that_shared_a_round_trip_are_its_own() {
    run(async {
        let db = database(16, &[DOUBLE]).await;
        let occupied = occupy(&db).await;
        let mut tasks = Vec::new();
        for number in 0..4 {
            let tx = begin(&db);
            push(&tx, DOUBLE, vec![Value::Int(number)]);
            push(&tx, DOUBLE, vec![Value::Int(number + 100)]);
            let single = start(&db, DOUBLE, vec![Value::Int(number + 200)]);
            let task = spawn_local(async move { tx.commit().await.map(|()| tx) });
            tasks.push((number, task, single));
        }
        for (number, task, single) in tasks {
            let tx = task.await.unwrap().unwrap();
            for (at, base) in [(0, 0), (1, 100)] {
                let rows = tx.take_result(at).unwrap().unwrap().rows;
                assert_eq!(rows[0][0], Value::Int(2 * (number + base)));
            }
            assert_eq!(value(single).await, Value::Int(2 * (number + 200)));
            assert!(!tx.is_open());
        }
        occupied.await.unwrap().unwrap();
        db.close().await;
    });
}

#[test]
fn a_transaction_that_fails_fails_as_a_whole_and_alone() {
    run(async {
        let columns = "id int PRIMARY KEY, parent int";
        let table = Table::create("shared_undone", columns).await;
        let name = &table.name;
        let setup = database(1, &[]).await;
        execute(&setup, &format!("ALTER TABLE {name} ADD FOREIGN KEY (parent) REFERENCES {name} DEFERRABLE INITIALLY DEFERRED")).await;
        let insert = format!("INSERT INTO {name} VALUES ($1)");
        let orphan = format!("INSERT INTO {name} VALUES ($1, $1 + 1000)");
        let db = database(16, &[&insert]).await;
        query(&setup, &insert, vec![Value::Int(0)]).await.unwrap();
        let tx = begin(&db);
        push(&tx, &insert, vec![Value::Int(500)]);
        push(&tx, &orphan, vec![Value::Int(501)]);
        let unprepared = tx.commit().await.unwrap_err();
        assert_eq!(sqlstate(&unprepared), "23503", "and it is prepared now");
        let occupied = occupy(&db).await;
        let first = insert_all(&db, NONE, &insert, &[1, 2]);
        let twice = insert_all(&db, NONE, &insert, &[3, 0]);
        let tx = begin(&db);
        push(&tx, &insert, vec![Value::Int(4)]);
        push(&tx, &orphan, vec![Value::Int(5)]);
        let unresolved = spawn_local(async move {
            let outcome = tx.commit().await;
            assert_eq!(tx.failed(), None, "the commit failed");
            outcome
        });
        let misfit = begin(&db);
        push(&misfit, &insert, vec![Value::Int(6)]);
        push(&misfit, &insert, vec![text("no number")]);
        let misfit = spawn_local(async move { misfit.commit().await });
        let last = insert_all(&db, NONE, &insert, &[7, 8]);
        first.await.unwrap().unwrap();
        let twice = twice.await.unwrap().unwrap_err();
        assert_eq!(sqlstate(&twice), "23505");
        assert!(twice.to_string().contains("INSERT INTO"), "{twice}");
        let unresolved = unresolved.await.unwrap().unwrap_err();
        assert_eq!(sqlstate(&unresolved), "23503");
        let misfit = misfit.await.unwrap().unwrap_err();
        assert_eq!(sqlstate(&misfit), "22P02");
        last.await.unwrap().unwrap();
        occupied.await.unwrap().unwrap();
        let ids = execute(&db, &format!("SELECT id FROM {name} ORDER BY id")).await;
        let ids: Vec<_> = ids.rows.into_iter().flatten().collect();
        assert_eq!(ids, [-1, 0, 1, 2, 7, 8].map(Value::Int));
        db.close().await;
    });
}

#[test]
fn a_transaction_with_options_or_a_statement_that_was_sent_is_not_shared() {
    run(async {
        let table = Table::create("shared_options", "id int").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let db = open(16, 1);
        query(&db, &insert, vec![Value::Int(-1)]).await.unwrap();
        let begun = begin(&db);
        push(&begun, &insert, vec![Value::Int(0)]);
        begun.flush().await.unwrap();
        let before = db.stats().borrowed;
        let serializable = TransactionOptions {
            isolation: Some(Isolation::Serializable),
            ..NONE
        };
        let tasks = [
            insert_all(&db, serializable, &insert, &[1, 2]),
            insert_all(&db, NONE, &insert, &[3, 4]),
            insert_all(&db, serializable, &insert, &[5, 6]),
        ];
        tokio::task::yield_now().await;
        push(&begun, &insert, vec![Value::Int(7)]);
        begun.commit().await.unwrap();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(db.stats().borrowed - before, 3);
        assert_eq!(table.count(&db).await, 9);
        db.close().await;
    });
}

#[test]
fn the_outcome_of_a_transaction_is_unknown_after_its_connection_is_lost() {
    run(async {
        let table = Table::create("shared_lost", "id int").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let kill =
            "SELECT pg_terminate_backend(CASE $1::int WHEN 0 THEN pg_backend_pid() ELSE 0 END)";
        let db = database(16, &[&insert, kill]).await;
        let occupied = occupy(&db).await;
        let before = insert_all(&db, NONE, &insert, &[1, 2]);
        let end = start(&db, kill, vec![Value::Int(0)]);
        let after = insert_all(&db, NONE, &insert, &[3, 4]);
        let cancelled = insert_all(&db, NONE, &insert, &[5, 6]);
        tokio::task::yield_now().await;
        cancelled.abort();
        occupied.await.unwrap().unwrap();
        before.await.unwrap().unwrap();
        end.await.unwrap().unwrap_err();
        let unknown = after.await.unwrap().unwrap_err();
        assert!(
            matches!(unknown, Error::OutcomeUnknown { .. }),
            "{unknown:?}"
        );
        assert_eq!(table.count(&db).await, 3, "-1, 1 and 2");
        db.close().await;
    });
}

#[test]
fn a_transaction_whose_commit_is_cancelled_has_ended_and_knows_whether_it_was_sent() {
    run(async {
        let sleep = "SELECT pg_sleep($1::int / 50.0)";
        for (limit, is_sent) in [(1, false), (16, false), (16, true)] {
            let db = database(limit, &[sleep]).await;
            let occupied = occupy(&db).await;
            let tx = Rc::new(begin(&db));
            push(&tx, sleep, vec![Value::Int(5)]);
            let commit = commit(&tx);
            let other = start(&db, sleep, vec![Value::Int(1)]);
            tokio::task::yield_now().await;
            if is_sent {
                occupied.await.unwrap().unwrap();
                is_lent(&db).await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            commit.abort();
            let _ = commit.await;
            assert!(!tx.is_open());
            let result = tx.take_result(0).unwrap().unwrap_err();
            match is_sent {
                true => assert!(matches!(result, Error::OutcomeUnknown { .. }), "{result:?}"),
                false => assert!(matches!(result, Error::Cancelled { .. }), "{result:?}"),
            }
            assert_eq!(tx.check_outcome().is_err(), is_sent);
            assert!(tx.push(sql("SELECT 1", vec![])).is_err());
            other.await.unwrap().unwrap();
            db.close().await;
            assert_eq!(db.stats().in_use, 0);
        }
    });
}

#[test]
fn a_transaction_that_is_cancelled_may_still_run_after_the_others_and_says_so() {
    run(async {
        let table = Table::create("shared_late", "id int").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let sleep = "SELECT pg_sleep($1::int / 10.0)";
        let (db, observer) = (
            database(16, &[&insert, sleep]).await,
            database(1, &[]).await,
        );
        let occupied = occupy(&db).await;
        let slow = start(&db, sleep, vec![Value::Int(3)]);
        let tx = Rc::new(begin(&db));
        push(&tx, &insert, vec![Value::Int(1)]);
        let commit = commit(&tx);
        occupied.await.unwrap().unwrap();
        is_lent(&db).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        commit.abort();
        let _ = commit.await;
        let unknown = tx.check_outcome().unwrap_err().to_string();
        assert!(
            unknown.contains("it may still run after those"),
            "{unknown}"
        );
        assert_eq!(table.count(&observer).await, 1, "-1");
        slow.await.unwrap().unwrap();
        value(start(&db, "SELECT 1", vec![])).await;
        assert_eq!(table.count(&observer).await, 2);
        db.close().await;
        observer.close().await;
    });
}

#[test]
fn a_task_that_holds_a_lock_is_not_overtaken_by_what_waits_for_it() {
    run(async {
        let table = Table::create("shared_overtaken", "id int").await;
        let update = format!("UPDATE {} SET id = id WHERE id = $1", table.name);
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let db = open(16, 2);
        query(&db, &insert, vec![Value::Int(1)]).await.unwrap();
        let holder = Rc::new(db.on_behalf_of(Borrower {
            task: Some(1),
            ..Borrower::default()
        }));
        let tx = begin(&holder);
        push(&tx, &update, vec![Value::Int(1)]);
        tx.flush().await.unwrap();
        for statement in [DOUBLE, &update] {
            query(&db, statement, vec![Value::Int(-1)]).await.unwrap();
        }
        let occupied = start(&db, "SELECT pg_sleep(0.05)", vec![]);
        while db.stats().in_use < 2 {
            tokio::task::yield_now().await;
        }
        let first = start(&db, DOUBLE, vec![Value::Int(1)]);
        tokio::task::yield_now().await;
        let own = start(&holder, DOUBLE, vec![Value::Int(2)]);
        tokio::task::yield_now().await;
        let blocked = start(&db, &update, vec![Value::Int(1)]);
        assert_eq!(value(own).await, Value::Int(4));
        tx.commit().await.unwrap();
        for task in [first, blocked, occupied] {
            task.await.unwrap().unwrap();
        }
        db.close().await;
    });
}

#[test]
fn a_statement_that_has_got_a_connection_is_not_taken_along_on_another() {
    run(async {
        let db = open(16, 2);
        let sleep = "SELECT pg_backend_pid(), pg_sleep($1::int / 20.0)";
        let two = || [1, 1].map(|time| start(&db, sleep, vec![Value::Int(time)]));
        for task in two() {
            value(task).await;
        }
        let leases = [
            db.pool().borrow().await.unwrap(),
            db.pool().borrow().await.unwrap(),
        ];
        let tasks = two();
        while db.stats().waiting < 2 {
            tokio::task::yield_now().await;
        }
        drop(leases);
        let mut sessions = Vec::new();
        for task in tasks {
            sessions.push(value(task).await);
        }
        assert_ne!(sessions[0], sessions[1]);
        db.close().await;
    });
}

#[test]
fn a_transaction_with_a_value_that_does_not_fit_runs_once() {
    run(async {
        let table = Table::create("shared_once", "id serial").await;
        let next = format!("SELECT nextval('{}_id_seq'), $1::int", table.name);
        let parse = "SELECT $1::text::int";
        let db = database(16, &[&next]).await;
        query(&db, parse, vec![text("1")]).await.unwrap();
        let occupied = occupy(&db).await;
        let first = start(&db, &next, vec![Value::Int(0)]);
        let tx = begin(&db);
        push(&tx, &next, vec![Value::Int(0)]);
        push(&tx, parse, vec![text("x")]);
        let failed = tx.commit().await.unwrap_err();
        assert_eq!(sqlstate(&failed), "22P02");
        first.await.unwrap().unwrap();
        occupied.await.unwrap().unwrap();
        let last = format!("SELECT last_value FROM {}_id_seq", table.name);
        assert_eq!(scalar(&db, &last).await, Value::Int(3));
        db.close().await;
    });
}

#[test]
fn what_is_cancelled_does_not_run_when_its_statement_was_prepared_anew() {
    run(async {
        let table = Table::create("shared_anew", "id int").await;
        let insert = format!("INSERT INTO {} VALUES ($1) RETURNING *", table.name);
        let sleep = "SELECT pg_sleep($1::int / 20.0)";
        let db = database(16, &[&insert, sleep]).await;
        execute(&db, &format!("ALTER TABLE {} ADD name text", table.name)).await;
        let occupied = occupy(&db).await;
        let slow = start(&db, sleep, vec![Value::Int(2)]);
        let cancelled = [1, 2].map(|id| insert_all(&db, NONE, &insert, &[id, id]));
        let other = start(&db, &insert, vec![Value::Int(3)]);
        occupied.await.unwrap().unwrap();
        is_lent(&db).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        cancelled.iter().for_each(JoinHandle::abort);
        assert_eq!(other.await.unwrap().unwrap().columns.len(), 2);
        slow.await.unwrap().unwrap();
        assert_eq!(table.count(&db).await, 2, "-1 and 3");
        db.close().await;
    });
}

#[test]
fn large_parameters_do_not_pile_up_in_one_request() {
    run(async {
        let length = "SELECT length($1::text)";
        let db = database(16, &[]).await;
        query(&db, length, vec![text("a")]).await.unwrap();
        let occupied = occupy(&db).await;
        let before = db.stats().borrowed;
        let large = "x".repeat(400_000);
        let tasks = [0; 4].map(|_| start(&db, length, vec![text(&large)]));
        for task in tasks {
            assert_eq!(value(task).await, Value::Int(400_000));
        }
        occupied.await.unwrap().unwrap();
        assert_eq!(db.stats().borrowed - before, 2);
        db.close().await;
    });
}

#[test]
fn transactions_that_are_cancelled_at_any_time_take_effect_as_a_whole_or_not_at_all() {
    run(async {
        let table = Table::create("shared_any", "id int").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let db = database(12, &[&insert]).await;
        let mut random = 1_u64;
        let mut committed = Vec::new();
        for round in 0..30 {
            let tasks: Vec<_> = (0..20)
                .map(|number| {
                    let id = round * 100 + number;
                    (id, insert_all(&db, NONE, &insert, &[id, id, id]))
                })
                .collect();
            for (id, task) in tasks {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                match random >> 60 {
                    0..4 => task.abort(),
                    4 => {
                        tokio::time::sleep(Duration::from_micros(random >> 54)).await;
                        task.abort();
                    }
                    _ => {
                        task.await.unwrap().unwrap();
                        committed.push(Value::Int(id));
                    }
                }
            }
        }
        let counts = format!(
            "SELECT id, count(*) FROM {} WHERE id >= 0 GROUP BY id",
            table.name
        );
        let mut stored = Vec::new();
        for mut row in execute(&db, &counts).await.rows {
            assert_eq!(row.pop(), Some(Value::Int(3)), "{row:?}");
            stored.extend(row);
        }
        assert!(committed.len() > 300, "{}", committed.len());
        let lost: Vec<_> = committed.iter().filter(|id| !stored.contains(id)).collect();
        assert!(lost.is_empty(), "{lost:?}");
        db.close().await;
        assert_eq!(db.stats().in_use, 0);
    });
}
