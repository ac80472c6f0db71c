//! Whose commits there were, for `wait_for_change`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::reply_queue::ReplyQueue;

/// How often the file is looked at for other processes' commits while somebody waits for one.
pub(super) const CHANGE_INTERVAL: Duration = Duration::from_millis(20);

/// Counts commits, so that each `Database` can tell the others' from its own.
pub(super) struct Changes {
    /// By every `Database` of this process.
    own: u64,
    /// Times the file was found changed by other processes.
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

    pub(super) fn count<'m>(&mut self, queues: impl IntoIterator<Item = &'m Arc<ReplyQueue>>) {
        for replies in queues {
            self.own += 1;
            replies.commits.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn by_others(&self, replies: &ReplyQueue) -> u64 {
        self.own + self.foreign - replies.commits.load(Ordering::Relaxed)
    }

    /// `data_version` differs when another connection, which means another process, has committed.
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
