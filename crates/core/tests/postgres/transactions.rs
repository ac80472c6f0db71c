use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weft_core::sql::postgres::{Config, Database, Isolation, TransactionOptions};
use weft_core::sql::{Error, Value};

use crate::support::*;

#[test]
fn a_transaction_that_is_only_committed_takes_effect_as_a_whole() {
    run(async {
        let table = Table::create("whole", "id int primary key, name text").await;
        let insert = format!("INSERT INTO {} VALUES ($1, $2)", table.name);
        let db = database(1);
        let tx = begin(&db);
        let first = push(&tx, &insert, vec![Value::Int(1), text("a")]);
        let second = push(&tx, &insert, vec![Value::Int(2), Value::Null]);
        assert_eq!((first, second, tx.pending()), (0, 1, 2));
        assert!(tx.take_result(0).is_none());
        tx.commit().await.unwrap();
        assert_eq!(tx.take_result(1).unwrap().unwrap().affected, 1);
        assert!(tx.take_result(1).is_none());
        assert_eq!(table.count(&db).await, 2);
    });
}

#[test]
fn a_failure_in_the_middle_undoes_everything_and_names_its_statement() {
    run(async {
        let table = Table::create("middle", "id int primary key").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let db = database(1);
        let tx = begin(&db);
        push(&tx, &insert, vec![Value::Int(1)]);
        push(&tx, &insert, vec![Value::Int(1)]);
        push(&tx, &insert, vec![Value::Int(3)]);
        let error = tx.commit().await.unwrap_err();
        assert_eq!(sqlstate(&error), "23505");
        assert!(error.to_string().contains(&insert), "{error}");
        assert!(tx.take_result(0).unwrap().is_ok());
        assert_eq!(sqlstate(&tx.take_result(1).unwrap().unwrap_err()), "23505");
        assert_eq!(sqlstate(&tx.take_result(2).unwrap().unwrap_err()), "23505");
        assert_eq!(table.count(&db).await, 0);
        assert_eq!(db.stats().created, 1);
    });
}

#[test]
fn a_deferred_constraint_that_fails_at_the_implicit_commit_fails_the_commit() {
    run(async {
        let columns = "id int primary key, parent int";
        let table = Table::create("deferred", columns).await;
        let name = &table.name;
        let db = database(1);
        execute(&db, &format!("ALTER TABLE {name} ADD CONSTRAINT {name}_fk FOREIGN KEY (parent) REFERENCES {name} DEFERRABLE INITIALLY DEFERRED")).await;
        let insert = format!("INSERT INTO {name} VALUES ($1, $2)");
        for explicit in [false, true] {
            let tx = begin(&db);
            push(&tx, &insert, vec![Value::Int(1), Value::Int(2)]);
            if explicit {
                tx.flush().await.unwrap();
            }
            push(&tx, &insert, vec![Value::Int(3), Value::Int(1)]);
            let error = tx.commit().await.unwrap_err();
            assert_eq!(sqlstate(&error), "23503");
            assert!(error.to_string().contains("[statement: COMMIT]"), "{error}");
            assert_eq!(table.count(&db).await, 0);
        }
        let tx = begin(&db);
        push(&tx, &insert, vec![Value::Int(1), Value::Int(2)]);
        push(&tx, &insert, vec![Value::Int(2), Value::Int(1)]);
        tx.commit().await.unwrap();
        assert_eq!(table.count(&db).await, 2);
    });
}

#[test]
fn a_text_with_a_nul_byte_is_its_statements_failure_and_the_transaction_goes_on_from_a_savepoint() {
    run(async {
        let table = Table::create("nul", "id int primary key").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let db = database(1);
        let tx = begin(&db);
        push(&tx, "SAVEPOINT a", vec![]);
        tx.flush().await.unwrap();
        let before = push(&tx, &insert, vec![Value::Int(1)]);
        push(&tx, "SELECT '\0'", vec![]);
        let error = tx.flush().await.unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }), "{error:?}");
        assert_eq!(tx.take_result(before).unwrap().unwrap().affected, 1);
        push(&tx, "ROLLBACK TO SAVEPOINT a", vec![]);
        push(&tx, &insert, vec![Value::Int(2)]);
        tx.commit().await.unwrap();
        assert_eq!(table.count(&db).await, 1);
        assert_eq!((db.stats().created, db.stats().broken), (1, 0));
    });
}

#[test]
fn flushed_statements_are_visible_inside_the_transaction_only() {
    run(async {
        let table = Table::create("inside", "id int").await;
        let db = database(2);
        let tx = begin(&db);
        push(
            &tx,
            &format!("INSERT INTO {} VALUES (1)", table.name),
            vec![],
        );
        tx.flush().await.unwrap();
        let inside = push(&tx, &format!("SELECT count(*) FROM {}", table.name), vec![]);
        tx.flush().await.unwrap();
        let rows = tx.take_result(inside).unwrap().unwrap().rows;
        assert_eq!(rows, vec![vec![Value::Int(1)]]);
        assert_eq!(table.count(&db).await, 0);
        tx.commit().await.unwrap();
        assert_eq!(table.count(&db).await, 1);
    });
}

