#![allow(unsafe_code, reason = "calls the allocator of the C library")]

use std::cell::Cell;

use super::clock::Tick;

/// Peaks with fewer connections are not worth a trim.
const MIN_PEAK: usize = 1_000;
/// Trim when fewer than 1/`PEAK_DIVISOR` of the peak remain.
const PEAK_DIVISOR: usize = 4;
/// How long that must hold: clients that disconnect together often reconnect together.
const TRIM_DELAY: Tick = 4;

/// Decides when most of many connections have closed and their memory should be returned to the system.
///
/// Memory of closed connections lies between that of open ones, where glibc does not return it by itself.
#[derive(Default)]
pub(super) struct MemoryTrim {
    most: Cell<usize>,
    since: Cell<Option<Tick>>,
}

impl MemoryTrim {
    /// Must be called at every tick. Returns whether memory should be released.
    pub(super) fn is_due(&self, connections: usize, now: Tick) -> bool {
        self.most.set(self.most.get().max(connections));
        if self.most.get() < MIN_PEAK || connections > self.most.get() / PEAK_DIVISOR {
            self.since.set(None);
            return false;
        }
        let since = self.since.get().unwrap_or(now);
        self.since.set(Some(since));
        let is_due = now - since >= TRIM_DELAY;
        if is_due {
            self.most.set(connections);
            self.since.set(None);
        }
        is_due
    }
}

#[cfg(target_env = "gnu")]
pub(super) fn release_free_memory() {
    // SAFETY: it takes glibc's own locks and touches nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn release_free_memory() {}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(counts: impl IntoIterator<Item = usize>) -> Vec<Tick> {
        let memory_trim = MemoryTrim::default();
        let ticks = counts.into_iter().zip(0..);
        ticks
            .filter(|(count, now)| memory_trim.is_due(*count, *now))
            .map(|(_, now)| now)
            .collect()
    }

    #[test]
    fn memory_is_given_back_a_second_after_three_of_four_have_left() {
        let counts = [vec![8_000; 10], vec![2_001; 10], vec![2_000; 40]].concat();
        assert_eq!(times(counts), [24]);
    }

    #[test]
    fn and_again_when_the_rest_has_left() {
        let counts = [vec![8_000; 2], vec![2_000; 6], vec![10; 40]].concat();
        assert_eq!(times(counts), [6, 12]);
    }

    #[test]
    fn few_connections_are_not_worth_it() {
        assert!(times([vec![999; 4], vec![0; 40]].concat()).is_empty());
    }

    #[test]
    fn those_that_come_back_at_once_keep_theirs() {
        let wave = [vec![8_000; 4], vec![0; 4]].concat();
        assert!(times(wave.repeat(10)).is_empty());
    }
}
