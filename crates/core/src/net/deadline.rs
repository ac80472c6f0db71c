use std::io;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// The time until which a connection must be open, from the look-up of its name to the end of its handshake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    limit: Duration,
}

/// The peer was silent until the deadline.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no answer within {0:?}")]
pub(crate) struct NoAnswer(Duration);

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        let at = Instant::now() + limit;
        Self { at, limit }
    }

    pub(super) fn at(self) -> Instant {
        self.at
    }

    pub(super) fn no_answer(self) -> NoAnswer {
        NoAnswer(self.limit)
    }

    /// Ends an attempt at the deadline. A part of it that has the same deadline ends first, with an error that may say more.
    pub(crate) async fn limit<T>(self, attempt: impl Future<Output = T>) -> Result<T, NoAnswer> {
        let ended = timeout_at(self.at, attempt).await;
        ended.map_err(|_| self.no_answer())
    }
}

impl From<NoAnswer> for io::Error {
    fn from(silence: NoAnswer) -> Self {
        Self::new(io::ErrorKind::TimedOut, silence)
    }
}
