//! Runs the statements of a transaction, together if possible, and ends it.

use std::sync::Arc;

use super::connection::Connection;
use super::reply::{Answer, UNEXPECTED_DESCRIPTION};
use super::run::{Unprepared, fits};
use super::statement_kind::StatementKind;
use crate::sql::error::excerpt;
use crate::sql::{Error, ResultSet, Statement};

/// The results of statements that were flushed together.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Results of the successful statements, in order.
    pub(super) results: Vec<ResultSet>,
    /// The first failure.
    pub(super) failure: Option<Error>,
}

impl Connection {
    /// Runs statements of a transaction in order. Those that neither commit nor change the meaning of others are sent together;
    /// after a failure the server still runs the others that were sent with it, and the required rollback undoes them.
    pub(super) async fn run_all(&mut self, statements: &[Statement]) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        while outcome.failure.is_none() && outcome.results.len() < statements.len() {
            let rest = &statements[outcome.results.len()..];
            match together(rest) {
                0 | 1 => self.run_alone(&rest[0], &mut outcome).await?,
                count => self.run_together(&rest[..count], &mut outcome).await?,
            }
        }
        self.trim_cache();
        Ok(outcome)
    }

    async fn run_alone(
        &mut self,
        statement: &Statement,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        if StatementKind::of(&statement.sql).commits {
            outcome.failure = Some(ends_transaction("would commit", statement));
            return Ok(());
        }
        let was_open = self.in_transaction();
        match self.run_one(statement).await? {
            Ok(_) if was_open && !self.in_transaction() => {
                outcome.failure = Some(ends_transaction("committed", statement));
            }
            Ok(result) => outcome.results.push(result),
            Err(error) => outcome.failure = Some(error),
        }
        Ok(())
    }

    async fn run_together(
        &mut self,
        statements: &[Statement],
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        for statement in statements {
            if let Err(error) = self.check_length(statement) {
                outcome.failure = Some(error);
                return Ok(());
            }
        }
        let texts: Vec<Arc<str>> = statements.iter().map(|s| Arc::clone(&s.sql)).collect();
        match self.prepare(&texts).await? {
            None => {}
            Some((at, Unprepared::Failed(failure))) => {
                outcome.failure = Some(failure.into_error(&statements[at].source));
                return Ok(());
            }
            // Every plain statement is expected to have a prepared form. If one has none, the statements run one by one.
            Some((_, Unprepared::TextOnly)) => {
                return self.run_alone(&statements[0], outcome).await;
            }
        }
        let (sent, mismatch) = self.send_all(statements);
        for statement in &statements[..sent] {
            let answer = self.answer(&statement.source).await?;
            match answer {
                Answer::Done(_) | Answer::Failed(_) if outcome.failure.is_some() => {}
                Answer::Done(result) => outcome.results.push(result),
                Answer::Failed(failure) => {
                    if failure.is_stale_statement() {
                        self.forget(&statement.sql);
                    }
                    outcome.failure = Some(failure.into_error(&statement.source));
                }
                Answer::Prepared { .. } => return Err(self.give_up(UNEXPECTED_DESCRIPTION)),
            }
        }
        if outcome.failure.is_none() {
            outcome.failure = mismatch;
        }
        Ok(())
    }

    /// Writes the executions, up to the first whose parameters cannot be sent.
    fn send_all(&mut self, statements: &[Statement]) -> (usize, Option<Error>) {
        for (at, statement) in statements.iter().enumerate() {
            let Some(prepared) = self.cache.get(&statement.sql) else {
                return (
                    at,
                    Some(self.give_up("it answered for another statement than the prepared one")),
                );
            };
            let written = fits(statement, prepared.parameters)
                .and_then(|()| self.push_execute(prepared.id, statement, false));
            if let Err(error) = written {
                return (at, Some(error));
            }
            if prepared.kind.changes_session {
                self.mark_session_changed();
            }
        }
        (statements.len(), None)
    }

    /// Turns autocommit off together with the next command: the transaction begins with the first statement that reads or
    /// writes. If a failure ends the transaction, such as a deadlock, the statements that were sent with the failed
    /// one still do not commit by themselves, as they would after `BEGIN`.
    pub(super) fn push_open(&mut self) {
        self.push_silent("SET autocommit = 0");
    }

    /// # Errors
    /// The inner one when the server refused, in which case nothing is committed.
    pub(super) async fn commit(&mut self) -> Result<Result<(), Error>, Error> {
        self.commit_sent.set(true);
        self.end("COMMIT").await
    }

    pub(super) async fn rollback(&mut self) -> Result<(), Error> {
        match self.end("ROLLBACK").await? {
            Ok(()) => Ok(()),
            Err(error) => Err(self.give_up(&error.to_string())),
        }
    }

    async fn end(&mut self, sql: &str) -> Result<Result<(), Error>, Error> {
        self.push_control(sql);
        self.push_control("SET autocommit = 1");
        let ended = self.answer(sql).await?;
        let restored = self.succeed("SET autocommit = 1").await;
        match ended {
            Answer::Failed(failure) => {
                restored?;
                Ok(Err(failure.into_error(sql)))
            }
            // The transaction has ended in any case. If this failed, the connection is broken.
            _ => Ok(Ok(())),
        }
    }

    /// Reads the answer to a command that succeeds on every working connection.
    async fn succeed(&mut self, sql: &str) -> Result<(), Error> {
        match self.answer(sql).await? {
            Answer::Failed(failure) => Err(self.give_up(&failure.summary())),
            _ => Ok(()),
        }
    }
}

/// The number of statements that can be sent without waiting for earlier answers. Statements that set, release or
/// roll back to a savepoint must not run after a failed statement, because they would fail or have another effect.
fn together(statements: &[Statement]) -> usize {
    let mut behind_others = false;
    let goes_along = |statement: &&Statement| {
        let kind = StatementKind::of(&statement.sql);
        let stops = kind.is_savepoint && behind_others;
        behind_others |= !kind.is_savepoint;
        kind.is_batchable && !stops
    };
    statements.iter().take_while(goes_along).count()
}

/// `effect` is a verb, such as "would commit".
fn ends_transaction(effect: &str, statement: &Statement) -> Error {
    let text = excerpt(&statement.source);
    let message = format!(
        "the statement {effect} its transaction, as CREATE, ALTER, LOCK TABLES and similar statements do in MySQL; run it before or after the transaction [statement: {text}]"
    );
    Error::Usage { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(texts: &[&str]) -> usize {
        let statement = |sql: &&str| Statement::new(*sql, Vec::new());
        together(&texts.iter().map(statement).collect::<Vec<_>>())
    }

    #[test]
    fn savepoints_and_what_commits_wait_for_what_is_before_them() {
        assert_eq!(count(&["INSERT 1", "SELECT 2", "RELEASE SAVEPOINT a"]), 2);
        assert_eq!(
            count(&["ROLLBACK TO a", "RELEASE SAVEPOINT a", "INSERT 1"]),
            3
        );
        assert_eq!(count(&["SAVEPOINT a", "INSERT 1", "SAVEPOINT b"]), 2);
        assert_eq!(count(&["INSERT 1", "CREATE TABLE t (a INT)"]), 1);
        assert_eq!(count(&["CALL p()", "INSERT 1"]), 0);
    }
}
