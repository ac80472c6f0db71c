//! Whether the writer waits for more jobs before a commit.

use std::time::Duration;

/// Decides whether to wait for more jobs before a commit, by what waiting brought lately.
#[derive(Default)]
pub(super) struct Patience {
    /// How long the last commit took.
    pub commit: Duration,
    /// Groups to let pass before waiting is tried again.
    skip: u32,
    misses: u32,
}

impl Patience {
    /// A shorter commit is not worth a sleep, which takes some 60 µs at least.
    const SLOW_COMMIT: Duration = Duration::from_micros(400);
    const LONGEST: Duration = Duration::from_millis(1);

    pub(super) fn wait(&mut self, group: usize) -> Option<Duration> {
        if group == 0 || self.commit < Self::SLOW_COMMIT {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some((self.commit / 4).min(Self::LONGEST))
    }

    /// Waiting paid when jobs came faster than the commits get them done.
    pub(super) fn judge(&mut self, before: usize, gained: usize, waited: Duration) {
        if gained as f64 * self.commit.as_secs_f64() >= before as f64 * waited.as_secs_f64() {
            self.misses = 0;
        } else {
            self.misses = (self.misses + 1).min(5);
            self.skip = 8 << self.misses;
        }
    }
}
