use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use futures_util::future::try_join_all;
use tokio_postgres::NoTls;

use crate::{BATCH, INSERT, Load, Outcome, PEOPLE, SCAN, SELECT, name_of, number, timed, variable};

/// As deadpool's users have it: a connection that was open when it came back is lent again without a question.
async fn open() -> Outcome<Pool> {
    let manager = Manager::from_config(
        variable("DATABASE_URL")?.parse()?,
        NoTls,
        ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        },
    );
    let pool = Pool::builder(manager)
        .max_size(number("CONNECTIONS")?)
        .build()?;
    try_join_all((0..number("CONNECTIONS")?).map(|_| {
        let pool = &pool;
        async move {
            Ok::<_, Box<dyn std::error::Error>>(
                pool.get()
                    .await?
                    .execute("SELECT pg_sleep(0.05)", &[])
                    .await?,
            )
        }
    }))
    .await?;
    Ok(pool)
}

pub async fn select(load: &Load) -> Outcome {
    let pool = open().await?;
    timed(async {
        try_join_all((0..load.window).map(|task| {
            let pool = &pool;
            async move {
                for turn in 0..load.operations / load.window {
                    let id = 1 + (task + turn * load.window) % PEOPLE;
                    let client = pool.get().await?;
                    let statement = client.prepare_cached(SELECT).await?;
                    let row = client.query_one(&statement, &[&(id as i32)]).await?;
                    let (_, name, _): (i32, String, String) = (row.get(0), row.get(1), row.get(2));
                    assert_eq!(name, name_of(id));
                }
                Ok::<_, Box<dyn std::error::Error>>(())
            }
        }))
        .await?;
        Ok(())
    })
    .await
}

/// Transactions of a hundred inserts each, which tokio-postgres pipelines when their futures are polled together.
pub async fn insert(load: &Load) -> Outcome {
    let pool = open().await?;
    timed(async {
        try_join_all((0..load.window).map(|task| {
            let pool = &pool;
            async move {
                for turn in 0..load.operations / load.window / BATCH {
                    let mut client = pool.get().await?;
                    let statement = client.prepare_cached(INSERT).await?;
                    let transaction = client.transaction().await?;
                    try_join_all((0..BATCH).map(|row| {
                        let (transaction, statement) = (&transaction, &statement);
                        async move {
                            let id = (turn * load.window + task) * BATCH + row;
                            transaction
                                .execute(statement, &[&(id as i32), &name_of(id)])
                                .await
                        }
                    }))
                    .await?;
                    transaction.commit().await?;
                }
                Ok::<_, Box<dyn std::error::Error>>(())
            }
        }))
        .await?;
        Ok(())
    })
    .await
}

/// All rows of the table, as often as makes the number of operations, one row each.
pub async fn scan(load: &Load) -> Outcome {
    let pool = open().await?;
    timed(async {
        for _ in 0..load.operations / PEOPLE {
            let client = pool.get().await?;
            let statement = client.prepare_cached(SCAN).await?;
            let rows = client.query(&statement, &[]).await?;
            assert_eq!(rows.len(), PEOPLE);
            for (row, expected) in rows.iter().zip(1..) {
                let (id, name, _): (i32, String, String) = (row.get(0), row.get(1), row.get(2));
                assert_eq!(id, expected);
                assert!(name.starts_with("name_"));
            }
        }
        Ok(())
    })
    .await
}
