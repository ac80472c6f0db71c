use std::rc::Rc;
use std::time::Duration;

use super::batch::{Batch, is_boundary};
use super::cancel;
use super::config::Config;
use super::connection::{Connection, TransactionStatus};
use super::session_state::SessionState;
use super::startup::Connector;
use crate::pool::{Condition, Manage};
use crate::sql::hooks::{HookCalls, HookState, HookedConnection};
use crate::sql::pooled_database::Server;
use crate::sql::{Error, ResultSet, Statement};

/// Manages the connections of a pool.
pub struct Postgres {
    pub(super) connector: Rc<Connector>,
    hook_calls: Rc<HookCalls<Box<Connection>>>,
}

impl Postgres {
    async fn clean(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let connection = cancel::recover(connection, &self.connector).await?;
        self.hook_calls.cleaned(connection).await
    }
}

impl Server for Postgres {
    type Config = Config;

    fn new(config: Config, hook_calls: Rc<HookCalls<Box<Connection>>>) -> Self {
        Self {
            connector: Rc::new(Connector::new(config)),
            hook_calls,
        }
    }

    fn hook_calls(&self) -> &Rc<HookCalls<Box<Connection>>> {
        &self.hook_calls
    }

    fn target(&self) -> &str {
        self.connector.target()
    }

    fn is_boundary(sql: &str) -> bool {
        is_boundary(sql)
    }
}

impl Manage for Postgres {
    /// Boxed because it is moved at every borrow.
    type Connection = Box<Connection>;
    type Error = Error;

    async fn connect(&self) -> Result<Box<Connection>, Error> {
        let connection = self.connector.connect().await.map(Box::new)?;
        self.hook_calls.created(connection).await
    }

    fn has_borrow_hook(&self) -> bool {
        self.hook_calls.hooks.borrowed
    }

    async fn on_borrow(
        &self,
        connection: Box<Connection>,
        within: Duration,
    ) -> Result<Box<Connection>, Error> {
        self.hook_calls.borrowed(connection, within).await
    }

    fn has_return_hook(&self) -> bool {
        self.hook_calls.hooks.returned
    }

    fn condition(&self, connection: &mut Box<Connection>) -> Condition {
        connection.condition()
    }

    async fn recover(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let mut connection = self.clean(connection).await?;
        if self.hook_calls.hooks.returned {
            connection = self.hook_calls.returned(connection).await?;
            if connection.condition() == Condition::Dirty {
                connection = self.clean(connection).await?;
            }
        }
        Some(connection)
    }

    fn terminate(
        &self,
        connection: &mut Box<Connection>,
    ) -> Option<impl Future<Output = ()> + 'static> {
        Some(cancel::terminate(
            connection.cancel_key,
            Rc::clone(&self.connector),
        ))
    }

    async fn validate(&self, mut connection: Box<Connection>) -> Option<Box<Connection>> {
        connection.push_sync();
        connection.drain().await.is_ok().then_some(connection)
    }

    fn is_down(&self, error: &Error) -> bool {
        error.is_down()
    }

    fn close(&self, mut connection: Box<Connection>) {
        if !connection.is_broken() && !connection.is_busy() {
            connection.push_terminate();
            connection.link.send_now();
        }
    }
}

impl HookedConnection for Box<Connection> {
    fn session(&self) -> i64 {
        self.cancel_key.process_id.into()
    }

    async fn execute(&mut self, statement: &Statement) -> Result<ResultSet, Error> {
        let batch = Batch::of(std::slice::from_ref(statement));
        let mut outcome = self.run(batch).await?;
        if let Some(failure) = outcome.failure {
            return Err(failure.error);
        }
        if self.status() != TransactionStatus::Idle {
            self.rollback().await?;
            return Err(Error::open_transaction());
        }
        Ok(outcome.results.pop().unwrap_or_default())
    }

    fn is_ready(&self) -> bool {
        !self.is_busy() && self.status() == TransactionStatus::Idle
    }

    fn keep_session_state(&mut self) {
        self.session_state = SessionState::default();
    }

    fn mark(&mut self) -> &mut HookState {
        &mut self.mark
    }
}
