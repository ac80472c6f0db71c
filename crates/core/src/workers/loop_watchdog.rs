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
///
/// Time in which the thread of the loop could run and had no processor counts for a tenth: on a busy machine any code would seem to block, and
/// with a small share of a processor a loop without an end would seem not to.
pub(super) struct LoopWatchdog {
    turns: u64,
    looked_at: Instant,
    blocked: Duration,
    /// The processor time of the loop's thread when it was looked at.
    processor: Option<Duration>,
}

impl LoopWatchdog {
    pub(super) fn new() -> Self {
        Self {
            turns: TURNS.load(Ordering::Relaxed),
            looked_at: Instant::now(),
            blocked: Duration::ZERO,
            processor: (!PARKED.load(Ordering::Relaxed))
                .then(processor_time)
                .flatten(),
        }
    }

    /// How long PHP code has been running without a turn of the loop, at the resolution of the calls to this method.
    pub(super) fn blocked_for(&mut self) -> Duration {
        let turns = TURNS.load(Ordering::Relaxed);
        if turns != self.turns || PARKED.load(Ordering::Relaxed) {
            *self = Self::new();
            return Duration::ZERO;
        }
        let now = Instant::now();
        let passed = now.duration_since(std::mem::replace(&mut self.looked_at, now));
        let before = std::mem::replace(&mut self.processor, processor_time());
        self.blocked += match (before, self.processor) {
            (Some(before), Some(after)) => {
                blocked_of(passed, after.saturating_sub(before), is_runnable())
            }
            _ => passed,
        };
        self.blocked
    }
}

/// How much of that time a thread has blocked that had the processor for a part of it. One that is not runnable waits in a system call.
fn blocked_of(passed: Duration, on_processor: Duration, is_runnable: bool) -> Duration {
    match is_runnable && on_processor < passed / 2 {
        true => on_processor.max(passed / 10),
        false => passed,
    }
}

/// CPU time of the main thread, which runs PHP. `None` where the kernel does not tell.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string(main_thread("schedstat")).ok()?;
    let nanoseconds: u64 = text.split(' ').next()?.parse().ok()?;
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

/// Whether the main thread runs or waits for a processor.
fn is_runnable() -> bool {
    let text = std::fs::read_to_string(main_thread("stat")).unwrap_or_default();
    // The name before it, in parentheses, may contain anything.
    text.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('R'))
}

fn main_thread(file: &str) -> String {
    let process = std::process::id();
    format!("/proc/{process}/task/{process}/{file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: Duration = Duration::from_millis(100);

    #[test]
    fn code_that_computes_or_waits_in_a_system_call_blocks() {
        assert_eq!(blocked_of(PASSED, PASSED, true), PASSED);
        assert_eq!(blocked_of(PASSED, Duration::ZERO, false), PASSED);
    }

    #[test]
    fn a_thread_without_a_processor_does_not_block_meanwhile() {
        let little = Duration::from_millis(13);
        assert_eq!(blocked_of(PASSED, little, true), little);
        assert_eq!(blocked_of(PASSED, Duration::ZERO, true), PASSED / 10);
    }

    #[test]
    fn the_kernel_tells_of_the_main_thread() {
        assert!(processor_time().is_some_and(|time| !time.is_zero()));
        // Tests run in other threads. When this one begins the main one may still do something, and waits for the result soon.
        let waits = (0..10_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            !is_runnable()
        });
        assert!(waits);
    }
}
