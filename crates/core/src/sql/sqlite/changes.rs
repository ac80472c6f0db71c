//! Counts commits for `wait_for_change`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::reply_queue::ReplyQueue;

/// Interval at which the file is checked for commits of other processes while a task waits for one.
pub(super) const CHANGE_INTERVAL: Duration = Duration::from_millis(20);

/// Counts commits, so that each `Database` can distinguish commits of others from its own.
pub(super) struct Changes {
    /// Commits of all `Database`s of this process.
    own: u64,
    /// How often another process was found to have changed the file.
    foreign: u64,
    version: i64,
    looked: Instant,
}

impl Changes {
    pub(super) fn new(connection: &Connection) -> Self {
        Self {
            own: 0,
            foreign: 0,
            version: data_version(connection).unwrap_or(0),
            looked: Instant::now(),
        }
    }

    /// Goes on counting with another connection, whose versions are its own: commits of others may have been missed.
    pub(super) fn renewed(self, connection: &Connection) -> Self {
        Self {
            own: self.own,
            foreign: self.foreign + 1,
            ..Self::new(connection)
        }
    }

    pub(super) fn count<'m>(&mut self, queues: impl IntoIterator<Item = &'m Arc<ReplyQueue>>) {
        for replies in queues {
            self.own += 1;
            replies.commits.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn by_others(&self, replies: &ReplyQueue) -> u64 {
        self.own + self.foreign - replies.commits.load(Ordering::Relaxed)
    }

    /// `data_version` changes when another connection, and thus another process, has committed.
    pub(super) fn look(&mut self, connection: &Connection) {
        if self.looked.elapsed() < CHANGE_INTERVAL {
            return;
        }
        self.looked = Instant::now();
        if let Some(version) = data_version(connection).filter(|version| *version != self.version) {
            self.version = version;
            self.foreign += 1;
        }
    }
}

fn data_version(connection: &Connection) -> Option<i64> {
    connection
        .query_row("PRAGMA data_version", [], |row| row.get(0))
        .ok()
}
