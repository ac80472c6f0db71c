//! [`SessionConnection`] of this driver.

use super::connection::Connection;
use crate::sql::deferred_statements::SentCommit;
use crate::sql::server_session::SessionConnection;
use crate::sql::{Error, ResultSet, Statement};

impl SessionConnection for Box<Connection> {
    async fn run_statement(
        &mut self,
        statement: &Statement,
        begin: bool,
    ) -> Result<Result<ResultSet, Error>, Error> {
        if begin {
            self.push_open();
        }
        self.run_one(statement).await
    }

    async fn commit_session(&mut self) -> Result<Result<(), Error>, Error> {
        self.commit().await
    }

    async fn roll_back_session(&mut self) -> Result<(), Error> {
        self.rollback().await
    }

    fn is_in_transaction(&self) -> bool {
        !self.is_idle()
    }

    fn holds_state(&self) -> bool {
        !self.is_idle() || self.has_changed_session()
    }

    fn sent_commit(&self) -> SentCommit {
        Connection::sent_commit(self)
    }
}
