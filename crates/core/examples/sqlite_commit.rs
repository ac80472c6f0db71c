//! How many durable transactions per second SQLite's group commit makes.
//!
//! `cargo run --release -p weft-core --example sqlite_commit -- [TRANSACTIONS] [IN_FLIGHT] [STATEMENTS] [DSN]`
//!
//! STATEMENTS is the number of inserts in each transaction; 1 is an autocommit statement. Without a DSN, a temporary
//! file with the default options. Several processes may be given the same DSN.

use std::cell::Cell;
use std::env;
use std::error::Error;
use std::fs;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::{JoinSet, LocalSet};
use weft_core::sql::sqlite::{Config, Database};
use weft_core::sql::{Statement, Value};

const INSERT: &str = "INSERT INTO customers (id, name, email) VALUES (?1, ?2, ?3)";

fn main() -> Result<(), Box<dyn Error>> {
    let number = |position: usize, default: u64| -> Result<u64, Box<dyn Error>> {
        Ok(env::args()
            .nth(position)
            .map_or(Ok(default), |text| text.parse())?)
    };
    let (transactions, in_flight, statements) =
        (number(1, 200_000)?, number(2, 100)?, number(3, 1)?);
    let file = env::temp_dir().join(format!("weft-sqlite-commit-{}.db", std::process::id()));
    let dsn = env::args()
        .nth(4)
        .unwrap_or(format!("sqlite:{}", file.display()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let measured =
        LocalSet::new().block_on(&runtime, measure(&dsn, transactions, in_flight, statements));
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", file.display()));
    }
    measured
}

async fn measure(
    dsn: &str,
    transactions: u64,
    in_flight: u64,
    statements: u64,
) -> Result<(), Box<dyn Error>> {
    let database = Database::open(Config::parse(dsn)?).await?;
    database
        .execute(statement(
            "CREATE TABLE IF NOT EXISTS customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT)",
            vec![],
        ))
        .await?;
    let (cpu, started, next) = (cpu_seconds(), Instant::now(), Rc::new(Cell::new(0)));
    let mut tasks = JoinSet::new();
    let insert: Arc<str> = INSERT.into();
    for _ in 0..in_flight {
        tasks.spawn_local(work(
            database.clone(),
            Rc::clone(&next),
            transactions,
            statements,
            Arc::clone(&insert),
        ));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let counted = database
        .execute(statement("SELECT count(*) FROM customers", vec![]))
        .await?;
    println!(
        "{transactions} transactions of {statements} inserts, {in_flight} in flight, rows: {:?}",
        counted.rows[0][0]
    );
    println!(
        "{:.0} tx/s, {seconds:.2} s, {cpu:.2} s of CPU, {:.1} µs of CPU per transaction",
        transactions as f64 / seconds,
        cpu * 1e6 / transactions as f64
    );
    database.close().await?;
    Ok(())
}

async fn work(
    database: Database,
    next: Rc<Cell<u64>>,
    transactions: u64,
    statements: u64,
    insert: Arc<str>,
) -> Result<(), weft_core::sql::Error> {
    while next.get() < transactions {
        let id = next.replace(next.get() + 1) as i64;
        if statements == 1 {
            database.execute(customer(&insert, id)).await?;
            continue;
        }
        let transaction = database.transaction();
        for part in 0..statements as i64 {
            transaction.push(customer(&insert, id * statements as i64 + part))?;
        }
        transaction.commit().await?;
    }
    Ok(())
}

fn customer(insert: &Arc<str>, number: i64) -> Statement {
    let id = i64::from(std::process::id()) << 32 | number;
    let email = format!("customer{id}@example.org");
    let params = vec![
        Value::Int(id),
        Value::Text("Ada Lovelace".into()),
        Value::Text(email),
    ];
    Statement::new(Arc::clone(insert), params)
}

fn statement(sql: &str, params: Vec<Value>) -> Statement {
    Statement::new(sql, params)
}

/// User and system time of this process, from `/proc/self/stat`, in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(11)
        .take(2);
    fields
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}
