//! The commands of a cursor on the server.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::connection::Connection;
use super::decode::RowShape;
use super::reply::{Answer, UNEXPECTED_DESCRIPTION, UNEXPECTED_RESULT};
use super::run::fits;
use super::statement_kind::StatementKind;
use crate::sql::{Column, Error, Statement, Value};

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

/// Rows of a cursor.
pub(super) struct Fetched {
    pub(super) columns: Arc<[Column]>,
    pub(super) rows: Vec<Vec<Value>>,
    /// `None` when these are the last rows.
    pub(super) handle: Option<Handle>,
}

impl Connection {
    /// Opens a cursor and fetches its first rows. The outer error is the connection's, the inner one the statement's.
    ///
    /// The statement is prepared for this cursor only, because running it again would close the cursor.
    pub(super) async fn open_cursor(
        &mut self,
        statement: &Statement,
        dropped: &Rc<RefCell<Vec<u32>>>,
        chunk: u32,
    ) -> Result<Result<Fetched, Error>, Error> {
        if let Err(error) = self.check_length(statement) {
            return Ok(Err(error));
        }
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
            // The server has sent all rows.
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
