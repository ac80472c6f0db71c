//! What the pool itself costs in Rust: cargo run --release -p weft-core --example pool
//!
//! Connections are unit values and nothing is done with them. The median of five runs of each, in time and in processor time,
//! which others on the machine do not disturb.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
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

/// Since then, in time and in processor time of this thread.
struct Clocks(Instant, Duration);

impl Clocks {
    fn now() -> Self {
        Self(Instant::now(), processor_time())
    }

    fn elapsed(&self) -> (Duration, Duration) {
        (self.0.elapsed(), processor_time() - self.1)
    }
}

fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a value that the call fills in.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Lets the other tasks go on. Tokio's own would also look for events of the system, which costs more than a hand-off.
async fn give_way() {
    let given = Cell::new(false);
    poll_fn(|context| {
        if given.replace(true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn uncontended() -> (Duration, Duration) {
    let pool = pool();
    drop(pool.borrow().await);
    let begin = Clocks::now();
    for _ in 0..ROUNDS {
        drop(pool.borrow().await);
    }
    let (time, processor) = begin.elapsed();
    (time / ROUNDS, processor / ROUNDS)
}

/// Time of all hand-offs, and every wait.
async fn contended() -> ((Duration, Duration), Vec<Duration>) {
    let pool = pool();
    let waits = Rc::new(RefCell::new(Vec::with_capacity(ROUNDS as usize)));
    let begin = Clocks::now();
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
                    give_way().await;
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
        let (time, processor) = costs[2];
        println!(
            "uncontended borrow + return        {:>8.3} µs, {:.3} µs of CPU",
            time.as_secs_f64() * 1e6,
            processor.as_secs_f64() * 1e6
        );
        let mut runs = Vec::new();
        for _ in 0..5 {
            runs.push(contended().await);
        }
        runs.sort_unstable_by_key(|(total, _)| *total);
        let ((time, processor), waits) = &runs[2];
        let rate = f64::from(ROUNDS) / time.as_secs_f64();
        println!(
            "64 borrowers over 4 connections    {rate:>8.0} hand-offs/s, {:.3} µs of CPU each",
            processor.as_secs_f64() * 1e6 / f64::from(ROUNDS)
        );
        if let (Some(median), Some(longest)) = (waits.get(waits.len() / 2), waits.last()) {
            println!(
                "  waits: median {:.0} µs, longest {:.0} µs",
                median.as_secs_f64() * 1e6,
                longest.as_secs_f64() * 1e6
            );
        }
    });
}
