//! Runs batches in the extended query protocol (PostgreSQL documentation, "Extended Query").

use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::batch::{Batch, End, Failure, Outcome, Outdated, is_plain};
use super::cache::{Prepared, StatementCache};
use super::connection::{Connection, TransactionStatus};
use super::decode::RowShape;
use super::encode::{self, Encoded, TypeMismatch};
use super::failure::{ServerFailure, shorten};
use super::replies::Results;
use super::session_state::SessionState;
use crate::sql::{Error, Statement, Value};

impl Connection {
    /// Sends a batch and reads its results.
    ///
    /// Statements that are new to this connection are prepared first, in one additional round trip for all. After a
    /// failure the transaction's state is in [`status`](Self::status). Dropping the future leaves the connection in the
    /// middle of the answer; the pool cleans it.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`]; a statement's failure is in [`Outcome::failure`].
    pub async fn run(&mut self, batch: Batch<'_>) -> Result<Outcome, Error> {
        let fresh = self.status() == TransactionStatus::Idle;
        let mut outcome = self.run_fitting(batch).await?;
        let outdated = outcome
            .failure
            .as_ref()
            .and_then(|failure| failure.outdated);
        if let Some(outdated) = outdated {
            outcome = match fresh {
                true => self.run_anew(batch, outcome, outdated).await?,
                false => {
                    // Nothing of the caller's transaction can be repeated here, but its next attempt prepares the statement anew.
                    self.forget_all(&batch);
                    outcome.of_transaction(outdated)
                }
            };
        }
        self.cache.trim();
        Ok(outcome)
    }

    /// Runs a batch once. If a parameter does not fit a statement that was prepared for an earlier use, the statement is prepared again,
    /// because a column may have got another type; what was before it in the batch does not run again.
    async fn run_fitting(&mut self, batch: Batch<'_>) -> Result<Outcome, Error> {
        let mut outcome = self.run_once(batch, true).await?;
        while let Some(at) = outcome.misfit()
            && self.status() != TransactionStatus::Failed
            && let Some(statement) = batch.statements.get(at)
        {
            self.cache.remove(&statement.sql);
            let done = outcome.results.len();
            let is_begun = self.status() != TransactionStatus::Idle;
            let rest = Batch {
                begin: batch.begin.filter(|_| !is_begun),
                statements: &batch.statements[done..],
                end: batch.end,
            };
            let next = self.run_once(rest, true).await?;
            outcome.results.extend(next.results);
            outcome.failure = next.failure.map(|failure| Failure {
                at: failure.at + done,
                ..failure
            });
        }
        Ok(outcome)
    }

    /// Runs a batch again that has failed without effect because of an outdated statement.
    pub(super) async fn run_anew(
        &mut self,
        batch: Batch<'_>,
        outcome: Outcome,
        outdated: Outdated,
    ) -> Result<Outcome, Error> {
        let is_implicit = self.status() == TransactionStatus::Idle;
        if !is_implicit {
            self.rollback().await?;
        }
        match outdated {
            Outdated::Gone | Outdated::Columns => {
                self.forget_all(&batch);
                // Behind a pooler other sessions may still have outdated statements: only one without a name is always new.
                self.run_once(batch, false).await
            }
            // The savepoints of a transaction that was rolled back here are there again only after another run.
            Outdated::Types if self.renew(&batch).await? || !is_implicit => {
                self.run_fitting(batch).await
            }
            Outdated::Types | Outdated::Parameter => Ok(outcome),
        }
    }

    /// Prepares the statements of a batch again. Returns whether the types of their parameters have changed.
    async fn renew(&mut self, batch: &Batch<'_>) -> Result<bool, Error> {
        let known = |cache: &StatementCache| -> Vec<_> {
            let statements = batch.statements.iter();
            statements
                .map(|statement| cache.get(&statement.sql))
                .collect()
        };
        let before = known(&self.cache);
        self.forget_all(batch);
        let mut steps: Vec<_> = batch
            .statements
            .iter()
            .map(|statement| self.step(&statement.sql, &statement.params, 0, false))
            .collect();
        if self.prepare_unknown(&mut steps).await?.is_some() {
            return Ok(false);
        }
        let after = known(&self.cache);
        let mut pairs = before.into_iter().zip(after);
        Ok(pairs.any(|pair| match pair {
            (Some(before), Some(after)) => before.parameters != after.parameters,
            _ => false,
        }))
    }

