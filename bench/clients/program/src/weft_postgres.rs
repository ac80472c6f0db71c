use std::sync::Arc;

use futures_util::future::try_join_all;
use weft_core::pool::PoolOptions;
use weft_core::sql::{Database, Hooks, Statement, Value};

use crate::{BATCH, INSERT, Load, Outcome, PEOPLE, SCAN, SELECT, name_of, number, timed, variable};

async fn open() -> Outcome<Database> {
    let options = PoolOptions {
        size: number("CONNECTIONS")?,
        ..PoolOptions::default()
    };
    let database = Database::open(&variable("DATABASE_URL")?, options, Hooks::default())?.await?;
    try_join_all(
        (0..number("CONNECTIONS")?)
            .map(|_| database.execute(Statement::new("SELECT pg_sleep(0.05)", Vec::new()))),
    )
    .await?;
    Ok(database)
}

pub async fn select(load: &Load) -> Outcome {
    let database = open().await?;
    let sql: Arc<str> = SELECT.into();
    timed(async {
        try_join_all((0..load.window).map(|task| {
            let (database, sql) = (&database, &sql);
            async move {
                for turn in 0..load.operations / load.window {
                    let id = 1 + (task + turn * load.window) % PEOPLE;
                    let found = database
                        .execute(Statement::new(Arc::clone(sql), vec![Value::Int(id as i64)]))
                        .await?;
                    assert_eq!(found.rows[0][1], Value::Text(name_of(id)));
                }
                Ok::<_, weft_core::sql::Error>(())
            }
        }))
        .await?;
        Ok(())
    })
    .await
}

/// Transactions of a hundred inserts each.
pub async fn insert(load: &Load) -> Outcome {
    let database = open().await?;
    let sql: Arc<str> = INSERT.into();
    timed(async {
        try_join_all((0..load.window).map(|task| {
            let (database, sql) = (&database, &sql);
            async move {
                for turn in 0..load.operations / load.window / BATCH {
                    let transaction = database.transaction();
                    for row in 0..BATCH {
                        let id = (turn * load.window + task) * BATCH + row;
                        transaction.push(Statement::new(
                            Arc::clone(sql),
                            vec![Value::Int(id as i64), Value::Text(name_of(id))],
                        ))?;
                    }
                    transaction.commit().await?;
                }
                Ok::<_, weft_core::sql::Error>(())
            }
        }))
        .await?;
        Ok(())
    })
    .await
}

/// All rows of the table, as often as makes the number of operations, one row each.
pub async fn scan(load: &Load) -> Outcome {
    let database = open().await?;
    timed(async {
        for _ in 0..load.operations / PEOPLE {
            let found = database.execute(Statement::new(SCAN, Vec::new())).await?;
            assert_eq!(found.rows.len(), PEOPLE);
            for (row, id) in found.rows.iter().zip(1..) {
                assert_eq!(row[0], Value::Int(id));
                assert!(matches!(&row[1], Value::Text(name) if name.starts_with("name_")));
            }
        }
        Ok(())
    })
    .await
}
