use std::rc::Rc;

use weft_core::sql::postgres::{Config, Database};
use weft_core::sql::{Error, Value};

use crate::support::*;

#[test]
fn a_statement_is_prepared_again_after_its_table_changed() {
    run(async {
        let table = Table::create("altered", "id int").await;
        let db = database(1);
        let select = format!("SELECT * FROM {}", table.name);
        execute(&db, &format!("INSERT INTO {} VALUES (1)", table.name)).await;
        assert_eq!(execute(&db, &select).await.rows, vec![vec![Value::Int(1)]]);
        execute(
            &db,
            &format!("ALTER TABLE {} ADD COLUMN name text", table.name),
        )
        .await;
        let rows = vec![vec![Value::Int(1), Value::Null]];
        assert_eq!(execute(&db, &select).await.rows, rows);

        execute(
            &db,
            &format!("ALTER TABLE {} ALTER COLUMN id TYPE text", table.name),
        )
        .await;
        let tx = begin(&db);
        let index = push(&tx, &select, vec![]);
        tx.flush().await.unwrap();
        let rows = vec![vec![text("1"), Value::Null]];
        assert_eq!(tx.take_result(index).unwrap().unwrap().rows, rows);
        tx.commit().await.unwrap();

        execute(&db, &format!("ALTER TABLE {} DROP COLUMN name", table.name)).await;
        let mut stream = db.stream(sql(&select, vec![]), 10);
        assert_eq!(stream.next().await.unwrap(), Some(vec![vec![text("1")]]));
    });
}

#[test]
fn statements_the_server_has_forgotten_are_prepared_again() {
    run(async {
        let db = database(1);
        assert_eq!(scalar(&db, "SELECT 7").await, Value::Int(7));
        execute(&db, "DEALLOCATE ALL").await;
        assert_eq!(scalar(&db, "SELECT 7").await, Value::Int(7));
        execute(&db, "DEALLOCATE ALL").await;
        let tx = begin(&db);
        push(&tx, "SELECT 7", vec![]);
        tx.flush().await.unwrap();
        tx.commit().await.unwrap();
    });
}

#[test]
fn a_stale_statement_inside_a_transaction_fails_it_and_the_next_one_works() {
    run(async {
        let table = Table::create("stale", "id int").await;
        let db = database(1);
        let select = format!("SELECT * FROM {}", table.name);
        execute(&db, &select).await;
        let tx = begin(&db);
        push(
            &tx,
            &format!("ALTER TABLE {} ADD COLUMN name text", table.name),
            vec![],
        );
        tx.flush().await.unwrap();
        push(&tx, &select, vec![]);
        assert_eq!(sqlstate(&tx.commit().await.unwrap_err()), "0A000");
        assert_eq!(execute(&db, &select).await.columns.len(), 1);
    });
}

#[test]
fn a_whole_transaction_that_meets_a_stale_statement_runs_once_more() {
    run(async {
        let table = Table::create("stale_whole", "id int").await;
        let db = database(1);
        let select = format!("SELECT * FROM {}", table.name);
        execute(&db, &select).await;
        let tx = begin(&db);
        push(
            &tx,
            &format!("ALTER TABLE {} ADD COLUMN name text", table.name),
            vec![],
        );
        let index = push(&tx, &select, vec![]);
        tx.commit().await.unwrap();
        assert_eq!(tx.take_result(index).unwrap().unwrap().columns.len(), 2);
    });
}

#[test]
fn evicted_statements_are_closed_on_the_server() {
    run(async {
        let url = format!("{}?statement_cache=5", url());
        let db = Database::open(Config::parse(&url).unwrap(), pool(1));
        for number in 0..50 {
            assert_eq!(
                scalar(&db, &format!("SELECT {number}")).await,
                Value::Int(number)
            );
        }
        let count = scalar(&db, "SELECT count(*) FROM pg_prepared_statements").await;
        let Value::Int(count) = count else {
            panic!("{count:?}")
        };
        assert!((1..=7).contains(&count), "{count} statements are prepared");
    });
}

