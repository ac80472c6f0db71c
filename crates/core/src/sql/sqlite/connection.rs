//! Connections of SQLite's threads: opening, waiting for locks of other processes, interruption.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::Notify;

use super::config::{Config, Location};
use super::failure;
use crate::sql::Error;

/// Virtual machine instructions between two checks of [`Control`]; about 50 µs.
const INSTRUCTIONS_PER_CHECK: i32 = 4_000;
/// Concurrent cancellations that a connection can record.
const CANCELLED: usize = 64;
/// Another process holds its lock for about one group commit. SQLite's own retries after up to 100 ms would starve this process.
const BUSY_RETRY_INTERVAL: Duration = Duration::from_micros(200);

/// Requests of other threads to the thread that runs statements.
#[derive(Debug)]
pub(super) struct Control {
    base: Instant,
    /// The job whose statement runs, 0 for none.
    running: AtomicU64,
    /// Cancelled job ids, each at index `id % CANCELLED`, which bounds the number of concurrent cancellations.
    cancelled: [AtomicU64; CANCELLED],
    /// Milliseconds after `base` at which the running statement is interrupted; 0 for never.
    deadline: AtomicU64,
    stopped: AtomicBool,
    stop: Notify,
}

impl Control {
    pub(super) fn new() -> Self {
        Self {
            base: Instant::now(),
            running: AtomicU64::new(0),
            cancelled: [const { AtomicU64::new(0) }; CANCELLED],
            deadline: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            stop: Notify::new(),
        }
    }

    pub(super) fn started(&self, job: u64) {
        self.running.store(job, Ordering::Release);
    }

    pub(super) fn finished(&self) {
        self.running.store(0, Ordering::Release);
    }

    /// Interrupts the job now or when it begins, and no other job.
    pub(super) fn cancel(&self, job: u64) {
        self.cancelled(job).store(job, Ordering::Release);
    }

    fn cancelled(&self, job: u64) -> &AtomicU64 {
        &self.cancelled[job as usize % CANCELLED]
    }

    /// Interrupts all statements, now and later.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.stop.notify_one();
    }

    /// Resolves after [`stop`](Self::stop); for one waiter at a time.
    pub(super) async fn stopped(&self) {
        while !self.stopped.load(Ordering::Acquire) {
            self.stop.notified().await;
        }
    }

    pub(super) fn set_deadline(&self, deadline: Option<Instant>) {
        // Rounded up, so that an interrupted statement is always past its deadline.
        let milliseconds =
            deadline.map_or(0, |at| at.duration_since(self.base).as_millis() as u64 + 1);
        self.deadline.store(milliseconds, Ordering::Release);
    }

    fn interrupts(&self) -> bool {
        let running = self.running.load(Ordering::Acquire);
        let deadline = self.deadline.load(Ordering::Acquire);
        self.stopped.load(Ordering::Acquire)
            || (running != 0 && running == self.cancelled(running).load(Ordering::Acquire))
            || (deadline != 0 && self.base.elapsed().as_millis() as u64 >= deadline)
    }
}

/// The connection that writes: WAL mode, foreign keys on.
pub(super) fn open_writer(config: &Config, control: &Arc<Control>) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open(config, flags, control, |connection| {
        if config.location != Location::Memory {
            write_ahead(connection, config)?;
        }
        connection.pragma_update(None, "synchronous", config.synchronous.keyword())?;
        connection.pragma_update(None, "foreign_keys", true)
    })?;
    Ok(connection)
}

/// A read-only connection.
pub(super) fn open_reader(config: &Config, control: &Arc<Control>) -> Result<Connection, Error> {
    open(
        config,
        OpenFlags::SQLITE_OPEN_READ_ONLY,
        control,
        |_| Ok(()),
    )
}

fn open(
    config: &Config,
    flags: OpenFlags,
    control: &Arc<Control>,
    prepare: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<Connection, Error> {
    let path = match &config.location {
        Location::Memory => Path::new(":memory:"),
        Location::File(path) => path,
    };
    let opened = || {
        let mut connection =
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        wait_for_locks(&mut connection, config.busy_timeout)?;
        let control = Arc::clone(control);
        connection.progress_handler(INSTRUCTIONS_PER_CHECK, Some(move || control.interrupts()))?;
        let kibibytes = i64::try_from(config.cache_size / 1024).unwrap_or(i64::MAX);
        connection.pragma_update(None, "cache_size", -kibibytes)?;
        prepare(&connection)?;
        // SQLite opens lazily; this is the first access to the file.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    opened().map_err(|error| failure::of_open(&error, &config.location.to_string(), path))
}

fn wait_for_locks(connection: &mut Connection, limit: Duration) -> rusqlite::Result<()> {
    let mut since = Instant::now();
    connection.busy_handler(Some(move |attempts| {
        if attempts == 0 {
            since = Instant::now();
        }
        let wait = since.elapsed() < limit;
        if wait {
            thread::sleep(BUSY_RETRY_INTERVAL);
        }
        wait
    }))
}

/// Changing the mode needs exclusive access to the file, for which SQLite does not call the busy handler.
fn write_ahead(connection: &Connection, config: &Config) -> rusqlite::Result<()> {
    let deadline = Instant::now() + config.busy_timeout;
    loop {
        let mode = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR),
                    Some(format!(
                        "its file system allows no write-ahead log (journal mode stays {mode})"
                    )),
                ));
            }
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                thread::sleep(BUSY_RETRY_INTERVAL)
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
