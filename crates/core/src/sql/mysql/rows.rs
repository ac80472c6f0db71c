use std::sync::Arc;

use super::reply::{Answer, UNEXPECTED_DESCRIPTION};
use super::startup::Mysql;
use crate::pool::{Lease, Pool};
use crate::sql::{Column, Error, Statement, Value};

/// The rows of one statement, chunk by chunk; no more than one chunk and what the socket buffers are in memory.
///
/// Holds a connection from the first [`next`](Self::next) to the last chunk. The server sends as fast as the rows are
/// read, and gives up on a reader that pauses for an hour. Dropping the stream earlier ends the query.
pub struct RowStream {
    pool: Pool<Mysql>,
    statement: Statement,
    chunk: usize,
    columns: Arc<[Column]>,
    state: State,
}

enum State {
    Fresh,
    Open(Lease<Mysql>),
    Done,
}

impl RowStream {
    pub(super) fn new(pool: Pool<Mysql>, statement: Statement, chunk: usize) -> Self {
        Self {
            pool,
            statement,
            chunk: chunk.max(1),
            columns: Arc::default(),
            state: State::Fresh,
        }
    }

    /// Known after the first chunk.
    pub fn columns(&self) -> Arc<[Column]> {
        Arc::clone(&self.columns)
    }

    /// The next chunk, with at least one row; `None` after the last. Dropping the future ends the stream.
    ///
    /// # Errors
    /// As [`Database::execute`](super::Database::execute). After an error the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Vec<Vec<Value>>>, Error> {
        // Moved into the future, so that dropping the future drops the lease.
        let mut lease = match std::mem::replace(&mut self.state, State::Done) {
            State::Done => return Ok(None),
            State::Fresh => self.open().await?,
            State::Open(lease) => lease,
        };
        lease.receive_rows(self.chunk).await?;
        lease.serve_file(&self.statement.source).await?;
        if !lease.has_answer() && lease.reply().rows.len() >= self.chunk {
            let reply = lease.reply();
            self.columns = Arc::clone(&reply.shape.columns);
            let rows = std::mem::take(&mut reply.rows);
            self.state = State::Open(lease);
            return Ok(Some(rows));
        }
        let answer = lease.answer(&self.statement.source).await?;
        lease.trim_cache();
        match answer {
            Answer::Done(result) => {
                self.columns = result.columns;
                Ok(Some(result.rows).filter(|rows| !rows.is_empty()))
            }
            Answer::Failed(failure) => Err(failure.into_error(&self.statement.source)),
            Answer::Prepared { .. } => Err(lease.give_up(UNEXPECTED_DESCRIPTION)),
        }
    }

    async fn open(&self) -> Result<Lease<Mysql>, Error> {
        let mut lease = self.pool.borrow().await?;
        lease.set_statement(&self.statement.source);
        lease.start(&self.statement).await??;
        Ok(lease)
    }
}
