//! What the pool itself costs in Rust: cargo run --release -p weft-core --example pool
//!
//! Connections are unit values and nothing is done with them. The median of five runs of each.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::{LocalSet, spawn_local};
use weft_core::pool::{Condition, Manage, Pool, PoolOptions};

struct Nothing;

impl Manage for Nothing {
    type Connection = ();
    type Error = Infallible;

    async fn connect(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn condition(&self, (): &mut ()) -> Condition {
        Condition::Clean
    }

    async fn recover(&self, (): ()) -> Option<()> {
        None
    }

    fn close(&self, (): ()) {}
}

const ROUNDS: u32 = 1_000_000;
const BORROWERS: u32 = 64;

fn pool() -> Pool<Nothing> {
    Pool::new(
        Nothing,
        PoolOptions {
            size: 4,
            ..PoolOptions::default()
        },
    )
}

async fn uncontended() -> Duration {
    let pool = pool();
    drop(pool.borrow().await);
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        drop(pool.borrow().await);
    }
    begin.elapsed() / ROUNDS
}

/// Time of all hand-offs, and every wait.
async fn contended() -> (Duration, Vec<Duration>) {
    let pool = pool();
    let waits = Rc::new(RefCell::new(Vec::with_capacity(ROUNDS as usize)));
    let begin = Instant::now();
    let tasks: Vec<_> = (0..BORROWERS)
        .map(|_| {
            let (pool, waits) = (pool.clone(), Rc::clone(&waits));
            spawn_local(async move {
                for round in 0..ROUNDS / BORROWERS {
                    let asked = Instant::now();
                    let lease = pool.borrow().await;
                    if round > 1 {
                        waits.borrow_mut().push(asked.elapsed());
                    }
                    tokio::task::yield_now().await;
                    drop(lease);
                }
            })
        })
        .collect();
    for task in tasks {
        // A borrower that panics is a bug that shows itself.
        let _ = task.await;
    }
    let total = begin.elapsed();
    let mut waits = waits.take();
    waits.sort_unstable();
    (total, waits)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let Ok(runtime) = runtime else {
        eprintln!("cannot start a runtime");
        return;
    };
    LocalSet::new().block_on(&runtime, async {
        let mut costs = Vec::new();
        for _ in 0..5 {
            costs.push(uncontended().await);
        }
        costs.sort_unstable();
        println!(
            "uncontended borrow + return        {:>8.3} µs",
            costs[2].as_secs_f64() * 1e6
        );
        let mut runs = Vec::new();
        for _ in 0..5 {
            runs.push(contended().await);
        }
        runs.sort_unstable_by_key(|(total, _)| *total);
        let (total, waits) = &runs[2];
        let rate = f64::from(ROUNDS) / total.as_secs_f64();
        println!("64 borrowers over 4 connections    {rate:>8.0} hand-offs/s");
        if let (Some(median), Some(longest)) = (waits.get(waits.len() / 2), waits.last()) {
            println!(
                "  waits: median {:.0} µs, longest {:.0} µs",
                median.as_secs_f64() * 1e6,
                longest.as_secs_f64() * 1e6
            );
        }
    });
}
