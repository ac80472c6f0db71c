use std::rc::Rc;
use std::time::Duration;

use super::cancel;
use super::config::Config;
use super::connection::Connection;
use super::rows::RowStream;
use super::session::Nature;
use super::startup::Connector;
use super::transaction::Transaction;
use crate::pool::{Condition, Manage};
use crate::sql::hooks::{Guest, Mark, Visits};
use crate::sql::served::{Served, Server};
use crate::sql::{Error, ResultSet, Statement};

/// One MySQL or MariaDB database behind a pool of connections.
pub type Database = Served<Mysql>;

impl Served<Mysql> {
    /// Begins a transaction that costs nothing until its first flush.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.pool.clone())
    }

    /// Runs one statement and returns its rows in chunks of at most `chunk` (at least 1).
    pub fn stream(&self, statement: Statement, chunk: usize) -> RowStream {
        RowStream::new(self.pool.clone(), statement, chunk)
    }
}

/// What the pool needs to know about MySQL.
pub struct Mysql {
    connector: Rc<Connector>,
    visits: Rc<Visits<Box<Connection>>>,
}

impl Mysql {
    async fn clean(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let connection = cancel::recover(connection, &self.connector).await?;
        self.visits.cleaned(connection).await
    }
}

impl Server for Mysql {
    type Config = Config;

    fn new(config: Config, visits: Rc<Visits<Box<Connection>>>) -> Self {
        Self {
            connector: Rc::new(Connector::new(config)),
            visits,
        }
    }

    fn visits(&self) -> &Rc<Visits<Box<Connection>>> {
        &self.visits
    }

    fn target(&self) -> &str {
        self.connector.target()
    }

    fn is_boundary(sql: &str) -> bool {
        Nature::of(sql).controls
    }
}

impl Manage for Mysql {
    /// Boxed, since it moves at every borrow.
    type Connection = Box<Connection>;
    type Error = Error;

    async fn connect(&self) -> Result<Box<Connection>, Error> {
        let connection = self.connector.connect().await.map(Box::new)?;
        self.visits.created(connection).await
    }

    fn sees_lending(&self) -> bool {
        self.visits.hooks.borrowed
    }

    async fn lend(
        &self,
        connection: Box<Connection>,
        within: Duration,
    ) -> Result<Box<Connection>, Error> {
        self.visits.borrowed(connection, within).await
    }

    fn sees_returns(&self) -> bool {
        self.visits.hooks.returned
    }

    fn condition(&self, connection: &mut Box<Connection>) -> Condition {
        connection.condition()
    }

    async fn recover(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let mut connection = self.clean(connection).await?;
        if self.visits.hooks.returned {
            connection = self.visits.returned(connection).await?;
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

impl Guest for Box<Connection> {
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

    fn is_in_order(&self) -> bool {
        !self.is_busy() && self.is_idle()
    }

    fn keep_residue(&mut self) {
        self.mark_clean();
    }

    fn mark(&mut self) -> &mut Mark {
        &mut self.mark
    }
}
