//! `COPY` with streamed data: a task runs the statement, a bounded channel carries the data.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use super::error::excerpt;
use super::pending::Pending;
use super::{Error, Statement};

/// Chunks in the channel: one is sent while the next is produced.
const CHANNEL_CAPACITY: usize = 2;

/// The driver's end of the channel.
pub(super) enum CopyData {
    /// Ends early when the producer is dropped.
    In(mpsc::Receiver<CopyChunk>),
    Out(mpsc::Sender<Bytes>),
}

pub(super) enum CopyChunk {
    Data(Bytes),
    /// The end of the data.
    End,
}

/// Writes data into a table.
///
/// Nothing is sent before the first [`send`](Self::send). When the last clone is dropped before [`finish`](Self::finish)
/// has returned, no row is stored.
#[derive(Clone)]
pub struct CopyIn {
    chunks: mpsc::Sender<CopyChunk>,
    work: Rc<Work>,
}

/// Reads data from a table; dropping the last clone ends the statement, and dropping the future of [`next`](Self::next) also its transaction.
#[derive(Clone)]
pub struct CopyOut {
    chunks: Rc<Mutex<mpsc::Receiver<Bytes>>>,
    work: Rc<Work>,
}

impl CopyIn {
    pub(super) fn new(copy: impl FnOnce(CopyData) -> Pending<u64>) -> Self {
        let (chunks, receiver) = mpsc::channel(CHANNEL_CAPACITY);
        Self {
            chunks,
            work: Work::new(copy(CopyData::In(receiver)), false),
        }
    }

    /// Sends a chunk of any length; waits while the channel is full.
    ///
    /// # Errors
    /// The reason why the statement ended before its data: a line that the server refuses, [`Error::Usage`] for a statement that
    /// takes no data, a lost connection.
    pub fn send(&self, chunk: Bytes) -> Pending<()> {
        let copy = self.clone();
        Box::pin(async move {
            copy.work.begin();
            match copy.chunks.send(CopyChunk::Data(chunk)).await {
                Ok(()) => Ok(()),
                Err(_) => Err(copy.work.failure().await),
            }
        })
    }

    /// Ends the data and returns the number of stored rows.
    ///
    /// # Errors
    /// As [`send`](Self::send); no row is stored then.
    pub fn finish(&self) -> Pending<u64> {
        let copy = self.clone();
        Box::pin(async move {
            copy.work.begin();
            match copy.chunks.send(CopyChunk::End).await {
                Ok(()) => copy.work.outcome().await,
                Err(_) => Err(copy.work.failure().await),
            }
        })
    }
}

impl CopyOut {
    /// `can_be_left`: the statement ends by itself when its data is no longer read.
    pub(super) fn new(copy: impl FnOnce(CopyData) -> Pending<u64>, can_be_left: bool) -> Self {
        let (sender, chunks) = mpsc::channel(CHANNEL_CAPACITY);
        Self {
            chunks: Rc::new(Mutex::new(chunks)),
            work: Work::new(copy(CopyData::Out(sender)), can_be_left),
        }
    }

    /// The next chunk of the data; `None` after the last.
    ///
    /// # Errors
    /// The server's error, [`Error::Usage`] for a statement that returns no data, a lost connection.
    pub fn next(&self) -> Pending<Option<Bytes>> {
        let copy = self.clone();
        Box::pin(async move {
            copy.work.begin();
            copy.work.is_awaited.set(true);
            let next = match copy.chunks.lock().await.recv().await {
                Some(chunk) => Ok(Some(chunk)),
                None => copy.work.outcome().await.map(|_| None),
            };
            copy.work.is_awaited.set(false);
            next
        })
    }
}

/// The task that runs the statement. Aborting it ends the statement; the pool cleans the connection.
struct Work {
    unstarted: RefCell<Option<Pending<u64>>>,
    running: Mutex<Option<JoinHandle<Result<u64, Error>>>>,
    /// The task ends by itself when its data is no longer read.
    can_be_left: bool,
    /// A wait for data has not ended. It stays true when the future of the wait is dropped.
    is_awaited: Cell<bool>,
}

impl Drop for Work {
    fn drop(&mut self) {
        let is_left = self.can_be_left && !self.is_awaited.get();
        if let Some(task) = self.running.get_mut().take()
            && !is_left
        {
            task.abort();
        }
    }
}

impl Work {
    fn new(copy: Pending<u64>, can_be_left: bool) -> Rc<Self> {
        Rc::new(Self {
            unstarted: RefCell::new(Some(copy)),
            running: Mutex::default(),
            can_be_left,
            is_awaited: Cell::default(),
        })
    }

    fn begin(&self) {
        let Some(copy) = self.unstarted.take() else {
            return;
        };
        // A task that has not begun has no waiter.
        if let Ok(mut running) = self.running.try_lock() {
            *running = Some(tokio::task::spawn_local(copy));
        }
    }

    async fn outcome(&self) -> Result<u64, Error> {
        let mut running = self.running.lock().await;
        let Some(task) = running.as_mut() else {
            return Err(over());
        };
        let outcome = task.await;
        *running = None;
        outcome.unwrap_or_else(|_| Err(over()))
    }

    async fn failure(&self) -> Error {
        match self.outcome().await {
            Ok(_) => over(),
            Err(error) => error,
        }
    }
}

fn over() -> Error {
    Error::Usage {
        message: "this COPY has ended; begin a new one".to_owned(),
    }
}

/// The error of drivers without `COPY`.
pub(super) fn unsupported(driver: &str, statement: &Statement) -> Pending<u64> {
    let message = format!(
        "{driver} has no COPY, PostgreSQL has [statement: {}]",
        excerpt(&statement.source)
    );
    Box::pin(std::future::ready(Err(Error::Usage { message })))
}
