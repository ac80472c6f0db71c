//! The public interface of the driver.

use std::future::Future;
use std::rc::Rc;

use super::client::Client;
use super::config::Config;
use super::failure;
use super::jobs::{Job, Watcher};
use super::registry;
use super::reply_queue::{Answer, Kind};
use super::stream::RowStream;
use super::transaction::Transaction;
use crate::sql::{Error, ResultSet, Statement};

/// An SQLite database. Clones share it; its threads end some time after the last one is dropped.
///
/// Writes run on one thread per file and process in the order of submission. Writes that are queued at the same time share
/// one commit, and thus one sync of the disk. Reads run on threads of their own, each statement on a snapshot that
/// contains all answered writes. With `synchronous=full` no answered write is lost.
///
/// Not `Send`: its futures run on the thread and in the `LocalSet` in which it was opened.
#[derive(Clone)]
pub struct Database {
    client: Rc<Client>,
}

impl Database {
    /// Opens the file, and creates it if necessary. Two `Database`s of one file share its threads.
    ///
    /// # Errors
    /// [`Error::Connect`] naming the path: no such directory, not permitted, not an SQLite database, locked.
    pub async fn open(config: Config) -> Result<Self, Error> {
        let client = Client::new(registry::join(config)?);
        let opened = client.submit(Kind::Changes, |reply| {
            client.engine.push(Job::Marker(reply))
        });
        client.seen.set(changes(opened.await)?);
        Ok(Self { client })
    }

    /// Runs one statement in a transaction of its own. A statement that only reads runs on a reader.
    ///
    /// The first poll submits the statement. Dropping the future withdraws a statement that has not begun and interrupts one that
    /// runs; a completed one whose answer is pending still takes effect.
    ///
    /// # Errors
    /// [`Error::Server`] from SQLite, [`Error::Parameter`], [`Error::Usage`] for BEGIN, COMMIT, SAVEPOINT and the like.
    pub fn execute(
        &self,
        statement: Statement,
    ) -> impl Future<Output = Result<ResultSet, Error>> + 'static {
        let client = Rc::clone(&self.client);
        async move { client.execute(statement).await }
    }

    /// Creates a transaction without sending anything.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(Rc::clone(&self.client))
    }

    /// Reads rows in chunks of at most `chunk` (at least 1), on a thread and snapshot of its own.
    ///
    /// At most two chunks are in memory. An in-memory database has no second connection and reads everything first.
    pub fn stream(&self, statement: Statement, chunk: usize) -> RowStream {
        RowStream::new(Rc::clone(&self.client), statement, chunk.max(1))
    }

    /// Resolves when another `Database` or another process has committed to the file since this one was opened or
    /// since its last resolved `wait_for_change`. May resolve spuriously, but misses no commit.
    ///
    /// Commits of other processes are noticed within 20 ms; the file is checked only while a task waits.
    pub fn wait_for_change(&self) -> impl Future<Output = Result<(), Error>> + 'static {
        let client = Rc::clone(&self.client);
        async move {
            client.check_open()?;
            let seen = client.seen.get();
            let pending = client.submit(Kind::Changes, |reply| {
                client.engine.watch(Watcher { seen, reply })
            });
            client.seen.set(changes(pending.await)?);
            Ok(())
        }
    }

    /// Waits until all submitted jobs are done. The last `Database` of the file also ends its threads and checkpoints the
    /// write-ahead log. Later use of any clone is [`Error::Usage`]; a second close has no effect.
    pub fn close(&self) -> impl Future<Output = Result<(), Error>> + 'static {
        let client = Rc::clone(&self.client);
        async move {
            if client.check_open().is_err() {
                return Ok(());
            }
            let closed = client.submit(Kind::Changes, |reply| client.leave(Some(reply)));
            changes(closed.await).map(drop)
        }
    }
}

fn changes(answer: Answer) -> Result<u64, Error> {
    match answer {
        Answer::Changes(result) => result,
        _ => Err(failure::unexpected()),
    }
}