    /// Ends the transaction, if there is one.
    pub async fn rollback(&mut self) -> Result<(), Error> {
        let rollback = Statement::new("ROLLBACK", vec![]);
        let outcome = self
            .run_once(Batch::of(std::slice::from_ref(&rollback)), true)
            .await?;
        outcome.failure.map_or(Ok(()), |failure| Err(failure.error))
    }

    /// `named`: with prepared statements; otherwise each is parsed for this use only.
    async fn run_once(&mut self, batch: Batch<'_>, named: bool) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let commit = Self::commit_text();
        let mut steps = self.steps(&batch, &commit);
        if !named {
            steps.iter_mut().for_each(|step| step.plan = Plan::Inline);
        }
        while !steps.is_empty() && outcome.failure.is_none() {
            let length = match self.is_atomic(&batch) {
                true => steps.len(),
                false => segment_length(&steps),
            };
            let rest = steps.split_off(length);
            self.run_segment(steps, &batch, &mut outcome).await?;
            steps = rest;
            self.plan_again(&mut steps);
        }
        if let Some(failure) = outcome.failure.take() {
            outcome.failure = Some(failure.in_words_of(batch.statements));
        }
        Ok(outcome)
    }

    /// Forgets the prepared statements of a batch. The server may have lost all of them (`DEALLOCATE ALL`).
    fn forget_all(&mut self, batch: &Batch<'_>) {
        for statement in batch.statements {
            self.cache.remove(&statement.sql);
        }
        if let Some(begin) = batch.begin {
            self.cache.remove(begin);
        }
        self.cache.remove("COMMIT");
    }

    async fn run_segment(
        &mut self,
        mut steps: Vec<Step<'_>>,
        batch: &Batch<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        if let Some((at, failure)) = self.prepare_unknown(&mut steps).await? {
            outcome.failure = Some(rejected(&steps[at], failure));
            return Ok(());
        }
        let mismatch = self.write_steps(&mut steps);
        if mismatch.is_some() && self.is_atomic(batch) {
            // By themselves, the statements before the invalid one would be committed.
            outcome.failure = mismatch;
            return self.withdraw().await;
        }
        if !steps.is_empty() {
            let commits = |step: &Step<'_>| step.is_control && step.sql.as_ref() == "COMMIT";
            self.commit_sent
                .set(self.is_atomic(batch) || steps.iter().any(commits));
            self.push_sync();
            self.read_results(&steps, batch, outcome).await?;
        }
        outcome.failure = outcome.failure.take().or(mismatch);
        Ok(())
    }