#[test]
fn a_batch_may_have_more_statements_than_the_cache() {
    run(async {
        let url = format!("{}?statement_cache=2", url());
        let db = Database::open(Config::parse(&url).unwrap(), pool(1));
        for _ in 0..3 {
            let tx = begin(&db);
            for number in 0..10 {
                push(
                    &tx,
                    &format!("SELECT $1::int + {number}"),
                    vec![Value::Int(1)],
                );
            }
            tx.commit().await.unwrap();
            for number in 0..10 {
                let rows = tx.take_result(number).unwrap().unwrap().rows;
                assert_eq!(rows, vec![vec![Value::Int(number as i64 + 1)]]);
            }
        }
    });
}

#[test]
fn without_a_statement_cache_nothing_stays_prepared_and_values_survive() {
    run(async {
        let url = format!("{}?statement_cache=0", url());
        let db = Database::open(Config::parse(&url).unwrap(), pool(1));
        let values = vec![
            Value::Int(7),
            text("a\"b"),
            Value::Bytes(vec![0, 255]),
            Value::List(vec![Value::Int(1), Value::Null]),
            Value::Float(0.5),
            Value::Bool(true),
            Value::Null,
        ];
        let statement =
            "SELECT $1::int, $2::text, $3::bytea, $4::int[], $5::float8, $6::bool, $7::date";
        let result = query(&db, statement, values.clone()).await.unwrap();
        assert_eq!(result.rows, vec![values]);
        let tx = begin(&db);
        push(&tx, "SAVEPOINT a", vec![]);
        let index = push(&tx, "SELECT count(*) FROM pg_prepared_statements", vec![]);
        tx.commit().await.unwrap();
        assert_eq!(
            tx.take_result(index).unwrap().unwrap().rows,
            vec![vec![Value::Int(0)]]
        );
    });
}

#[test]
fn a_syntax_error_names_its_statement_and_the_connection_goes_on() {
    run(async {
        let db = database(1);
        let error = query(&db, "SELEC 1", vec![]).await.unwrap_err();
        assert_eq!(sqlstate(&error), "42601");
        assert!(
            error.to_string().contains("[statement: SELEC 1]"),
            "{error}"
        );
        let error = query(&db, "SELECT nothing", vec![]).await.unwrap_err();
        assert_eq!(sqlstate(&error), "42703");
        let error = query(&db, "SELECT 1; SELECT 2", vec![]).await.unwrap_err();
        assert_eq!(sqlstate(&error), "42601");
        assert_eq!(execute(&db, "").await.rows.len(), 0);
        assert_eq!((db.stats().created, db.stats().broken), (1, 0));
    });
}

#[test]
fn copy_is_refused_and_costs_only_its_connection() {
    run(async {
        let table = Table::create("copied", "id int").await;
        let db = database(1);
        for direction in ["FROM STDIN", "TO STDOUT"] {
            let statement = format!("COPY {} {direction}", table.name);
            let error = query(&db, &statement, vec![]).await.unwrap_err();
            assert!(matches!(error, Error::Usage { .. }), "{error}");
            assert_eq!(scalar(&db, "SELECT 1").await, Value::Int(1));
        }
    });
}

#[test]
fn answers_and_questions_larger_than_every_buffer_do_not_block_each_other() {
    run(async {
        let db = database(1);
        let big = "x".repeat(8 * 1024 * 1024);
        let tx = begin(&db);
        for _ in 0..4 {
            push(&tx, "SELECT $1::text", vec![text(&big)]);
        }
        tx.commit().await.unwrap();
        for index in 0..4 {
            let rows = tx.take_result(index).unwrap().unwrap().rows;
            assert_eq!(rows, vec![vec![text(&big)]]);
        }
    });
}

#[test]
fn a_pool_smaller_than_its_users_serves_them_all() {
    run(async {
        let db = database(3);
        let tasks: Vec<_> = (0..100)
            .map(|number| {
                let db = Rc::clone(&db);
                tokio::task::spawn_local(async move {
                    let result = query(&db, "SELECT $1::int", vec![Value::Int(number)]).await;
                    assert_eq!(result.unwrap().rows, vec![vec![Value::Int(number)]]);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let stats = db.stats();
        // A connection that takes long to open may find nothing left to do.
        assert_eq!((stats.in_use, stats.waiting), (0, 0));
        assert_eq!(stats.idle as u64, stats.created);
        assert!((1..=3).contains(&stats.created), "{stats:?}");
        db.close().await;
        let error = query(&db, "SELECT 1", vec![]).await.unwrap_err();
        assert!(matches!(error, Error::PoolClosed { .. }), "{error}");
    });
}
