use super::rows::RowStream;
use super::startup::Connector;
use super::transaction::Transaction;
use crate::sql::Statement;
use crate::sql::pooled_database::PooledDatabase;

/// One MySQL or MariaDB database behind a pool of connections.
pub type Database = PooledDatabase<Connector>;

impl PooledDatabase<Connector> {
    /// Creates a transaction, which begins on the server with its first flush.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.pool.clone())
    }

    /// Runs one statement and returns its rows in chunks of at most `chunk` (at least 1).
    pub fn stream(&self, statement: Statement, chunk: usize) -> RowStream {
        RowStream::new(self.pool.clone(), statement, chunk)
    }
}
