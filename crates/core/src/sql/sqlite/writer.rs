//! The writer thread. Jobs that are queued at the same time share one commit, and thus one sync of the disk.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::Connection;

use super::changes::Changes;
use super::config::Location;
use super::connection;
use super::engine::{Engine, NextCommand, Taken};
use super::failure;
use super::jobs::{Command, Job, Then, Unit, Work};
use super::prepared::{Prepared, STATEMENT_CACHE_SIZE, forget_last_insert_id};
use super::reply_queue::{Answer, BatchAnswer, Reply};
use super::statement_kind::StatementKind;
use super::transaction_statements::TransactionStatements;
use crate::panics;
use crate::sql::cache::Cache;
use crate::sql::{Error, ResultSet, Statement};

/// Serves until the database is closed. All waiters are answered when it ends.
///
/// A panic, which is a bug in Weft, fails the jobs that were taken and the transaction that holds the writer. The next jobs of a file
/// get a new connection. An in-memory database is gone with its connection, so all its later jobs fail.
pub(super) fn run(engine: &Arc<Engine>) {
    let mut changes = None;
    let error = loop {
        let mut is_open = false;
        let ended = panics::caught_call(|| serve(engine, &mut changes, &mut is_open));
        match ended {
            Ok(Ok(())) => break engine.closed(),
            Ok(Err(error)) => break error,
            Err(message) => {
                let error = engine.crashed(message);
                if !is_open || engine.config.location == Location::Memory {
                    break error;
                }
                engine.abandon_jobs(&error);
            }
        }
    };
    engine.fail_all(&error);
}

/// `changes` are those of an earlier connection. `is_open` becomes true when there is a connection.
fn serve(engine: &Engine, changes: &mut Option<Changes>, is_open: &mut bool) -> Result<(), Error> {
    let connection = connection::open_writer(&engine.config, &engine.writer_control)?;
    engine.opened();
    let transaction_statements = TransactionStatements::prepare(&connection)
        .map_err(|error| failure::of_statement(&error, "BEGIN IMMEDIATE"))?;
    *is_open = true;
    let counted = match changes.take() {
        None => Changes::new(&connection),
        Some(before) => before.renewed(&connection),
    };
    let changes = changes.insert(counted);
    Writer::new(engine, &connection, transaction_statements, changes).serve();
    engine.wait_for_readers();
    Ok(())
}

struct Writer<'c> {
    engine: &'c Engine,
    connection: &'c Connection,
    transaction_statements: TransactionStatements<'c>,
    statements: Cache<Prepared<'c>>,
    /// Units run since BEGIN; their answers wait for COMMIT.
    group: Vec<Done>,
    begun: bool,
    /// Time and error of the last BEGIN, if it failed.
    locked: Option<(Instant, Error)>,
    changes: &'c mut Changes,
}

struct Done {
    unit: Unit,
    answer: Answer,
    /// Its failure has rolled back the whole transaction; it is not retried.
    ended_group: bool,
}

impl<'c> Writer<'c> {
    fn new(
        engine: &'c Engine,
        connection: &'c Connection,
        transaction_statements: TransactionStatements<'c>,
        changes: &'c mut Changes,
    ) -> Self {
        Self {
            engine,
            connection,
            transaction_statements,
            statements: Cache::new(STATEMENT_CACHE_SIZE),
            group: Vec::with_capacity(engine.config.group),
            begun: false,
            locked: None,
            changes,
        }
    }

    fn serve(&mut self) {
        let mut jobs = Vec::new();
        loop {
            let idle = self.group.is_empty();
            match self.engine.take(&mut jobs, idle) {
                Taken::Jobs => jobs.drain(..).for_each(|job| self.run(job)),
                Taken::Nothing => {
                    self.commit_group();
                    self.report_changes();
                }
                Taken::Closing => return,
            }
        }
    }

