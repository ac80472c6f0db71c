//! The cost of a transaction of one INSERT in three round trips, in one, and as an implicit transaction.
//!
//! `DATABASE_URL=… cargo run --release -p weft-core --example pg_pipeline [connections] [transactions]`

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;
use weft_core::sql::postgres::{Batch, Config, Connection, End};
use weft_core::sql::{Statement, Value};

type Outcome<T> = Result<T, Box<dyn Error>>;

const TABLE: &str = "weft_pg_pipeline";

#[derive(Clone, Copy)]
enum Mode {
    ThreeRoundTrips,
    OneRoundTrip,
    Implicit,
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let connections: usize = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let transactions: usize = arguments.next().map_or(Ok(40_000), |text| text.parse())?;
    let mut config = Config::parse(&std::env::var("DATABASE_URL")?)?;
    config.connect.application_name = TABLE.to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, compare(&config, connections, transactions))
}

async fn compare(config: &Config, connections: usize, transactions: usize) -> Outcome<()> {
    let mut admin = Connection::open(config.clone()).await?;
    run(&mut admin, &format!("DROP TABLE IF EXISTS {TABLE}")).await?;
    let columns = "id uuid PRIMARY KEY, name text NOT NULL, email text NOT NULL";
    run(&mut admin, &format!("CREATE TABLE {TABLE} ({columns})")).await?;
    println!(
        "{connections} connections, {transactions} transactions each row; CPU in µs per transaction"
    );
    println!("{:<32}{:>10}{:>10}{:>10}", "", "tx/s", "client", "server");
    for (name, mode) in [
        ("BEGIN, INSERT, COMMIT", Mode::ThreeRoundTrips),
        ("BEGIN + INSERT + COMMIT", Mode::OneRoundTrip),
        ("INSERT (implicit transaction)", Mode::Implicit),
    ] {
        run(&mut admin, &format!("TRUNCATE {TABLE}")).await?;
        run(&mut admin, "CHECKPOINT").await?;
        let cost = measure(config, mode, connections, transactions).await?;
        let per_transaction = |cpu: Duration| cpu.as_secs_f64() * 1e6 / transactions as f64;
        println!(
            "{name:<32}{:>10.0}{:>10.1}{:>10.1}",
            transactions as f64 / cost.wall.as_secs_f64(),
            per_transaction(cost.client),
            per_transaction(cost.server)
        );
    }
    run(&mut admin, &format!("DROP TABLE {TABLE}")).await
}

struct Cost {
    wall: Duration,
    client: Duration,
    server: Duration,
}

async fn measure(
    config: &Config,
    mode: Mode,
    connections: usize,
    transactions: usize,
) -> Outcome<Cost> {
    let mut workers = Vec::new();
    let mut backends = Vec::new();
    for _ in 0..connections {
        let mut connection = Connection::open(config.clone()).await?;
        backends.push(backend(&mut connection).await?);
        // The first transaction prepares.
        transact(&mut connection, mode, &insert(usize::MAX - backends.len())).await?;
        workers.push(connection);
    }
    let cpu_of = |pids: &[u32]| {
        pids.iter()
            .map(|pid| cpu(&pid.to_string()))
            .sum::<Outcome<Duration>>()
    };
    let (server, client, started) = (cpu_of(&backends)?, cpu("self")?, Instant::now());
    let next = Rc::new(Cell::new(0));
    let tasks: Vec<_> = workers
        .into_iter()
        .map(|connection| {
            tokio::task::spawn_local(work(connection, mode, Rc::clone(&next), transactions))
        })
        .collect();
    let mut connections = Vec::new();
    for task in tasks {
        connections.push(task.await?.map_err(|error| error.to_string())?);
    }
    Ok(Cost {
        wall: started.elapsed(),
        client: cpu("self")? - client,
        server: cpu_of(&backends)? - server,
    })
}

/// Returns the connection, so that its backend is still there to be asked.
async fn work(
    mut connection: Connection,
    mode: Mode,
    next: Rc<Cell<usize>>,
    transactions: usize,
) -> Result<Connection, String> {
    while next.get() < transactions {
        let number = next.replace(next.get() + 1);
        transact(&mut connection, mode, &insert(number))
            .await
            .map_err(|error| error.to_string())?;
    }
    Ok(connection)
}

async fn transact(connection: &mut Connection, mode: Mode, insert: &Statement) -> Outcome<()> {
    thread_local! {
        static BEGIN: Arc<str> = Arc::from("BEGIN");
    }
    let begin = BEGIN.with(Arc::clone);
    let statements = std::slice::from_ref(insert);
    let batch = Batch::of(statements);
    match mode {
        Mode::Implicit => check(connection, batch).await,
        Mode::OneRoundTrip => {
            let whole = Batch {
                begin: Some(&begin),
                end: End::Commit,
                ..batch
            };
            check(connection, whole).await
        }
        Mode::ThreeRoundTrips => {
            let nothing = Batch::of(&[]);
            let begin = Batch {
                begin: Some(&begin),
                ..nothing
            };
            check(connection, begin).await?;
            check(connection, batch).await?;
            let commit = Batch {
                end: End::Commit,
                ..nothing
            };
            check(connection, commit).await
        }
    }
}

async fn check(connection: &mut Connection, batch: Batch<'_>) -> Outcome<()> {
    let outcome = connection.run(batch).await?;
    outcome
        .failure
        .map_or(Ok(()), |failure| Err(failure.error.into()))
}

fn insert(number: usize) -> Statement {
    thread_local! {
        static INSERT: Arc<str> = Arc::from(format!("INSERT INTO {TABLE} (id, name, email) VALUES ($1, $2, $3)"));
    }
    let params = vec![
        Value::Text(format!(
            "00000000-0000-7000-{:04x}-{:012x}",
            number >> 48,
            number & 0xffff_ffff_ffff
        )),
        Value::Text("Ada Lovelace".to_owned()),
        Value::Text(format!("customer-{number}@example.com")),
    ];
    Statement::new(INSERT.with(Arc::clone), params)
}

async fn run(connection: &mut Connection, sql: &str) -> Outcome<()> {
    let statement = Statement::new(sql, vec![]);
    check(connection, Batch::of(std::slice::from_ref(&statement))).await
}

async fn backend(connection: &mut Connection) -> Outcome<u32> {
    let statement = Statement::new("SELECT pg_backend_pid()", vec![]);
    let outcome = connection
        .run(Batch::of(std::slice::from_ref(&statement)))
        .await?;
    match outcome
        .results
        .first()
        .and_then(|result| result.rows.first()?.first())
    {
        Some(Value::Int(pid)) => Ok(u32::try_from(*pid)?),
        _ => Err("pg_backend_pid() returned nothing".into()),
    }
}

/// Time a process on this machine has spent on a CPU, user and system (`proc(5)`, `schedstat`). Both sides have one thread.
fn cpu(process: &str) -> Outcome<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/schedstat"))?;
    let nanoseconds = stat.split_ascii_whitespace().next().unwrap_or_default();
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}
