//! The cost of the pool itself in Rust: cargo run --release -p weft-core --example pool
//!
//! Connections are unit values and nothing is done with them. The median of five runs of each, in time and in processor time,
//! which others on the machine do not disturb.

#![allow(unsafe_code, reason = "reads the CPU time of the thread")]

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
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

/// Time of all hand-offs.
async fn contended() -> (Duration, Duration) {
    let pool = pool();
    let begin = Clocks::now();
    everybody(move || {
        let pool = pool.clone();
        async move {
            for _ in 0..ROUNDS / BORROWERS {
                let lease = pool.borrow().await;
                give_way().await;
                drop(lease);
            }
        }
    })
    .await;
    begin.elapsed()
}

/// Every wait, without those of the first turns, in which all come at once: in hand-offs to others, and in processor time.
async fn waits() -> (Vec<u32>, Vec<Duration>) {
    let pool = pool();
    let handed_over = Rc::new(Cell::new(0_u32));
    let turns = Rc::new(RefCell::new(Vec::with_capacity(ROUNDS as usize)));
    let times = Rc::new(RefCell::new(Vec::with_capacity(ROUNDS as usize)));
    let (all_turns, all_times) = (Rc::clone(&turns), Rc::clone(&times));
    everybody(move || {
        let (pool, handed_over) = (pool.clone(), Rc::clone(&handed_over));
        let (turns, times) = (Rc::clone(&turns), Rc::clone(&times));
        async move {
            for round in 0..ROUNDS / BORROWERS {
                let (asked, before) = (processor_time(), handed_over.get());
                let lease = pool.borrow().await;
                if round > 1 {
                    times.borrow_mut().push(processor_time() - asked);
                    turns.borrow_mut().push(handed_over.get() - before);
                }
                handed_over.set(handed_over.get() + 1);
                give_way().await;
                drop(lease);
            }
        }
    })
    .await;
    let (mut turns, mut times) = (all_turns.take(), all_times.take());
    turns.sort_unstable();
    times.sort_unstable();
    (turns, times)
}

async fn everybody<T: Future<Output = ()> + 'static>(borrower: impl Fn() -> T) {
    let tasks: Vec<_> = (0..BORROWERS).map(|_| spawn_local(borrower())).collect();
    for task in tasks {
        // A borrower that panics is a bug that shows itself.
        let _ = task.await;
    }
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
        runs.sort_unstable();
        let (time, processor) = runs[2];
        let rate = f64::from(ROUNDS) / time.as_secs_f64();
        println!(
            "64 borrowers over 4 connections    {rate:>8.0} hand-offs/s, {:.3} µs of CPU each",
            processor.as_secs_f64() * 1e6 / f64::from(ROUNDS)
        );
        for _ in 0..5 {
            let (turns, times) = waits().await;
            let middle = times.len() / 2;
            let (time, longest) = (times[middle], times[times.len() - 1]);
            println!(
                "  a wait: {} hand-offs to others, at most {}; {:.1} µs of CPU, at most {:.1}, {:.1} times the median",
                turns[middle],
                turns[turns.len() - 1],
                time.as_secs_f64() * 1e6,
                longest.as_secs_f64() * 1e6,
                longest.as_secs_f64() / time.as_secs_f64(),
            );
        }
    });
}
