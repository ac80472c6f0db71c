//! The writer's own transaction statements.

use rusqlite::Connection;

use super::failure;
use crate::sql::Error;

pub(super) struct TransactionStatements<'c> {
    pub begin: rusqlite::Statement<'c>,
    pub commit: rusqlite::Statement<'c>,
    pub rollback: rusqlite::Statement<'c>,
    pub savepoint: rusqlite::Statement<'c>,
    pub release: rusqlite::Statement<'c>,
    pub rollback_to: rusqlite::Statement<'c>,
}

impl<'c> TransactionStatements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            rollback: connection.prepare("ROLLBACK")?,
            savepoint: connection.prepare("SAVEPOINT weft_unit")?,
            release: connection.prepare("RELEASE weft_unit")?,
            rollback_to: connection.prepare("ROLLBACK TO weft_unit")?,
        })
    }

    pub(super) fn run(statement: &mut rusqlite::Statement<'_>, sql: &str) -> Result<(), Error> {
        statement
            .raw_execute()
            .map(drop)
            .map_err(|error| failure::of_statement(&error, sql))
    }
}
