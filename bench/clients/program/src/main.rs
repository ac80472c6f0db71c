//! One client through one workload: `clients CONTENDER ACTION`, sizes in the environment. Prints seconds as JSON.

use std::env;
use std::error::Error;
use std::future::Future;
use std::time::Instant;

use serde_json::json;

mod lapin_client;
mod tokio_postgres_client;
mod weft_amqp;
mod weft_postgres;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// How many operations there are, and how many may be under way at once.
struct Load {
    operations: usize,
    window: usize,
}

/// The bodies that are published: 100 bytes, persistent.
const BODY: [u8; 100] = [b'x'; 100];

/// One row of `people` by its primary key, and the row that must come back.
const SELECT: &str = "SELECT id, name, email FROM people WHERE id = $1";
const INSERT: &str = "INSERT INTO clients_inserted (id, name) VALUES ($1, $2)";
const SCAN: &str = "SELECT id, name, email FROM people ORDER BY id";
const PEOPLE: usize = 10_000;
/// Inserts of one transaction.
const BATCH: usize = 100;

fn variable(name: &str) -> Outcome<String> {
    env::var(name).map_err(|_| format!("{name} is not set").into())
}

fn number(name: &str) -> Outcome<usize> {
    Ok(variable(name)?.parse()?)
}

/// Runs `work` and prints how long it took. A connection is made before, so that only the work is measured.
async fn timed(work: impl Future<Output = Outcome>) -> Outcome {
    let (began, cpu) = (Instant::now(), cpu_seconds());
    work.await?;
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!("{}", json!({ "seconds": seconds, "cpu": cpu }));
    Ok(())
}

/// Processor time of all threads of this process.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a local of the right type, which the call only writes.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn name_of(id: usize) -> String {
    format!("name_{id}")
}

fn main() -> Outcome {
    let (contender, action) = (
        env::args().nth(1).unwrap_or_default(),
        env::args().nth(2).unwrap_or_default(),
    );
    let load = Load {
        operations: number("OPERATIONS")?,
        window: number("WINDOW")?,
    };
    // Weft's clients run on the thread of PHP; so do all here.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        match (contender.as_str(), action.as_str()) {
            ("weft-amqp", "publish") => weft_amqp::publish(&load).await,
            ("weft-amqp", "consume") => weft_amqp::consume(&load).await,
            ("lapin", "publish") => lapin_client::publish(&load).await,
            ("lapin", "consume") => lapin_client::consume(&load).await,
            ("weft-postgres", "select") => weft_postgres::select(&load).await,
            ("weft-postgres", "insert") => weft_postgres::insert(&load).await,
            ("weft-postgres", "scan") => weft_postgres::scan(&load).await,
            ("tokio-postgres", "select") => tokio_postgres_client::select(&load).await,
            ("tokio-postgres", "insert") => tokio_postgres_client::insert(&load).await,
            ("tokio-postgres", "scan") => tokio_postgres_client::scan(&load).await,
            _ => Err(format!("there is no client {contender:?} with an action {action:?}").into()),
        }
    })
}
