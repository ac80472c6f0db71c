use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds in seconds for latencies: 0.1 ms to 10 s.
pub const LATENCY: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// A value that only increases.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A value that increases and decreases.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    pub fn add(&self, by: f64) {
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| {
                Some((f64::from_bits(bits) + by).to_bits())
            });
    }

    pub fn value(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// Counts durations in buckets.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One bucket per bound and one for longer durations; each counts only its own range.
    counts: Box<[AtomicU64]>,
    /// In nanoseconds; 64 bits hold 584 years.
    sum: AtomicU64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    pub fn record(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let index = self.bounds.partition_point(|bound| *bound < seconds);
        self.counts[index].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Adds the counts of another histogram with the same bounds.
    pub fn add(&self, counts: impl Iterator<Item = u64>, sum: Duration) {
        for (own, count) in self.counts.iter().zip(counts) {
            own.fetch_add(count, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(sum.as_nanos()).unwrap_or(u64::MAX);
        self.sum.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    pub(super) fn write(&self, text: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        let braces = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{labels}}}")
        };
        let mut total = 0;
        for (index, count) in self.counts.iter().enumerate() {
            total += count.load(Ordering::Relaxed);
            let bound = self
                .bounds
                .get(index)
                .map_or_else(|| "+Inf".to_owned(), ToString::to_string);
            let _ = writeln!(
                text,
                "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {total}"
            );
        }
        let sum = Duration::from_nanos(self.sum.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(text, "{name}_sum{braces} {sum}");
        let _ = writeln!(text, "{name}_count{braces} {total}");
    }
}
