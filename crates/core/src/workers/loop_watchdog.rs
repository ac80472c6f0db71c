//! Tells from another thread whether the event loop of this process is blocked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use crate::metrics::{self, Gauge, Histogram, LATENCY};

static TURNS: AtomicU64 = AtomicU64::new(0);
/// The loop waits for I/O, or has not started: it is not blocked.
static PARKED: AtomicBool = AtomicBool::new(true);
/// Set in a process that serves metrics; others save two readings of the clock in each turn.
static LAG: OnceLock<Arc<Histogram>> = OnceLock::new();
/// Tasks that have not ended, and fibers including idle ones.
static TASKS_AND_FIBERS: OnceLock<(Arc<Gauge>, Arc<Gauge>)> = OnceLock::new();
static START: LazyLock<Instant> = LazyLock::new(Instant::now);
/// Nanoseconds after `START` at which PHP code last resumed; 0 before the first turn.
static RESUMED_AT: AtomicU64 = AtomicU64::new(0);

/// Called when the loop begins to wait for I/O.
pub fn park() {
    PARKED.store(true, Ordering::Relaxed);
    if let Some(lag) = LAG.get() {
        let resumed_at = RESUMED_AT.load(Ordering::Relaxed);
        if resumed_at != 0 {
            lag.record(Duration::from_nanos(now().saturating_sub(resumed_at)));
        }
    }
}

/// Called when the loop resumes PHP code.
pub fn unpark() {
    if LAG.get().is_some() {
        RESUMED_AT.store(now(), Ordering::Relaxed);
    }
    TURNS.fetch_add(1, Ordering::Relaxed);
    PARKED.store(false, Ordering::Relaxed);
}

fn now() -> u64 {
    START.elapsed().as_nanos() as u64
}

/// Starts measuring how long PHP code keeps the loop from I/O.
pub fn measure() {
    LAG.get_or_init(|| {
        let help = "Time that PHP code ran between two polls for I/O.";
        metrics::histogram("weft_loop_lag_seconds", help, &[], LATENCY)
    });
    TASKS_AND_FIBERS.get_or_init(|| {
        let tasks = "Tasks that have not ended.";
        let fibers = "Fibers of the pool, idle ones included.";
        (
            metrics::gauge("weft_tasks", tasks, &[]),
            metrics::gauge("weft_fibers", fibers, &[]),
        )
    });
}

/// Whether this process is measured.
pub fn is_measured() -> bool {
    LAG.get().is_some()
}

/// Records how many tasks and fibers there are in this turn of the loop.
pub fn record_counts(tasks: u64, fibers: u64) {
    if let Some((all_tasks, all_fibers)) = TASKS_AND_FIBERS.get() {
        all_tasks.set(tasks as f64);
        all_fibers.set(fibers as f64);
    }
}

/// How long PHP code has been running since the last turn of the loop, in a process that is measured.
pub(super) fn busy_for() -> Duration {
    if PARKED.load(Ordering::Relaxed) {
        return Duration::ZERO;
    }
    Duration::from_nanos(now().saturating_sub(RESUMED_AT.load(Ordering::Relaxed)))
}

/// Measures, from another thread, how long the loop has been blocked.
pub(super) struct LoopWatchdog {
    turns: u64,
    since: Instant,
}

impl LoopWatchdog {
    pub(super) fn new() -> Self {
        Self {
            turns: TURNS.load(Ordering::Relaxed),
            since: Instant::now(),
        }
    }

    /// How long PHP code has been running without a turn of the loop, at the resolution of the calls to this method.
    pub(super) fn blocked_for(&mut self) -> Duration {
        let turns = TURNS.load(Ordering::Relaxed);
        if turns != self.turns || PARKED.load(Ordering::Relaxed) {
            *self = Self::new();
            return Duration::ZERO;
        }
        self.since.elapsed()
    }
}