    /// Reads the answers to steps that end with a `Sync`.
    pub(super) async fn read_results(
        &mut self,
        steps: &[Step<'_>],
        batch: &Batch<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let mut results = Results::new(steps.iter().map(Step::shape).collect());
        self.exchange(&mut results).await?;
        if results.failure.is_none() && results.done.len() != steps.len() {
            return Err(self.give_up("it did not answer every statement"));
        }
        self.settle(steps, batch, results, outcome);
        Ok(())
    }

    /// Removes the steps that are buffered and not sent.
    async fn withdraw(&mut self) -> Result<(), Error> {
        self.link.out.truncate(self.closes);
        self.drain().await
    }

    /// Whether the batch is an implicit transaction.
    fn is_atomic(&self, batch: &Batch<'_>) -> bool {
        batch.begin.is_none() && self.status() == TransactionStatus::Idle
    }

    fn settle(
        &self,
        steps: &[Step<'_>],
        batch: &Batch<'_>,
        results: Results,
        outcome: &mut Outcome,
    ) {
        let completed = results.done.len();
        for (step, done) in steps.iter().zip(results.done) {
            if !step.is_control {
                outcome.results.push(done.result);
            } else if done.rolled_back {
                outcome.failure = Some(undone(batch));
            }
        }
        if let Some(failure) = results.failure {
            outcome.failure = Some(match steps.get(completed) {
                Some(step) => rejected(step, failure),
                // All statements were executed, so the implicit commit failed.
                None => uncommitted(batch, failure),
            });
        }
    }
}

fn rejected(step: &Step<'_>, failure: ServerFailure) -> Failure {
    Failure {
        at: step.at,
        outdated: failure.outdated(step.is_cached),
        error: failure.into_error(step.sql),
    }
}

fn uncommitted(batch: &Batch<'_>, failure: ServerFailure) -> Failure {
    Failure {
        at: batch.statements.len(),
        outdated: None,
        error: match batch.statements {
            [only] => failure.into_error(&only.source),
            _ => failure.into_error("COMMIT"),
        },
    }
}

fn undone(batch: &Batch<'_>) -> Failure {
    Failure {
        at: batch.statements.len(),
        outdated: None,
        error: Error::Usage {
            message:
                "the transaction had failed before, so the server answered COMMIT with ROLLBACK"
                    .to_owned(),
        },
    }
}

/// One statement of a request, `BEGIN` and `COMMIT` included.
pub(super) struct Step<'a> {
    pub(super) sql: &'a Arc<str>,
    pub(super) params: &'a [Value],
    pub(super) plan: Plan,
    /// The statement was prepared for an earlier use.
    pub(super) is_cached: bool,
    /// Index in the batch, for failures.
    pub(super) at: usize,
    /// Whether to return a result; `BEGIN` and `COMMIT` have none.
    pub(super) is_control: bool,
}

#[derive(Clone)]
pub(super) enum Plan {
    /// `Bind`, `Execute`.
    Prepared(Rc<Prepared>),
    /// `Parse`, `Bind`, `Describe`, `Execute` without a name: all parameters and columns as text.
    Inline,
    /// It must be prepared first.
    Unknown,
}

impl Connection {
    pub(super) fn steps<'a>(&self, batch: &Batch<'a>, commit: &'a Arc<str>) -> Vec<Step<'a>> {
        let mut steps = Vec::with_capacity(batch.statements.len() + 2);
        if let Some(sql) = batch.begin {
            steps.push(self.step(sql, &[], 0, true));
        }
        for (at, statement) in batch.statements.iter().enumerate() {
            steps.push(self.step(&statement.sql, &statement.params, at, false));
        }
        if batch.end == End::Commit {
            steps.push(self.step(commit, &[], batch.statements.len(), true));
        }
        steps
    }

    pub(super) fn step<'a>(
        &self,
        sql: &'a Arc<str>,
        params: &'a [Value],
        at: usize,
        is_control: bool,
    ) -> Step<'a> {
        let plan = self.plan(sql, params, is_control);
        Step {
            sql,
            params,
            is_cached: matches!(plan, Plan::Prepared(_)),
            plan,
            at,
            is_control,
        }
    }

    fn plan(&self, sql: &str, params: &[Value], is_control: bool) -> Plan {
        if !self.cache.is_enabled() {
            return Plan::Inline;
        }
        match self.cache.get(sql) {
            Some(prepared) => Plan::Prepared(prepared),
            // Utility statements gain nothing from being prepared, and are seldom repeated.
            None if params.is_empty() && !is_control && !is_plain(sql) => Plan::Inline,
            None => Plan::Unknown,
        }
    }

    pub(super) fn plan_again(&self, steps: &mut [Step<'_>]) {
        for step in steps {
            if matches!(step.plan, Plan::Unknown) {
                step.plan = self.plan(step.sql, step.params, step.is_control);
            }
        }
    }

    /// Writes the steps. At one with invalid parameters, `steps` and the output end before it.
    pub(super) fn write_steps(&mut self, steps: &mut Vec<Step<'_>>) -> Option<Failure> {
        self.close_evicted();
        self.write_all(steps)
    }

    /// The same without a look at evicted statements.
    pub(super) fn write_all(&mut self, steps: &mut Vec<Step<'_>>) -> Option<Failure> {
        for index in 0..steps.len() {
            let start = self.link.out.len();
            if let Err(error) = write_step(&steps[index], 0, &mut self.link.out) {
                self.link.out.truncate(start);
                let step = &steps[index];
                let failure = Failure {
                    at: step.at,
                    error,
                    outdated: step.is_cached.then_some(Outdated::Parameter),
                };
                steps.truncate(index);
                return Some(failure);
            }
            self.session_state.add(steps[index].session_state());
        }
        None
    }
}

