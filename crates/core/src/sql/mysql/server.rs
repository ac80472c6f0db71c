//! MySQL and MariaDB as kinds of [`Server`].

use std::rc::Rc;

use super::config::Config;
use super::connection::Connection;
use super::startup::Connector;
use super::statement_kind::StatementKind;
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
        StatementKind::of(sql).controls_transaction
    }

    async fn connect(&self) -> Result<Connection, Error> {
        self.connect().await
    }

    async fn cancel(&self, session: u32) -> Result<(), Error> {
        self.kill(session, false).await
    }

    async fn terminate(self: Rc<Self>, session: u32) -> Result<(), Error> {
        self.kill(session, true).await
    }

    async fn clean(&self, connection: &mut Connection) -> Result<(), Error> {
        if connection.has_changed_session() {
            // Also rolls back. A session without a default database could not leave the one it has changed to.
            if self.config.connect.database.is_none() {
                return Err(connection.give_up("its session cannot be reset"));
            }
            return self.reset(connection).await;
        }
        if !connection.is_idle() {
            connection.rollback().await?;
        }
        Ok(())
    }
}

impl ServerConnection for Connection {
    type Key = u32;

    fn key(&self) -> u32 {
        self.id
    }

    fn session_id(&self) -> i64 {
        self.id.into()
    }

    fn condition(&mut self) -> Condition {
        self.condition()
    }

    fn is_busy(&self) -> bool {
        self.is_busy()
    }

    fn is_in_transaction(&self) -> bool {
        !self.is_idle()
    }

    fn has_settings(&self) -> bool {
        self.has_changed_session()
    }

    fn keep_session_state(&mut self) {
        self.mark_clean();
    }

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

    async fn commit(&mut self) -> Result<Result<(), Error>, Error> {
        self.commit().await
    }

    async fn roll_back(&mut self) -> Result<(), Error> {
        self.rollback().await
    }

    fn sent_commit(&self) -> SentCommit {
        self.sent_commit()
    }

    fn push_ping(&mut self) {
        self.push_control("DO 0");
    }

    async fn drain(&mut self) -> Result<(), Error> {
        self.drain().await
    }

    fn quit(&mut self) {
        self.quit();
    }

    fn hook_state(&mut self) -> &mut HookState {
        &mut self.mark
    }
}