#[test]
fn a_failed_transaction_goes_on_only_from_a_savepoint() {
    run(async {
        let table = Table::create("savepoint", "id int primary key").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let db = database(1);
        let tx = begin(&db);
        push(&tx, &insert, vec![Value::Int(1)]);
        push(&tx, "SAVEPOINT a", vec![]);
        push(&tx, &insert, vec![Value::Int(1)]);
        assert_eq!(sqlstate(&tx.flush().await.unwrap_err()), "23505");
        let late = push(&tx, &insert, vec![Value::Int(2)]);
        assert_eq!(sqlstate(&tx.flush().await.unwrap_err()), "23505");
        assert!(tx.take_result(late).unwrap().is_err());
        push(&tx, "ROLLBACK TO SAVEPOINT a", vec![]);
        push(&tx, &insert, vec![Value::Int(3)]);
        tx.commit().await.unwrap();
        assert_eq!(table.count(&db).await, 2);
    });
}

#[test]
fn a_parameter_that_does_not_fit_keeps_the_savepoint_before_it() {
    run(async {
        let table = Table::create("misfit", "id int").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let db = database(1);
        let tx = begin(&db);
        push(&tx, "SAVEPOINT a", vec![]);
        push(&tx, &insert, vec![Value::Bytes(vec![1])]);
        let error = tx.flush().await.unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }), "{error}");
        push(&tx, "ROLLBACK TO a", vec![]);
        push(&tx, &insert, vec![Value::Int(1)]);
        tx.commit().await.unwrap();
        assert_eq!(table.count(&db).await, 1);
    });
}

#[test]
fn a_parameter_that_does_not_fit_leaves_nothing_of_an_unsent_transaction() {
    run(async {
        let table = Table::create("misfit_whole", "id int").await;
        let insert = format!("INSERT INTO {} VALUES ($1)", table.name);
        let db = database(1);
        let tx = begin(&db);
        push(&tx, &insert, vec![Value::Int(1)]);
        push(&tx, &insert, vec![Value::Int(i64::MAX)]);
        let error = tx.commit().await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("parameter 1 is out of range for int4"),
            "{error}"
        );
        assert!(
            !error.to_string().contains("9223372036854775807"),
            "{error}"
        );
        assert_eq!(table.count(&db).await, 0);
    });
}

#[test]
fn commit_after_a_failed_flush_rolls_back_and_repeats_the_failure() {
    run(async {
        let table = Table::create("commit_failed", "id int").await;
        let db = database(1);
        let tx = begin(&db);
        push(
            &tx,
            &format!("INSERT INTO {} VALUES (1)", table.name),
            vec![],
        );
        push(&tx, "SELECT 1/0", vec![]);
        assert_eq!(sqlstate(&tx.flush().await.unwrap_err()), "22012");
        assert_eq!(sqlstate(&tx.commit().await.unwrap_err()), "22012");
        assert!(tx.push(sql("SELECT 1", vec![])).is_err());
        assert_eq!(table.count(&db).await, 0);
        assert_eq!(db.stats().in_use, 0);
    });
}

#[test]
fn a_finished_transaction_refuses_everything_but_rollback() {
    run(async {
        let db = database(1);
        let tx = begin(&db);
        push(&tx, "SELECT 1", vec![]);
        tx.commit().await.unwrap();
        assert!(matches!(
            tx.push(sql("SELECT 1", vec![])),
            Err(Error::Usage { .. })
        ));
        assert!(matches!(tx.flush().await, Err(Error::Usage { .. })));
        assert!(matches!(tx.commit().await, Err(Error::Usage { .. })));
        tx.rollback().await.unwrap();
    });
}

#[test]
fn rollback_forgets_what_was_flushed_and_what_was_not() {
    run(async {
        let table = Table::create("rollback", "id int").await;
        let insert = format!("INSERT INTO {} VALUES (1)", table.name);
        let db = database(1);
        let tx = begin(&db);
        push(&tx, &insert, vec![]);
        tx.flush().await.unwrap();
        push(&tx, &insert, vec![]);
        tx.rollback().await.unwrap();
        assert_eq!(table.count(&db).await, 0);
    });
}

#[test]
fn a_dropped_transaction_is_rolled_back_and_its_connection_comes_back() {
    run(async {
        let table = Table::create("dropped", "id int").await;
        let db = database(1);
        let tx = begin(&db);
        push(
            &tx,
            &format!("INSERT INTO {} VALUES (1)", table.name),
            vec![],
        );
        tx.flush().await.unwrap();
        drop(tx);
        assert_eq!(table.count(&db).await, 0);
        assert_eq!(db.stats().created, 1);
    });
}

