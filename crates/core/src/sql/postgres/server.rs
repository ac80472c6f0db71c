//! PostgreSQL as a kind of [`Server`].

use std::rc::Rc;

use super::batch::{Batch, End, is_boundary};
use super::cancel_key::CancelKey;
use super::config::Config;
use super::connection::{Connection, TransactionStatus};
use super::session_state::SessionState;
use super::startup::Connector;
use super::transaction::TransactionOptions;
use crate::pool::Condition;
use crate::sql::deferred_statements::SentCommit;
use crate::sql::hooks::HookState;
use crate::sql::server::{Server, ServerConnection};
use crate::sql::{Error, ResultSet, Statement};

impl Server for Connector {
    type Config = Config;
    type Connection = Connection;

    fn new(config: Config) -> Self {
        Self::new(config)
    }

    fn target(&self) -> &str {
        self.target()
    }

    fn is_boundary(sql: &str) -> bool {
        is_boundary(sql)
    }

    async fn connect(&self) -> Result<Connection, Error> {
        self.connect().await
    }

    async fn cancel(&self, session: CancelKey) -> Result<(), Error> {
        self.cancel(session).await
    }

    async fn terminate(self: Rc<Self>, session: CancelKey) -> Result<(), Error> {
        Self::cancel(&self, session).await
    }

    async fn clean(&self, connection: &mut Connection) -> Result<(), Error> {
        if connection.is_in_transaction() {
            connection.rollback().await?;
        }
        connection.reset_session().await
    }
}

impl ServerConnection for Connection {
    type Key = CancelKey;

    fn key(&self) -> CancelKey {
        self.cancel_key
    }

    fn session_id(&self) -> i64 {
        self.cancel_key.process_id.into()
    }

    fn condition(&mut self) -> Condition {
        self.condition()
    }

    fn is_busy(&self) -> bool {
        self.is_busy()
    }

    fn is_in_transaction(&self) -> bool {
        self.status() != TransactionStatus::Idle
    }

    fn has_settings(&self) -> bool {
        !self.session_state.is_none()
    }

    fn keep_session_state(&mut self) {
        self.session_state = SessionState::default();
    }

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
        Ok(self.run(batch).await?.into_single())
    }

    async fn commit(&mut self) -> Result<Result<(), Error>, Error> {
        let commit = Batch {
            end: End::Commit,
            ..Batch::of(&[])
        };
        let outcome = self.run(commit).await?;
        Ok(outcome.failure.map_or(Ok(()), |failure| Err(failure.error)))
    }

    async fn roll_back(&mut self) -> Result<(), Error> {
        self.rollback().await
    }

    fn sent_commit(&self) -> SentCommit {
        self.sent_commit()
    }

    fn push_ping(&mut self) {
        self.push_sync();
    }

    async fn drain(&mut self) -> Result<(), Error> {
        self.drain().await
    }

    fn quit(&mut self) {
        if !self.is_broken() && !self.is_busy() {
            self.push_terminate();
            self.link.send_now();
        }
    }

    fn hook_state(&mut self) -> &mut HookState {
        &mut self.mark
    }
}
