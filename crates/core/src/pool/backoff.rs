use std::time::Duration;

use tokio::time::Instant;

const FIRST_DELAY: Duration = Duration::from_millis(20);
/// Short, so that a pool works again soon after its server does. One attempt costs the server little.
const LONGEST_DELAY: Duration = Duration::from_millis(250);

/// Failed attempts to connect, without a success in between.
pub(super) struct Backoff<E> {
    /// Why the last attempt failed; `None` when it was dropped or timed out.
    pub(super) error: Option<E>,
    pub(super) since: Instant,
    pub(super) attempts: u32,
    pub(super) retry_at: Instant,
    /// The last error says that no server answers.
    pub(super) is_down: bool,
    /// A borrower was refused since the last attempt, so another one is worthwhile.
    pub(super) was_requested: bool,
}

impl<E> Backoff<E> {
    pub(super) fn start(now: Instant) -> Self {
        Self {
            error: None,
            since: now,
            attempts: 0,
            retry_at: now,
            is_down: false,
            was_requested: false,
        }
    }

    /// `jitter`, from 0 to 1, spreads the attempts of many pools over half of the delay.
    pub(super) fn record_failure(
        &mut self,
        error: Option<E>,
        is_down: bool,
        now: Instant,
        jitter: f64,
    ) {
        let delay = FIRST_DELAY * 2_u32.saturating_pow(self.attempts.min(8));
        self.attempts = self.attempts.saturating_add(1);
        self.retry_at = now + delay.min(LONGEST_DELAY).mul_f64(0.5 + jitter / 2.0);
        self.error = error.or(self.error.take());
        self.is_down = is_down;
        self.was_requested = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_quarter_of_a_second_and_are_spread() {
        let now = Instant::now();
        let mut backoff = Backoff::<()>::start(now);
        let mut delays = Vec::new();
        for jitter in [0.0, 1.0, 0.0, 1.0, 0.0, 1.0] {
            backoff.record_failure(None, true, now, jitter);
            delays.push((backoff.retry_at - now).as_millis());
        }
        assert_eq!(delays, [10, 40, 40, 160, 125, 250]);
    }
}
