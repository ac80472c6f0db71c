use std::cell::Cell;
use std::time::Duration;

/// Quarters of a second since the server was started.
pub(super) type Tick = u32;

pub(super) const TICK: Duration = Duration::from_millis(250);

/// A clock for timeouts of 250 ms and more: reading the system's clock for every frame would cost more than parsing it.
#[derive(Debug, Default)]
pub(super) struct Clock(Cell<Tick>);

impl Clock {
    /// The number of the last tick.
    pub(super) fn get(&self) -> Tick {
        self.0.get()
    }

    /// [`TICK`] has passed.
    pub(super) fn advance(&self) -> Tick {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
}

/// Rounded up, at least one.
pub(super) fn ticks(time: Duration) -> Tick {
    let ticks = time.as_millis().div_ceil(TICK.as_millis()).max(1);
    Tick::try_from(ticks).unwrap_or(Tick::MAX / 4)
}