    fn run(&mut self, job: Job) {
        match job {
            Job::Unit(unit) => self.run_unit(unit),
            Job::Begin(command) => {
                self.commit_group();
                self.hold(command);
                self.report_changes();
            }
            Job::Marker(reply) => {
                self.commit_group();
                let others = reply
                    .replies()
                    .map_or(0, |replies| self.changes.by_others(replies));
                reply.answer(Answer::Changes(Ok(others)));
            }
        }
    }

    fn run_unit(&mut self, unit: Unit) {
        match &unit.work {
            Work::One(statement)
                if StatementKind::of_uncached(&self.statements, &statement.sql)
                    == Some(StatementKind::Alone) =>
            {
                self.run_alone(unit)
            }
            _ => self.run_in_group(unit),
        }
        if self.group.len() >= self.engine.config.group {
            self.commit_group();
            self.report_changes();
        }
    }

    /// Runs a PRAGMA or VACUUM, outside of any transaction.
    fn run_alone(&mut self, unit: Unit) {
        self.commit_group();
        let Work::One(statement) = &unit.work else {
            return;
        };
        let job = self.started(&unit.reply);
        self.engine.note_tables(&statement.sql);
        let result = Prepared::new(self.connection, &statement.sql, StatementKind::Alone)
            .and_then(|mut prepared| prepared.run(&statement.params))
            .map_err(|error| error.in_words_of(statement));
        drop(job);
        unit.reply.answer(Answer::Rows(result));
    }

    fn run_in_group(&mut self, unit: Unit) {
        let mut pending = VecDeque::from([unit]);
        while let Some(unit) = pending.pop_front() {
            if let Err(error) = self.begin_for(&unit) {
                unit.reply.fail(error);
                continue;
            }
            let answer = self.attempt(&unit);
            let ended_group = self.connection.is_autocommit();
            if ended_group {
                // SQLite has rolled back the whole transaction (disk full, interrupted, ON CONFLICT ROLLBACK): the other jobs
                // of the group run again without this one.
                self.begun = false;
                self.restart_group(&mut pending);
            }
            self.group.push(Done {
                unit,
                answer,
                ended_group,
            });
        }
    }

    fn restart_group(&mut self, pending: &mut VecDeque<Unit>) {
        let (failed, again): (Vec<Done>, Vec<Done>) =
            self.group.drain(..).partition(|done| done.ended_group);
        self.group = failed;
        for done in again.into_iter().rev() {
            pending.push_front(done.unit);
        }
    }

    /// Begins a transaction for a unit. A unit that was queued while an earlier BEGIN waited in vain for the lock of another
    /// process fails with that error instead of waiting again.
    fn begin_for(&mut self, unit: &Unit) -> Result<(), Error> {
        if let Some((_, error)) = self
            .locked
            .as_ref()
            .filter(|(since, _)| unit.queued <= *since)
        {
            return Err(error.clone());
        }
        if self.begun {
            return Ok(());
        }
        let since = Instant::now();
        let begun = self.begin();
        self.locked = begun.as_ref().err().map(|error| (since, error.clone()));
        begun
    }

    fn begin(&mut self) -> Result<(), Error> {
        if !self.begun {
            TransactionStatements::run(&mut self.transaction_statements.begin, "BEGIN IMMEDIATE")?;
            self.begun = true;
        }
        Ok(())
    }

    /// Runs a unit, which has no effect if it fails.
    fn attempt(&mut self, unit: &Unit) -> Answer {
        forget_last_insert_id(self.connection);
        let job = self.started(&unit.reply);
        let answer = match &unit.work {
            // SQLite rolls back a failed statement by itself.
            Work::One(statement) => Answer::Rows(self.execute(statement, false)),
            Work::Transaction(statements) => Answer::Batch(self.attempt_transaction(statements)),
        };
        drop(job);
        answer
    }

    fn attempt_transaction(&mut self, statements: &[Statement]) -> BatchAnswer {
        let mut results = Vec::with_capacity(statements.len());
        let outcome =
            TransactionStatements::run(&mut self.transaction_statements.savepoint, "SAVEPOINT")
                .and_then(|()| {
                    let outcome = self.execute_all(statements, &mut results);
                    if outcome.is_err() && !self.connection.is_autocommit() {
                        TransactionStatements::run(
                            &mut self.transaction_statements.rollback_to,
                            "ROLLBACK TO",
                        )?;
                    }
                    if !self.connection.is_autocommit() {
                        TransactionStatements::run(
                            &mut self.transaction_statements.release,
                            "RELEASE",
                        )?;
                    }
                    outcome
                });
        BatchAnswer {
            results,
            outcome,
            open: false,
        }
    }

