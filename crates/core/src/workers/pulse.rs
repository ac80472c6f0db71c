//! Whether the event loop of this process still turns, seen from another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use crate::metrics::{self, Gauge, Histogram, LATENCY};

static TURNS: AtomicU64 = AtomicU64::new(0);
/// The loop waits for the system, or has not started: nothing is stuck.
static PARKED: AtomicBool = AtomicBool::new(true);
/// Set in a process that is watched: others do not pay for two readings of the clock per turn.
static LAG: OnceLock<Arc<Histogram>> = OnceLock::new();
/// Tasks that have not ended, and fibers, idle ones included.
static POPULATION: OnceLock<(Arc<Gauge>, Arc<Gauge>)> = OnceLock::new();
static START: LazyLock<Instant> = LazyLock::new(Instant::now);
/// Nanoseconds after `START` at which PHP went on; 0 before the first turn.
static WENT_ON: AtomicU64 = AtomicU64::new(0);

/// The loop begins to wait.
pub(crate) fn park() {
    PARKED.store(true, Ordering::Relaxed);
    if let Some(lag) = LAG.get() {
        let went_on = WENT_ON.load(Ordering::Relaxed);
        if went_on != 0 {
            lag.record(Duration::from_nanos(now().saturating_sub(went_on)));
        }
    }
}

/// The loop goes on with PHP code.
pub(crate) fn unpark() {
    if LAG.get().is_some() {
        WENT_ON.store(now(), Ordering::Relaxed);
    }
    TURNS.fetch_add(1, Ordering::Relaxed);
    PARKED.store(false, Ordering::Relaxed);
}

fn now() -> u64 {
    START.elapsed().as_nanos() as u64
}

/// Begins to measure how long the loop's turns take: what everything else waits for.
pub fn measure() {
    LAG.get_or_init(|| {
        let help = "Time that PHP code ran between two looks at I/O.";
        metrics::histogram("weft_loop_lag_seconds", help, &[], LATENCY)
    });
    POPULATION.get_or_init(|| {
        let tasks = "Tasks that have not ended.";
        let fibers = "Fibers of the pool, idle ones included.";
        (
            metrics::gauge("weft_tasks", tasks, &[]),
            metrics::gauge("weft_fibers", fibers, &[]),
        )
    });
}

/// Whether somebody may ask for what this process measures.
pub fn is_measured() -> bool {
    LAG.get().is_some()
}

/// How many tasks and fibers there are, as of this turn of the loop.
pub fn count(tasks: u64, fibers: u64) {
    if let Some((all_tasks, all_fibers)) = POPULATION.get() {
        all_tasks.set(tasks as f64);
        all_fibers.set(fibers as f64);
    }
}

/// For how long PHP has been running since the loop last turned, in a process that is measured.
pub(super) fn running_for() -> Duration {
    if PARKED.load(Ordering::Relaxed) {
        return Duration::ZERO;
    }
    Duration::from_nanos(now().saturating_sub(WENT_ON.load(Ordering::Relaxed)))
}

/// Looks at the loop now and then and tells for how long it has stood still.
pub struct Watch {
    turns: u64,
    since: Instant,
}

impl Watch {
    pub fn new() -> Self {
        Self {
            turns: TURNS.load(Ordering::Relaxed),
            since: Instant::now(),
        }
    }

    /// How long PHP has been running without a turn of the loop, at the resolution of the calls to this.
    pub fn stuck_for(&mut self) -> Duration {
        let turns = TURNS.load(Ordering::Relaxed);
        if turns != self.turns || PARKED.load(Ordering::Relaxed) {
            *self = Self::new();
            return Duration::ZERO;
        }
        self.since.elapsed()
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}