#[test]
fn a_transaction_dropped_outside_of_any_task_is_rolled_back_by_the_next_poll() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let tasks = tokio::task::LocalSet::new();
    let db = database(1);
    let tx = begin(&db);
    push(&tx, "SELECT 1", vec![]);
    tasks.block_on(&runtime, tx.flush()).unwrap();
    drop(tx);
    assert_eq!(db.stats().in_use, 1);
    tasks.block_on(&runtime, async {
        assert_eq!(scalar(&db, "SELECT 2").await, Value::Int(2))
    });
    assert_eq!(db.stats().created, 1);
}

#[test]
fn an_unused_transaction_needs_no_connection() {
    run(async {
        let db = database(1);
        begin(&db).commit().await.unwrap();
        begin(&db).rollback().await.unwrap();
        drop(begin(&db));
        assert_eq!(db.stats().created, 0);
    });
}

#[test]
fn options_reach_the_server() {
    run(async {
        let db = database(1);
        let tx = db.transaction(TransactionOptions {
            isolation: Some(Isolation::Serializable),
            read_only: true,
        });
        let level = push(&tx, "SHOW transaction_isolation", vec![]);
        let access = push(
            &tx,
            "SELECT current_setting('transaction_read_only')",
            vec![],
        );
        tx.commit().await.unwrap();
        assert_eq!(
            tx.take_result(level).unwrap().unwrap().rows,
            vec![vec![text("serializable")]]
        );
        assert_eq!(
            tx.take_result(access).unwrap().unwrap().rows,
            vec![vec![text("on")]]
        );
    });
}

#[test]
fn tasks_that_share_a_transaction_take_turns() {
    run(async {
        let db = database(1);
        let tx = Rc::new(begin(&db));
        let tasks: Vec<_> = (0..20)
            .map(|number| {
                let tx = Rc::clone(&tx);
                tokio::task::spawn_local(async move {
                    let index = push(&tx, "SELECT $1::int", vec![Value::Int(number)]);
                    tx.flush().await.unwrap();
                    let result = tx.take_result(index).unwrap().unwrap();
                    assert_eq!(result.rows, vec![vec![Value::Int(number)]]);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        tx.commit().await.unwrap();
    });
}

#[test]
fn a_statement_that_begins_or_ends_a_transaction_is_refused_before_it_is_sent() {
    run(async {
        let db = database(1);
        let tx = begin(&db);
        for boundary in ["BEGIN", "COMMIT", "ROLLBACK", "PREPARE TRANSACTION 'x'"] {
            let error = tx.push(sql(boundary, vec![])).unwrap_err();
            assert!(error.to_string().contains(boundary), "{error}");
            let error = query(&db, boundary, vec![]).await.unwrap_err();
            assert!(matches!(error, Error::Usage { .. }), "{error}");
        }
        let one = push(&tx, "SELECT 1", vec![]);
        tx.commit().await.unwrap();
        assert!(tx.take_result(one).unwrap().is_ok());
    });
}

#[test]
fn ddl_and_what_depends_on_it_travel_in_one_transaction() {
    run(async {
        let db = database(1);
        let name = format!("weft_test_ddl_{}", std::process::id());
        let tx = begin(&db);
        push(
            &tx,
            &format!("CREATE TEMP TABLE {name} (id int) ON COMMIT DROP"),
            vec![],
        );
        push(
            &tx,
            &format!("INSERT INTO {name} VALUES ($1)"),
            vec![Value::Int(7)],
        );
        let rows = push(&tx, &format!("SELECT id FROM {name}"), vec![]);
        tx.commit().await.unwrap();
        assert_eq!(
            tx.take_result(rows).unwrap().unwrap().rows,
            vec![vec![Value::Int(7)]]
        );
    });
}

/// The address of a way to the server that swallows its answers once `mute` is set.
fn way_to_the_server(mute: Arc<AtomicBool>) -> String {
    let url = url();
    let start = url.find('@').unwrap() + 1;
    let end = start + url[start..].find('/').unwrap();
    let server = url[start..end].to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            let mut server = TcpStream::connect(&server).unwrap();
            let (mut back, mut answers) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            let mute = Arc::clone(&mute);
            std::thread::spawn(move || std::io::copy(&mut client, &mut server));
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = answers.read(&mut buffer) {
                    if !mute.load(Ordering::SeqCst) {
                        back.write_all(&buffer[..length]).unwrap();
                    }
                }
            });
        }
    });
    url.replace(&url[start..end], &here)
}

#[test]
fn a_rollback_that_the_server_does_not_answer_ends_after_five_seconds() {
    run(async {
        let mute = Arc::new(AtomicBool::default());
        let dsn = way_to_the_server(Arc::clone(&mute));
        let db = Database::open(Config::parse(&dsn).unwrap(), pool(1));
        let tx = begin(&db);
        push(&tx, "SELECT 1", vec![]);
        tx.flush().await.unwrap();
        mute.store(true, Ordering::SeqCst);
        // From here on the clock runs as fast as there is nothing to do.
        tokio::time::pause();
        let asked = tokio::time::Instant::now();
        tx.rollback().await.unwrap();
        assert!(asked.elapsed() < Duration::from_secs(6));
        assert!(!tx.is_open());
    });
}
