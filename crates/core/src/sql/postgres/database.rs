use std::time::Duration;

use super::batch::is_boundary;
use super::listener::Listener;
use super::rows::RowStream;
use super::shared_round_trips;
use super::startup::Connector;
use super::transaction::{Transaction, TransactionOptions};
use crate::sql::copy::CopyData;
use crate::sql::pooled_database::PooledDatabase;
use crate::sql::{Error, ResultSet, Statement};

/// One PostgreSQL database behind a pool of connections.
pub type Database = PooledDatabase<Connector>;

impl PooledDatabase<Connector> {
    /// Creates a transaction, which begins on the server with its first flush.
    pub fn transaction(&self, options: TransactionOptions) -> Transaction {
        Transaction::new(self.pool.clone(), options)
    }

    /// Runs one statement by itself, as [`execute`](Self::execute). With `max_pipeline` in the DSN the statement may share a round trip with others that
    /// wait for a connection. It does not where hooks prepare a connection for one borrower.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn execute_single(&self, statement: Statement) -> Result<ResultSet, Error> {
        match shared_round_trips::limit(&self.pool) {
            Some(limit) if !is_boundary(&statement.sql) => {
                shared_round_trips::execute(&self.pool, limit, statement).await
            }
            _ => self.execute(statement).await,
        }
    }

    /// Runs a `COPY` whose data comes from or goes to the client.
    pub(in crate::sql) async fn copy(
        &self,
        statement: Statement,
        data: CopyData,
    ) -> Result<u64, Error> {
        let mut lease = self.pool.borrow().await?;
        lease.set_statement(&statement.source);
        lease.copy(&statement, data).await?
    }

    /// Subscribes to channels, with a connection of its own.
    ///
    /// # Errors
    /// As [`Listener::open`].
    pub async fn listen(&self, channels: Vec<String>, check: Duration) -> Result<Listener, Error> {
        Listener::open(self.pool.clone(), channels, check).await
    }

    /// Runs one statement and returns its rows in chunks of at most `chunk` (at least 1).
    pub fn stream(&self, statement: Statement, chunk: usize) -> RowStream {
        RowStream::new(self.pool.clone(), statement, chunk)
    }
}