    /// Stops at the first failure.
    fn execute_all(
        &mut self,
        statements: &[Statement],
        results: &mut Vec<Result<ResultSet, Error>>,
    ) -> Result<(), Error> {
        for statement in statements {
            let result = self.execute(statement, true);
            let failed = result.as_ref().err().cloned();
            results.push(result);
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    fn execute(&mut self, statement: &Statement, in_transaction: bool) -> Result<ResultSet, Error> {
        let result = self.prepare_and_run(statement, in_transaction);
        result.map_err(|error| error.in_words_of(statement))
    }

    fn prepare_and_run(
        &mut self,
        statement: &Statement,
        in_transaction: bool,
    ) -> Result<ResultSet, Error> {
        let sql = &statement.sql;
        let connection = self.connection;
        let engine = self.engine;
        let prepared = self.statements.find_or_insert(sql, || {
            engine.note_tables(sql);
            let kind = StatementKind::of(sql);
            kind.allow(sql, in_transaction)?;
            Ok::<_, Error>((Arc::clone(sql), Prepared::new(connection, sql, kind)?))
        })?;
        prepared.kind().allow(sql, in_transaction)?;
        prepared.run(&statement.params)
    }

    fn commit_group(&mut self) {
        if !self.begun {
            return Reply::answer_all(
                self.group
                    .drain(..)
                    .map(|done| (done.unit.reply, done.answer)),
            );
        }
        self.begun = false;
        match TransactionStatements::run(&mut self.transaction_statements.commit, "COMMIT") {
            Ok(()) => {
                self.changes.count(
                    self.group
                        .iter()
                        .filter_map(|done| done.unit.reply.replies()),
                );
                Reply::answer_all(
                    self.group
                        .drain(..)
                        .map(|done| (done.unit.reply, done.answer)),
                );
            }
            Err(error) => {
                self.roll_back();
                self.settle_failed_group(&error);
            }
        }
    }

    /// A deferred constraint fails at COMMIT without naming its unit, so each unit is then committed by itself.
    fn settle_failed_group(&mut self, error: &Error) {
        let deferred = matches!(error, Error::Server(server) if server.sqlstate.starts_with("23"));
        for done in std::mem::take(&mut self.group) {
            if done.ended_group {
                done.unit.reply.answer(done.answer);
            } else if deferred {
                self.run_by_itself(done.unit);
            } else {
                done.unit.reply.fail(error.clone());
            }
        }
    }

    fn run_by_itself(&mut self, unit: Unit) {
        if let Err(error) = self.begin() {
            return unit.reply.fail(error);
        }
        let answer = self.attempt(&unit);
        self.begun = false;
        if self.connection.is_autocommit() {
            return unit.reply.answer(answer);
        }
        match TransactionStatements::run(&mut self.transaction_statements.commit, "COMMIT") {
            Ok(()) => {
                self.changes.count(unit.reply.replies());
                unit.reply.answer(answer);
            }
            Err(error) => {
                self.roll_back();
                unit.reply.fail(error);
            }
        }
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            // It fails only if there is nothing to roll back.
            let _ =
                TransactionStatements::run(&mut self.transaction_statements.rollback, "ROLLBACK");
        }
    }

    /// Runs an interactive transaction, which holds the writer until its end or its timeout.
    fn hold(&mut self, first: Command) {
        let deadline = Instant::now() + self.engine.config.transaction_timeout;
        let mut session = Session {
            failure: None,
            deadline,
        };
        self.engine.writer_control.set_deadline(Some(deadline));
        forget_last_insert_id(self.connection);
        let mut next = Some(first);
        while let Some(command) = next {
            let open = self.obey(command, &mut session);
            next = match open {
                true => self.next_command(deadline),
                false => None,
            };
        }
        self.engine.writer_control.set_deadline(None);
        self.roll_back();
        self.begun = false;
        self.engine
            .release_writer(|| self.engine.transaction_expired("COMMIT"));
    }

    fn next_command(&self, deadline: Instant) -> Option<Command> {
        match self.engine.next_command(deadline) {
            NextCommand::Command(command) => Some(command),
            NextCommand::TimedOut | NextCommand::Closing => None,
        }
    }

    /// Returns whether the transaction continues.
    fn obey(&mut self, command: Command, session: &mut Session) -> bool {
        let replies = command
            .reply
            .as_ref()
            .and_then(|reply| reply.replies().cloned());
        let answer = match self.begin() {
            Ok(()) => {
                let job = command.reply.as_ref().map(|reply| self.started(reply));
                let answer = self.run_command(&command, session);
                drop(job);
                answer
            }
            Err(error) => BatchAnswer::refused(error),
        };
        if !answer.open && answer.outcome.is_ok() && command.then == Then::Commit {
            self.changes.count(replies.as_ref());
        }
        let open = answer.open;
        if !open {
            self.roll_back();
        }
        if let Some(reply) = command.reply {
            reply.answer(Answer::Batch(answer));
        }
        open
    }

    fn run_command(&mut self, command: &Command, session: &mut Session) -> BatchAnswer {
        let mut results = Vec::with_capacity(command.statements.len());
        let mut outcome = Ok(());
        for statement in &command.statements {
            let result = self.execute_in_session(statement, session, outcome.is_err());
            if let Err(error) = &result {
                outcome = outcome.and_then(|()| Err(error.clone()));
            }
            results.push(result);
        }
        let lost = self.connection.is_autocommit();
        let outcome = match command.then {
            _ if lost => outcome,
            Then::Continue => outcome,
            Then::Rollback => {
                self.roll_back();
                Ok(())
            }
            Then::Commit => match session.failure.take() {
                Some(error) => Err(error),
                None => {
                    TransactionStatements::run(&mut self.transaction_statements.commit, "COMMIT")
                }
            },
        };
        BatchAnswer {
            results,
            outcome,
            open: command.then == Then::Continue && !lost,
        }
    }

    /// After a failure only a rollback to a savepoint is possible, and only in a later batch: the statements
    /// after the failed one were sent before the failure was known.
    fn execute_in_session(
        &mut self,
        statement: &Statement,
        session: &mut Session,
        batch_failed: bool,
    ) -> Result<ResultSet, Error> {
        let recovers = !batch_failed
            && StatementKind::of(&statement.sql) == StatementKind::RollbackTo
            && !self.connection.is_autocommit();
        if (batch_failed || session.failure.is_some()) && !recovers {
            return Err(skipped(statement));
        }
        let result = self.execute(statement, true).map_err(|error| {
            match Instant::now() >= session.deadline {
                true => self.engine.transaction_expired(&statement.source),
                false => error,
            }
        });
        match &result {
            Ok(_) if recovers => session.failure = None,
            Ok(_) => {}
            Err(error) => session.failure = session.failure.take().or_else(|| Some(error.clone())),
        }
        result
    }

    fn report_changes(&mut self) {
        if self.engine.has_watchers() {
            self.changes.look(self.connection);
            self.engine
                .answer_watchers(|replies| self.changes.by_others(replies));
        }
    }

    fn started(&self, reply: &Reply) -> Running<'c> {
        self.engine.writer_control.started(reply.id);
        Running(self.engine)
    }
}

/// Makes the job interruptible for its lifetime.
struct Running<'a>(&'a Engine);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.writer_control.finished();
    }
}

struct Session {
    /// The first failure since the last rollback to a savepoint.
    failure: Option<Error>,
    deadline: Instant,
}

/// As PostgreSQL's error for the same situation.
pub(super) fn skipped(statement: &Statement) -> Error {
    failure::server(
        "25P02",
        "the transaction failed before; it can only be rolled back",
        &statement.source,
    )
}
