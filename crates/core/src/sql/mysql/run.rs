//! Runs one statement: prepares it if necessary, executes it, and handles failures of both.

use std::collections::HashSet;
use std::sync::Arc;

use super::connection::Connection;
use super::failure::ServerFailure;
use super::reply::{Answer, UNEXPECTED_DESCRIPTION, UNEXPECTED_RESULT};
use super::statement_kind::StatementKind;
use crate::sql::{Error, ResultSet, Statement};

/// The reason why a statement could not be prepared.
pub(super) enum Unprepared {
    Failed(ServerFailure),
    /// It has no prepared form and is sent as text.
    TextOnly,
}

impl Connection {
    /// Runs one statement by itself.
    ///
    /// The outer error is the connection's, the inner one the statement's.
    pub(super) async fn run_one(
        &mut self,
        statement: &Statement,
    ) -> Result<Result<ResultSet, Error>, Error> {
        let mut stale = false;
        loop {
            match self.start(statement).await? {
                Ok(()) => {}
                Err(error) => return Ok(Err(error)),
            }
            match self.answer(&statement.source).await {
                Ok(Answer::Done(result)) => {
                    self.trim_cache();
                    return Ok(Ok(result));
                }
                Ok(Answer::Failed(failure)) if failure.is_stale_statement() && !stale => {
                    stale = true;
                    self.forget(&statement.sql);
                }
                Ok(Answer::Failed(failure)) => {
                    self.trim_cache();
                    return Ok(Err(failure.into_error(&statement.source)));
                }
                Ok(Answer::Prepared { .. }) => return Err(self.give_up(UNEXPECTED_DESCRIPTION)),
                // A refused file of `LOAD DATA LOCAL`; its answer has been read.
                Err(error @ (Error::Server(_) | Error::Parameter { .. })) => return Ok(Err(error)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the command that runs a statement, after preparing it if necessary.
    pub(super) async fn start(
        &mut self,
        statement: &Statement,
    ) -> Result<Result<(), Error>, Error> {
        if let Err(error) = self.check_length(statement) {
            return Ok(Err(error));
        }
        let kind = match self.prepare(std::slice::from_ref(&statement.sql)).await? {
            None => {
                let Some(prepared) = self.cache.get(&statement.sql) else {
                    return Err(
                        self.give_up("it answered for another statement than the prepared one")
                    );
                };
                if let Err(error) = fits(statement, prepared.parameters) {
                    return Ok(Err(error));
                }
                if let Err(error) = self.push_execute(prepared.id, statement, false) {
                    return Ok(Err(error));
                }
                prepared.kind
            }
            Some((_, Unprepared::Failed(failure))) => {
                return Ok(Err(failure.into_error(&statement.source)));
            }
            Some((_, Unprepared::TextOnly)) if statement.params.is_empty() => {
                self.push_query(&statement.sql);
                StatementKind::of(&statement.sql)
            }
            Some((_, Unprepared::TextOnly)) => {
                return Ok(Err(Error::parameter(
                    &statement.source,
                    "this statement cannot be prepared, so it must have no parameters",
                )));
            }
        };
        self.commit_sent.set(true);
        if kind.changes_session {
            self.mark_session_changed();
        }
        Ok(Ok(()))
    }

    /// Prepares all unprepared statements in one round trip. Returns the first failure.
    pub(super) async fn prepare(
        &mut self,
        texts: &[Arc<str>],
    ) -> Result<Option<(usize, Unprepared)>, Error> {
        let mut seen = HashSet::new();
        let unknown: Vec<usize> = (0..texts.len())
            .filter(|at| self.cache.get(&texts[*at]).is_none() && seen.insert(&texts[*at]))
            .collect();
        for at in &unknown {
            self.push_prepare(&texts[*at]);
        }
        let mut first = None;
        for at in unknown {
            match self.answer(&texts[at]).await? {
                Answer::Prepared { id, parameters } => {
                    self.cache.insert(Arc::clone(&texts[at]), id, parameters);
                }
                Answer::Failed(failure) => {
                    let reason = match failure.is_unpreparable() {
                        true => Unprepared::TextOnly,
                        false => Unprepared::Failed(failure),
                    };
                    first = first.or(Some((at, reason)));
                }
                Answer::Done(_) => return Err(self.give_up(UNEXPECTED_RESULT)),
            }
        }
        Ok(first)
    }

    /// Removes a statement from the cache, so that its next use prepares it again.
    pub(super) fn forget(&mut self, sql: &str) {
        self.evicted.extend(self.cache.remove(sql));
    }

    pub(super) fn trim_cache(&mut self) {
        let closed = self.cache.trim();
        self.evicted.extend(closed);
    }
}

pub(super) fn fits(statement: &Statement, parameters: u16) -> Result<(), Error> {
    match statement.params.len() {
        given if given == usize::from(parameters) => Ok(()),
        given => Err(Error::parameter(
            &statement.source,
            format!("the statement has {parameters} parameters, but {given} were given"),
        )),
    }
}
