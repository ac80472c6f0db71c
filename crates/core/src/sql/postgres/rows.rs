use std::sync::Arc;

use super::batch::Outdated;
use super::decode::RowShape;
use super::replies::Chunk;
use super::startup::Postgres;
use crate::pool::{Lease, Pool};
use crate::sql::{Column, Error, Statement, Value};

/// The rows of one statement, chunk by chunk; no more than one chunk is in memory.
///
/// Holds a connection from the first [`next`](Self::next) to the last chunk. Dropping it earlier closes the portal and
/// returns the connection to the pool.
pub struct RowStream {
    pool: Pool<Postgres>,
    statement: Statement,
    chunk: u32,
    shape: RowShape,
    state: State,
}

enum State {
    Fresh,
    Open(Lease<Postgres>),
    Done,
}

impl RowStream {
    pub(super) fn new(pool: Pool<Postgres>, statement: Statement, chunk: usize) -> Self {
        Self {
            pool,
            statement,
            chunk: u32::try_from(chunk.max(1)).unwrap_or(u32::MAX),
            shape: RowShape::default(),
            state: State::Fresh,
        }
    }

    /// Known after the first chunk.
    pub fn columns(&self) -> Arc<[Column]> {
        Arc::clone(&self.shape.columns)
    }

    /// The next chunk, with at least one row; `None` after the last.
    ///
    /// The server computes no rows ahead: each call requests the next chunk. Dropping the future ends the
    /// stream.
    ///
    /// # Errors
    /// As [`Database::execute`](super::Database::execute). After an error the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Vec<Vec<Value>>>, Error> {
        // Moved into the future, so that dropping the future drops the lease.
        let (mut lease, chunk) = match std::mem::replace(&mut self.state, State::Done) {
            State::Done => return Ok(None),
            State::Fresh => self.open().await?,
            State::Open(mut lease) => {
                let chunk = lease.next_chunk(self.shape.clone(), self.chunk).await?;
                (lease, chunk)
            }
        };
        let Chunk {
            shape,
            rows,
            last,
            failure,
            ..
        } = chunk;
        self.shape = shape;
        if let Some(failure) = failure {
            lease.drain().await?;
            return Err(failure.into_error(&self.statement.source));
        }
        if last {
            lease.drain().await?;
        } else {
            self.state = State::Open(lease);
        }
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }

    async fn open(&self) -> Result<(Lease<Postgres>, Chunk), Error> {
        let mut lease = self.pool.borrow().await?;
        lease.set_statement(&self.statement.source);
        let is_cached = lease.cache.get(&self.statement.sql).is_some();
        let mut chunk = self.portal(&mut lease, true).await?;
        let failure = chunk.failure.as_ref();
        if let Some(outdated) = failure.and_then(|failure| failure.outdated(is_cached)) {
            lease.drain().await?;
            lease.forget(&self.statement.sql);
            let named = outdated == Outdated::Types;
            chunk = self.portal(&mut lease, named).await?;
        }
        Ok((lease, chunk))
    }

    async fn portal(&self, lease: &mut Lease<Postgres>, named: bool) -> Result<Chunk, Error> {
        let opened = lease.open_portal(&self.statement, self.chunk, named).await;
        opened.map_err(|error| error.in_words_of(&self.statement))
    }
}
