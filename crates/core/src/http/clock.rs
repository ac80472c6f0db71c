use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// Quarters of a second since the server was started.
pub(super) type Tick = u32;

pub(super) const TICK: Duration = Duration::from_millis(250);

/// A clock that is read for every request: reading the system's would cost more than parsing one.
#[derive(Debug)]
pub(super) struct Clock {
    tick: Cell<Tick>,
    time: Cell<Instant>,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            tick: Cell::default(),
            time: Cell::new(Instant::now()),
        }
    }
}

impl Clock {
    /// The number of the last tick.
    pub(super) fn get(&self) -> Tick {
        self.tick.get()
    }

    /// The time of the last tick.
    pub(super) fn time(&self) -> Instant {
        self.time.get()
    }

    /// [`TICK`] has passed.
    pub(super) fn advance(&self) -> Tick {
        self.tick.set(self.tick.get() + 1);
        self.time.set(Instant::now());
        self.tick.get()
    }
}

/// Rounded up, at least one.
pub(super) fn ticks(time: Duration) -> Tick {
    let ticks = time.as_millis().div_ceil(TICK.as_millis()).max(1);
    Tick::try_from(ticks).unwrap_or(Tick::MAX / 4)
}
