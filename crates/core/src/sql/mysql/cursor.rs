//! Cursors on the server (`COM_STMT_FETCH`), between whose chunks other statements of the transaction can run.

use std::rc::Rc;
use std::sync::Arc;

use super::cursor_fetch::Handle;
use super::transaction::Transaction;
use crate::sql::{Column, Error, Statement, Value};

/// The rows of a query inside a transaction, a chunk at a time. Dropping it frees them on the server together with the
/// next command.
pub struct Cursor {
    transaction: Rc<Transaction>,
    statement: Statement,
    chunk: u32,
    state: State,
    columns: Arc<[Column]>,
}

enum State {
    Fresh,
    Open(Handle),
    Done,
}

impl Cursor {
    pub(in crate::sql) fn new(
        transaction: Rc<Transaction>,
        statement: Statement,
        chunk: usize,
    ) -> Self {
        Self {
            transaction,
            statement,
            chunk: u32::try_from(chunk.max(1)).unwrap_or(u32::MAX),
            state: State::Fresh,
            columns: Arc::default(),
        }
    }

    /// Known after the first chunk.
    pub fn columns(&self) -> Arc<[Column]> {
        Arc::clone(&self.columns)
    }

    /// The next chunk, with at least one row; `None` after the last. Dropping the future ends the transaction.
    ///
    /// # Errors
    /// As [`Transaction::flush`]. After an error the cursor has ended.
    pub async fn next(&mut self) -> Result<Option<Vec<Vec<Value>>>, Error> {
        let fetched = match std::mem::replace(&mut self.state, State::Done) {
            State::Done => return Ok(None),
            State::Fresh => {
                self.transaction
                    .open_cursor(&self.statement, self.chunk)
                    .await?
            }
            State::Open(handle) => {
                self.transaction
                    .fetch(&self.statement, handle, self.chunk)
                    .await?
            }
        };
        self.columns = fetched.columns;
        if let Some(handle) = fetched.handle {
            self.state = State::Open(handle);
        }
        Ok(Some(fetched.rows).filter(|rows| !rows.is_empty()))
    }
}
