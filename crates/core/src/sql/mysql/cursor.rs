//! Results that the server keeps for a transaction (`COM_STMT_FETCH`), so that others of its statements can run meanwhile.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::connection::Connection;
use super::decode::RowShape;
use super::reply::{Answer, UNEXPECTED_DESCRIPTION, UNEXPECTED_RESULT};
use super::run::fits;
use super::statement_kind::StatementKind;
use super::transaction::Transaction;
use crate::sql::{Column, Error, Statement, Value};

/// The rows of a query inside a transaction, a chunk at a time. Dropping it frees them on the server, with whatever is sent
/// next.
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

/// A statement with an open cursor on the server.
pub(super) struct Handle {
    id: u32,
    shape: RowShape,
    /// Numbers of statements to close.
    dropped: Rc<RefCell<Vec<u32>>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.dropped.borrow_mut().push(self.id);
    }
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

    /// Up to as many rows as a chunk has, at least one; `None` after the last. Dropping the future ends the transaction.
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

pub(super) struct Fetched {
    columns: Arc<[Column]>,
    rows: Vec<Vec<Value>>,
    /// `None` when these are the last rows.
    handle: Option<Handle>,
}

impl Connection {
    /// Opens a cursor and fetches its first rows. The outer error is the connection's, the inner one the statement's.
    ///
    /// The statement is prepared for it alone: running it again would close the cursor.
    pub(super) async fn open_cursor(
        &mut self,
        statement: &Statement,
        dropped: &Rc<RefCell<Vec<u32>>>,
        chunk: u32,
    ) -> Result<Result<Fetched, Error>, Error> {
        if let Err(error) = self.check_length(statement) {
            return Ok(Err(error));
        }
        self.push_closes();
        self.push_prepare(&statement.sql);
        let (id, parameters) = match self.answer(&statement.source).await? {
            Answer::Prepared { id, parameters } => (id, parameters),
            Answer::Failed(failure) => return Ok(Err(failure.into_error(&statement.source))),
            Answer::Done(_) => return Err(self.give_up(UNEXPECTED_RESULT)),
        };
        let mut handle = Handle {
            id,
            shape: RowShape::default(),
            dropped: Rc::clone(dropped),
        };
        let sendable =
            fits(statement, parameters).and_then(|()| self.push_execute(id, statement, true));
        if let Err(error) = sendable {
            return Ok(Err(error));
        }
        if StatementKind::of(&statement.sql).changes_session {
            self.mark_session_changed();
        }
        match self.answer(&statement.source).await? {
            Answer::Done(_) if self.reply().has_cursor() => {
                handle.shape = self.reply().shape.clone();
                self.fetch(statement, handle, chunk).await
            }
            // The server has sent all of it.
            Answer::Done(result) => Ok(Ok(Fetched {
                columns: result.columns,
                rows: result.rows,
                handle: None,
            })),
            Answer::Failed(failure) => Ok(Err(failure.into_error(&statement.source))),
            Answer::Prepared { .. } => Err(self.give_up(UNEXPECTED_DESCRIPTION)),
        }
    }

    pub(super) async fn fetch(
        &mut self,
        statement: &Statement,
        handle: Handle,
        chunk: u32,
    ) -> Result<Result<Fetched, Error>, Error> {
        self.push_closes();
        self.reply().shape = handle.shape.clone();
        self.push_fetch(handle.id, chunk);
        match self.answer(&statement.source).await? {
            Answer::Done(result) => {
                let last = self.reply().is_last_row_sent() || result.rows.is_empty();
                Ok(Ok(Fetched {
                    columns: result.columns,
                    rows: result.rows,
                    handle: (!last).then_some(handle),
                }))
            }
            Answer::Failed(failure) => Ok(Err(failure.into_error(&statement.source))),
            Answer::Prepared { .. } => Err(self.give_up(UNEXPECTED_DESCRIPTION)),
        }
    }
}
