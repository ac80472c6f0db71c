//! `COPY` while its data is still being made or read: a task runs it, a bounded channel carries the data.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use super::error::excerpt;
use super::pending::Pending;
use super::{Error, Statement};

/// Chunks on their way: one is sent while the next is made.
const CHANNEL_CAPACITY: usize = 2;

/// What a driver reads or writes.
pub(super) enum CopyData {
    /// Ends early when whoever makes the data has gone.
    In(mpsc::Receiver<CopyChunk>),
    Out(mpsc::Sender<Bytes>),
}

pub(super) enum CopyChunk {
    Data(Bytes),
    /// There is no more.
    End,
}

/// Data on its way into a table.
///
/// Nothing is sent before the first [`send`](Self::send). When the last clone is dropped before [`finish`](Self::finish)
/// has returned, nothing of it is stored.
#[derive(Clone)]
pub struct CopyIn {
    chunks: mpsc::Sender<CopyChunk>,
    work: Rc<Work>,
}

/// Data on its way out of a table; dropping the last clone ends it.
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
            work: Work::new(copy(CopyData::In(receiver))),
        }
    }

    /// Hands over a chunk of the data, of any length; waits while the server is slower.
    ///
    /// # Errors
    /// Why the copy has ended before its data: what the server has against a line, [`Error::Usage`] for a statement that
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

    /// Ends the data; the number of rows stored.
    ///
    /// # Errors
    /// As [`send`](Self::send); then nothing is stored.
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
    pub(super) fn new(copy: impl FnOnce(CopyData) -> Pending<u64>) -> Self {
        let (sender, chunks) = mpsc::channel(CHANNEL_CAPACITY);
        Self {
            chunks: Rc::new(Mutex::new(chunks)),
            work: Work::new(copy(CopyData::Out(sender))),
        }
    }

    /// The next chunk of the data; `None` after the last.
    ///
    /// # Errors
    /// What the server has against the statement, [`Error::Usage`] for one that returns no data, a lost connection.
    pub fn next(&self) -> Pending<Option<Bytes>> {
        let copy = self.clone();
        Box::pin(async move {
            copy.work.begin();
            match copy.chunks.lock().await.recv().await {
                Some(chunk) => Ok(Some(chunk)),
                None => copy.work.outcome().await.map(|_| None),
            }
        })
    }
}

/// The task that runs the copy. Its end is that of the copy: the connection is cleaned by the pool.
struct Work {
    unstarted: RefCell<Option<Pending<u64>>>,
    running: Mutex<Option<Running>>,
}

struct Running(JoinHandle<Result<u64, Error>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Work {
    fn new(copy: Pending<u64>) -> Rc<Self> {
        Rc::new(Self {
            unstarted: RefCell::new(Some(copy)),
            running: Mutex::default(),
        })
    }

    fn begin(&self) {
        let Some(copy) = self.unstarted.take() else {
            return;
        };
        // Nobody waits for a task that has not begun.
        if let Ok(mut running) = self.running.try_lock() {
            *running = Some(Running(tokio::task::spawn_local(copy)));
        }
    }

    async fn outcome(&self) -> Result<u64, Error> {
        let mut running = self.running.lock().await;
        let Some(task) = running.as_mut() else {
            return Err(over());
        };
        let outcome = (&mut task.0).await;
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
        message: "this COPY is over; begin another one".to_owned(),
    }
}

/// What a driver without `COPY` says.
pub(super) fn unsupported(driver: &str, statement: &Statement) -> Pending<u64> {
    let message = format!(
        "{driver} has no COPY, PostgreSQL has [statement: {}]",
        excerpt(&statement.source)
    );
    Box::pin(std::future::ready(Err(Error::Usage { message })))
}
