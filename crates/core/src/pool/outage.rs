//! When to try again after a connection could not be opened.

use std::time::Duration;

use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Short, so that a pool works again soon after its server does: one attempt costs the server little.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// A row of failures without a success in between.
pub(super) struct Outage<E> {
    /// Of the last attempt; `None` when it vanished without one.
    pub(super) error: Option<E>,
    pub(super) since: Instant,
    pub(super) attempts: u32,
    pub(super) retry_at: Instant,
    /// No server answers, as far as the error tells.
    pub(super) down: bool,
    /// Somebody was refused since the last attempt: the next one is worth while.
    pub(super) asked: bool,
}

impl<E> Outage<E> {
    pub(super) fn begin(now: Instant) -> Self {
        Self {
            error: None,
            since: now,
            attempts: 0,
            retry_at: now,
            down: false,
            asked: false,
        }
    }

    /// `luck` from 0 to 1 spreads the attempts of many pools over half of the pause.
    pub(super) fn prolong(&mut self, error: Option<E>, down: bool, now: Instant, luck: f64) {
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.attempts.min(8));
        self.attempts = self.attempts.saturating_add(1);
        self.retry_at = now + pause.min(LONGEST_PAUSE).mul_f64(0.5 + luck / 2.0);
        self.error = error.or(self.error.take());
        self.down = down;
        self.asked = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_quarter_of_a_second_and_are_spread() {
        let now = Instant::now();
        let mut outage = Outage::<()>::begin(now);
        let mut pauses = Vec::new();
        for luck in [0.0, 1.0, 0.0, 1.0, 0.0, 1.0] {
            outage.prolong(None, true, now, luck);
            pauses.push((outage.retry_at - now).as_millis());
        }
        assert_eq!(pauses, [10, 40, 40, 160, 125, 250]);
    }
}