impl Step<'_> {
    pub(super) fn session_state(&self) -> SessionState {
        match &self.plan {
            Plan::Prepared(prepared) => prepared.session_state,
            Plan::Inline | Plan::Unknown => SessionState::of(self.sql),
        }
    }

    pub(super) fn shape(&self) -> RowShape {
        match &self.plan {
            Plan::Prepared(prepared) => prepared.shape.clone(),
            Plan::Inline | Plan::Unknown => RowShape::default(),
        }
    }
}

/// The number of steps that can be sent together: a new statement must not be parsed before one that might change its
/// meaning (DDL, `SET search_path`) or that a failure in parsing would undo (`SAVEPOINT`).
pub(super) fn segment_length(steps: &[Step<'_>]) -> usize {
    let is_unknown = |step: &Step<'_>| matches!(step.plan, Plan::Unknown) && !step.is_control;
    let Some(last_unknown) = steps.iter().rposition(is_unknown) else {
        return steps.len();
    };
    steps[..last_unknown]
        .iter()
        .position(|step| !step.is_control && !is_plain(step.sql))
        .map_or(steps.len(), |barrier| barrier + 1)
}

pub(super) fn write_step(step: &Step<'_>, limit: i32, out: &mut BytesMut) -> Result<(), Error> {
    match &step.plan {
        Plan::Prepared(prepared) => {
            bind_prepared(step, prepared, out)?;
            frontend::execute("", limit, out)
        }
        Plan::Inline | Plan::Unknown => {
            frontend::parse("", step.sql, [], out)
                .map_err(|error| unsendable(step.sql, &error.to_string()))?;
            bind_inline(step, out)?;
            frontend::describe(b'P', "", out).and_then(|()| frontend::execute("", limit, out))
        }
    }
    .map_err(|error| unsendable(step.sql, &error.to_string()))
}

fn bind_prepared(step: &Step<'_>, prepared: &Prepared, out: &mut BytesMut) -> Result<(), Error> {
    if step.params.len() != prepared.parameters.len() {
        return Err(Error::Parameter {
            statement: shorten(step.sql),
            message: format!(
                "the statement has {} parameters, but {} were given",
                prepared.parameters.len(),
                step.params.len()
            ),
        });
    }
    let values = encode_all(step, |at, value| {
        encode::encode(value, &prepared.parameters[at])
    })?;
    let formats = prepared
        .shape
        .decoders
        .iter()
        .map(|decoder| decoder.binary.into());
    bind(step.sql, &prepared.name, &values, formats, out)
}

fn bind_inline(step: &Step<'_>, out: &mut BytesMut) -> Result<(), Error> {
    let values = encode_all(step, |_, value| encode::encode_untyped(value))?;
    bind(step.sql, "", &values, [].into_iter(), out)
}

fn encode_all<'a>(
    step: &Step<'a>,
    encode: impl Fn(usize, &'a Value) -> Result<Encoded<'a>, TypeMismatch>,
) -> Result<Vec<Encoded<'a>>, Error> {
    let values = step.params.iter().enumerate();
    values
        .map(|(at, value)| {
            encode(at, value).map_err(|mismatch| Error::Parameter {
                statement: shorten(step.sql),
                message: format!("parameter {} {mismatch}", at + 1),
            })
        })
        .collect()
}

pub(super) fn bind(
    sql: &str,
    name: &str,
    values: &[Encoded<'_>],
    results: impl Iterator<Item = i16>,
    out: &mut BytesMut,
) -> Result<(), Error> {
    let formats = values.iter().map(Encoded::format);
    frontend::bind(
        "",
        name,
        formats,
        values,
        |value, out| Ok(value.write(out)),
        results,
        out,
    )
    .map_err(|error| match error {
        frontend::BindError::Conversion(error) => unsendable(sql, &error.to_string()),
        frontend::BindError::Serialization(error) => unsendable(sql, &error.to_string()),
    })
}

/// The error of a statement that the protocol cannot encode: a NUL byte in the text, more than 65,535 parameters.
pub(super) fn unsendable(sql: &str, reason: &str) -> Error {
    Error::Parameter {
        statement: shorten(sql),
        message: format!("the statement cannot be sent: {reason}"),
    }
}
