use std::cell::Cell;
use std::time::SystemTime;

/// Counts the gRPC calls of a server or a connection.
#[derive(Debug, Default)]
pub struct CallStats {
    started: Cell<u64>,
    succeeded: Cell<u64>,
    failed: Cell<u64>,
    last_started: Cell<Option<SystemTime>>,
}

impl CallStats {
    pub fn start(&self, now: SystemTime) {
        self.started.set(self.started.get() + 1);
        self.last_started.set(Some(now));
    }

    pub fn end(&self, has_succeeded: bool) {
        let count = match has_succeeded {
            true => &self.succeeded,
            false => &self.failed,
        };
        count.set(count.get() + 1);
    }

    pub fn started(&self) -> u64 {
        self.started.get()
    }

    pub fn succeeded(&self) -> u64 {
        self.succeeded.get()
    }

    /// Includes calls whose client has disconnected.
    pub fn failed(&self) -> u64 {
        self.failed.get()
    }

    pub fn last_started(&self) -> Option<SystemTime> {
        self.last_started.get()
    }
}
