//! [`SessionConnection`] of this driver.

use super::batch::{Batch, End};
use super::connection::{Connection, TransactionStatus};
use super::transaction::TransactionOptions;
use crate::sql::deferred_statements::SentCommit;
use crate::sql::server_session::SessionConnection;
use crate::sql::{Error, ResultSet, Statement};

impl SessionConnection for Box<Connection> {
    async fn run_statement(
        &mut self,
        statement: &Statement,
        begin: bool,
    ) -> Result<Result<ResultSet, Error>, Error> {
        let plain_begin = TransactionOptions::default().begin();
        let batch = Batch {
            begin: begin.then_some(&plain_begin),
            ..Batch::of(std::slice::from_ref(statement))
        };
        let mut outcome = self.run(batch).await?;
        Ok(match outcome.failure {
            Some(failure) => Err(failure.error),
            None => Ok(outcome.results.pop().unwrap_or_default()),
        })
    }

    async fn commit_session(&mut self) -> Result<Result<(), Error>, Error> {
        let commit = Batch {
            end: End::Commit,
            ..Batch::of(&[])
        };
        let outcome = self.run(commit).await?;
        Ok(outcome.failure.map_or(Ok(()), |failure| Err(failure.error)))
    }

    async fn roll_back_session(&mut self) -> Result<(), Error> {
        self.rollback().await
    }

    fn is_in_transaction(&self) -> bool {
        self.status() != TransactionStatus::Idle
    }

    fn holds_state(&self) -> bool {
        self.is_in_transaction() || !self.session_state.is_none()
    }

    fn sent_commit(&self) -> SentCommit {
        Connection::sent_commit(self)
    }
}
