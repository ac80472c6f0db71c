use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tokio::sync::Mutex;

use super::database::Database;
use super::failure;
use super::statement_kind::StatementKind;
use super::transaction::Transaction;
use crate::sql::{Error, ResultSet, Statement};

/// The savepoint around each statement of a transaction. A failed statement leaves the transaction unchanged, as with SQLite's
/// own interface, whereas a [`Transaction`] fails as a whole.
const SAVEPOINT: &str = "SAVEPOINT weft_statement";
const RELEASE: &str = "RELEASE weft_statement";
const ROLLBACK_TO: &str = "ROLLBACK TO weft_statement";

/// A session with a file. Outside of a transaction each statement commits by itself; a transaction holds the writer from its first
/// statement on.
pub struct Session {
    database: Database,
    /// Replaced as a whole by a reset. A statement that runs meanwhile keeps the old state, also where its future is dropped later: its
    /// transaction ends with it.
    state: RefCell<Rc<State>>,
}

#[derive(Default)]
struct State {
    transaction: Mutex<Option<Transaction>>,
    in_transaction: Cell<bool>,
}

impl Session {
    pub(in crate::sql) fn new(database: Database) -> Self {
        Self {
            database,
            state: RefCell::default(),
        }
    }

    fn state(&self) -> Rc<State> {
        Rc::clone(&self.state.borrow())
    }

    pub(in crate::sql) fn begin(&self) -> Result<(), Error> {
        match self.state().in_transaction.replace(true) {
            true => Err(failure::usage("the session is already in a transaction")),
            false => Ok(()),
        }
    }

    pub(in crate::sql) async fn execute(&self, statement: Statement) -> Result<ResultSet, Error> {
        let state = self.state();
        let mut held = state.transaction.lock().await;
        if !state.in_transaction.get() {
            return self.database.execute(statement).await;
        }
        let transaction = held.get_or_insert_with(|| self.database.transaction());
        let marks = matches!(
            StatementKind::of(&statement.sql),
            StatementKind::Savepoint | StatementKind::RollbackTo
        );
        if marks {
            let index = transaction.push(statement)?;
            transaction.flush().await?;
            return answer(transaction, index);
        }
        control(transaction, SAVEPOINT)?;
        let index = transaction.push(statement)?;
        control(transaction, RELEASE)?;
        let flushed = transaction.flush().await;
        if flushed.is_err() && transaction.is_open() {
            control(transaction, ROLLBACK_TO)?;
            control(transaction, RELEASE)?;
            // Fails if the error has ended the transaction, which the next statement reports.
            let _ = transaction.flush().await;
        }
        match transaction.take_result(index) {
            Some(result) => result,
            None => Err(flushed.err().unwrap_or_else(unanswered)),
        }
    }

    pub(in crate::sql) async fn commit(&self) -> Result<(), Error> {
        let transaction = self.end().await;
        match transaction {
            Some(transaction) => transaction.commit().await,
            None => Ok(()),
        }
    }

    pub(in crate::sql) async fn roll_back(&self) -> Result<(), Error> {
        match self.end().await {
            // A transaction that has ended by itself needs no rollback.
            Some(transaction) if transaction.is_open() => transaction.rollback().await,
            _ => Ok(()),
        }
    }

    pub(in crate::sql) fn reset(&self) {
        self.state.take();
    }

    async fn end(&self) -> Option<Transaction> {
        let state = self.state();
        let mut held = state.transaction.lock().await;
        state.in_transaction.set(false);
        held.take()
    }
}

fn control(transaction: &Transaction, sql: &str) -> Result<usize, Error> {
    transaction.push(Statement::new(sql, Vec::new()))
}

fn answer(transaction: &Transaction, index: usize) -> Result<ResultSet, Error> {
    transaction
        .take_result(index)
        .unwrap_or_else(|| Err(unanswered()))
}

fn unanswered() -> Error {
    failure::usage("the statement has no result")
}
