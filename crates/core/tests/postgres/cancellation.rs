use std::rc::Rc;
use std::time::{Duration, Instant};

use weft_core::sql::postgres::Database;
use weft_core::sql::{Error, Value};

use crate::support::*;

/// Starts a statement as a task, waits until the server is busy with it, and drops its future.
async fn cancel_when_running(db: &Rc<Database>, statement: &str) {
    let running = Rc::clone(db);
    let statement = marked(statement);
    let text = statement.clone();
    let task = tokio::task::spawn_local(async move { query(&running, &text, vec![]).await });
    until_running(&statement).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
}

/// The statement as no other process of these tests runs it.
fn marked(statement: &str) -> String {
    format!("{statement} /* {} */", std::process::id())
}

/// While it is only being parsed, a statement that sleeps does not sleep yet.
async fn until_running(statement: &str) {
    let observer = database(1);
    let look = "SELECT count(*) FROM pg_stat_activity WHERE query = $1 AND state = 'active' AND (wait_event IS NOT DISTINCT FROM 'PgSleep') = (query LIKE '%pg_sleep%')";
    let waiting = async {
        loop {
            let result = query(&observer, look, vec![text(statement)]).await.unwrap();
            if result.rows != vec![vec![Value::Int(0)]] {
                return;
            }
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    assert!(waited.is_ok(), "{statement} never ran");
}

#[test]
fn a_dropped_statement_is_cancelled_on_the_server_and_its_connection_lent_again() {
    run(async {
        let db = database(1);
        let started = Instant::now();
        cancel_when_running(&db, "SELECT pg_sleep(30)").await;
        assert_eq!(db.stats().in_use, 1);
        assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!((db.stats().created, db.stats().broken), (1, 0));
    });
}

#[test]
fn a_cancellation_never_hits_the_next_statement() {
    run(async {
        let db = database(1);
        for round in 0..30 {
            let running = Rc::clone(&db);
            let sleep = format!("SELECT pg_sleep({})", 0.018 + f64::from(round) * 0.0003);
            let task =
                tokio::task::spawn_local(async move { query(&running, &sleep, vec![]).await });
            tokio::time::sleep(Duration::from_millis(2)).await;
            task.abort();
            for _ in 0..5 {
                assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
            }
        }
        assert_eq!(db.stats().created, 1);
    });
}

#[test]
fn a_dropped_flush_ends_its_transaction() {
    run(async {
        let table = Table::create("dropped_flush", "id int").await;
        let db = database(1);
        let tx = Rc::new(begin(&db));
        push(
            &tx,
            &format!("INSERT INTO {} VALUES (1)", table.name),
            vec![],
        );
        tx.flush().await.unwrap();
        push(&tx, &marked("SELECT pg_sleep(31)"), vec![]);
        let flushed = Rc::clone(&tx);
        let task = tokio::task::spawn_local(async move { flushed.flush().await });
        until_running(&marked("SELECT pg_sleep(31)")).await;
        task.abort();
        assert!(task.await.is_err());
        let error = tx.commit().await.unwrap_err();
        assert!(matches!(error, Error::Cancelled { .. }), "{error}");
        assert_eq!(table.count(&db).await, 0);
        assert_eq!(db.stats().created, 1);
    });
}

#[test]
fn a_flush_dropped_while_it_waits_for_a_connection_loses_nothing() {
    run(async {
        let table = Table::create("waiting_flush", "id int").await;
        let db = database(1);
        let holder = begin(&db);
        push(&holder, "SELECT 1", vec![]);
        holder.flush().await.unwrap();
        let tx = begin(&db);
        push(
            &tx,
            &format!("INSERT INTO {} VALUES (1)", table.name),
            vec![],
        );
        let waited = tokio::time::timeout(Duration::from_millis(20), tx.flush()).await;
        assert!(waited.is_err());
        assert_eq!((tx.pending(), db.stats().waiting), (1, 0));
        holder.commit().await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(table.count(&db).await, 1);
    });
}

#[test]
fn a_large_answer_nobody_wants_is_cut_short() {
    run(async {
        let db = database(1);
        let statement = "SELECT repeat('x', 1000) FROM generate_series(1, 100000000)";
        cancel_when_running(&db, statement).await;
        assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
        assert_eq!(db.stats().created, 1);
    });
}

#[test]
fn a_backend_killed_in_the_middle_is_a_lost_connection_and_never_lent_again() {
    run(async {
        let db = database(1);
        let killer = database(1);
        let pid = scalar(&db, "SELECT pg_backend_pid()").await;
        let running = Rc::clone(&db);
        let task = tokio::task::spawn_local(async move {
            query(&running, &marked("SELECT pg_sleep(32)"), vec![]).await
        });
        until_running(&marked("SELECT pg_sleep(32)")).await;
        query(
            &killer,
            "SELECT pg_terminate_backend($1::int)",
            vec![pid.clone()],
        )
        .await
        .unwrap();
        let error = task.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::ConnectionLost { .. }), "{error}");
        assert!(error.to_string().contains("57P01"), "{error}");
        assert_ne!(scalar(&db, "SELECT pg_backend_pid()").await, pid);
        assert_eq!((db.stats().created, db.stats().broken), (2, 1));
    });
}

#[test]
fn a_backend_killed_while_idle_is_noticed_before_it_is_lent() {
    run(async {
        let db = database(1);
        let killer = database(1);
        let pid = scalar(&db, "SELECT pg_backend_pid()").await;
        query(
            &killer,
            "SELECT pg_terminate_backend($1::int, 5000)",
            vec![pid.clone()],
        )
        .await
        .unwrap();
        // The news has to pass the kernel and Tokio's poll.
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_ne!(scalar(&db, "SELECT pg_backend_pid()").await, pid);
    });
}

#[test]
fn a_transaction_whose_backend_is_killed_fails_and_stays_failed() {
    run(async {
        let db = database(1);
        let killer = database(1);
        let tx = begin(&db);
        let index = push(&tx, "SELECT pg_backend_pid()", vec![]);
        tx.flush().await.unwrap();
        let pid = tx
            .take_result(index)
            .unwrap()
            .unwrap()
            .rows
            .remove(0)
            .remove(0);
        query(
            &killer,
            "SELECT pg_terminate_backend($1::int, 5000)",
            vec![pid],
        )
        .await
        .unwrap();
        push(&tx, "SELECT 1", vec![]);
        let error = tx.commit().await.unwrap_err();
        assert!(matches!(error, Error::ConnectionLost { .. }), "{error}");
        tx.rollback().await.unwrap();
        assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
    });
}

#[test]
fn an_exhausted_pool_tells_its_numbers() {
    run(async {
        let mut options = pool(1);
        options.borrow_timeout = Duration::from_millis(500);
        options.name = "small".to_owned();
        let db = Database::open(config(), options);
        let tx = begin(&db);
        push(&tx, "SELECT 1", vec![]);
        tx.flush().await.unwrap();
        let error = query(&db, "SELECT 1", vec![]).await.unwrap_err();
        let message = error.to_string();
        let numbers = "pool \"small\" is exhausted: 1 of 1 connections in use, 1 waiting, timed out after 500ms; held by an unknown task for ";
        assert!(
            message.starts_with(numbers) && message.ends_with(" s, last statement: SELECT 1"),
            "{message}"
        );
        tx.commit().await.unwrap();
        assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
    });
}
