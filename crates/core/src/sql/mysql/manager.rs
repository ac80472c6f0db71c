use std::rc::Rc;
use std::time::Duration;

use super::cancel;
use super::config::Config;
use super::connection::Connection;
use super::startup::Connector;
use super::statement_kind::StatementKind;
use crate::pool::{Condition, Manage};
use crate::sql::hooks::{HookCalls, HookState, HookedConnection};
use crate::sql::pooled_database::Server;
use crate::sql::{Error, ResultSet, Statement};

/// Manages the connections of a pool.
pub struct Mysql {
    connector: Rc<Connector>,
    hook_calls: Rc<HookCalls<Box<Connection>>>,
}

impl Mysql {
    async fn clean(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let connection = cancel::recover(connection, &self.connector).await?;
        self.hook_calls.cleaned(connection).await
    }
}

impl Server for Mysql {
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
        StatementKind::of(sql).controls_transaction
    }
}

impl Manage for Mysql {
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
        Some(cancel::terminate(connection.id, Rc::clone(&self.connector)))
    }

    async fn validate(&self, mut connection: Box<Connection>) -> Option<Box<Connection>> {
        connection.push_control("DO 0");
        connection.drain().await.is_ok().then_some(connection)
    }

    fn is_down(&self, error: &Error) -> bool {
        error.is_down()
    }

    fn close(&self, mut connection: Box<Connection>) {
        connection.quit();
    }
}

impl HookedConnection for Box<Connection> {
    fn session(&self) -> i64 {
        self.id.into()
    }

    async fn execute(&mut self, statement: &Statement) -> Result<ResultSet, Error> {
        let outcome = self.run_one(statement).await?;
        if !self.is_idle() {
            self.rollback().await?;
            outcome?;
            return Err(Error::open_transaction());
        }
        outcome
    }

    fn is_ready(&self) -> bool {
        !self.is_busy() && self.is_idle()
    }

    fn keep_session_state(&mut self) {
        self.mark_clean();
    }

    fn mark(&mut self) -> &mut HookState {
        &mut self.mark
    }
}
