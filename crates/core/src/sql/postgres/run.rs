//! Sending batches and statements whose rows come in chunks.

use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::batch::{Batch, End, Failure, Outcome, is_plain};
use super::cache::Prepared;
use super::connection::{Connection, TransactionStatus};
use super::decode::RowShape;
use super::encode::{self, Encoded, Misfit};
use super::failure::{ServerFailure, shorten};
use super::replies::{Chunk, Description, Descriptions, Results};
use super::residue::Residue;
use super::types::{Oid, Type};
use crate::sql::{Error, ResultSet, Statement, Value};

/// One statement of a request, `BEGIN` and `COMMIT` included.
struct Step<'a> {
    sql: &'a Arc<str>,
    params: &'a [Value],
    plan: Plan,
    /// Index in the batch, for failures.
    at: usize,
    /// `BEGIN` and `COMMIT` have no result of their own.
    is_control: bool,
}

#[derive(Clone)]
enum Plan {
    /// `Bind`, `Execute`.
    Prepared(Rc<Prepared>),
    /// `Parse`, `Bind`, `Describe`, `Execute` without a name: all parameters and columns as text.
    Inline,
    /// Has to be prepared first.
    Unknown,
}

impl Connection {
    /// Sends a batch and reads its results.
    ///
    /// Statements this connection has not seen are prepared first, at the price of a round trip for all of them. After a
    /// failure the transaction's state is in [`status`](Self::status). Dropping the future leaves the connection in the
    /// middle of the answer; the pool cleans it.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`]; what the server has against a statement is in [`Outcome::failure`].
    pub async fn run(&mut self, batch: Batch<'_>) -> Result<Outcome, Error> {
        let fresh = self.status() == TransactionStatus::Idle;
        let mut outcome = self.run_once(batch).await?;
        if fresh && self.forget_stale(&batch, &outcome) {
            if self.status() != TransactionStatus::Idle {
                self.rollback().await?;
            }
            outcome = self.run_once(batch).await?;
        }
        self.cache.trim();
        Ok(outcome)
    }

    /// Ends the transaction, if there is one.
    pub async fn rollback(&mut self) -> Result<(), Error> {
        let rollback = Statement::new("ROLLBACK", vec![]);
        let outcome = self
            .run_once(Batch::of(std::slice::from_ref(&rollback)))
            .await?;
        outcome.failure.map_or(Ok(()), |failure| Err(failure.error))
    }

    async fn run_once(&mut self, batch: Batch<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let commit = Self::commit_text();
        let mut steps = self.steps(&batch, &commit);
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

    /// After a failure that a new plan may cure; the batch must have changed nothing.
    fn forget_stale(&mut self, batch: &Batch<'_>, outcome: &Outcome) -> bool {
        let stale = outcome.failure.as_ref().filter(|failure| failure.stale);
        match stale.and_then(|failure| batch.statements.get(failure.at)) {
            // The server may have forgotten all of them (`DEALLOCATE ALL`).
            Some(_) => {
                for statement in batch.statements {
                    self.cache.remove(&statement.sql);
                }
                if let Some(begin) = batch.begin {
                    self.cache.remove(begin);
                }
                self.cache.remove("COMMIT");
                true
            }
            None => false,
        }
    }

    fn steps<'a>(&self, batch: &Batch<'a>, commit: &'a Arc<str>) -> Vec<Step<'a>> {
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

    fn step<'a>(
        &self,
        sql: &'a Arc<str>,
        params: &'a [Value],
        at: usize,
        is_control: bool,
    ) -> Step<'a> {
        Step {
            sql,
            params,
            plan: self.plan(sql, params, is_control),
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
            // Utility statements gain nothing from being prepared, and their text seldom comes again.
            None if params.is_empty() && !is_control && !is_plain(sql) => Plan::Inline,
            None => Plan::Unknown,
        }
    }

    fn plan_again(&self, steps: &mut [Step<'_>]) {
        for step in steps {
            if matches!(step.plan, Plan::Unknown) {
                step.plan = self.plan(step.sql, step.params, step.is_control);
            }
        }
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
        let misfit = self.write_steps(&mut steps);
        if misfit.is_some() && self.is_atomic(batch) {
            // Alone, the statements before the misfit would be committed.
            outcome.failure = misfit;
            return self.withdraw().await;
        }
        if !steps.is_empty() {
            self.push_sync();
            let mut results = Results::new(steps.iter().map(Step::shape).collect());
            self.exchange(&mut results).await?;
            if results.failure.is_none() && results.done.len() != steps.len() {
                return Err(self.give_up("it did not answer every statement"));
            }
            self.settle(&steps, batch, results, outcome);
        }
        outcome.failure = outcome.failure.take().or(misfit);
        Ok(())
    }

    /// Takes back the steps written but not sent.
    async fn withdraw(&mut self) -> Result<(), Error> {
        self.out.truncate(self.closes);
        self.drain().await
    }

    /// The batch is an implicit transaction.
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
                // Everything was executed: the implicit commit itself failed.
                None => uncommitted(batch, failure),
            });
        }
    }

    /// Prepares what this connection has not seen, in one round trip. Returns the step that cannot be.
    async fn prepare_unknown(
        &mut self,
        steps: &mut [Step<'_>],
    ) -> Result<Option<(usize, ServerFailure)>, Error> {
        let mut unknown: Vec<&Arc<str>> = Vec::new();
        for step in steps
            .iter()
            .filter(|step| matches!(step.plan, Plan::Unknown))
        {
            if !unknown.contains(&step.sql) {
                unknown.push(step.sql);
            }
        }
        if unknown.is_empty() {
            return Ok(None);
        }
        let (prepared, failure) = self.prepare(&unknown).await?;
        let failed = failure.and_then(|failure| {
            let sql = unknown.get(prepared)?;
            let at = steps.iter().position(|step| step.sql == *sql)?;
            Some((at, failure))
        });
        if failed.is_none() {
            self.plan_again(steps);
        }
        Ok(failed)
    }

    /// Returns how many were prepared and what the server has against the next one.
    async fn prepare(
        &mut self,
        statements: &[&Arc<str>],
    ) -> Result<(usize, Option<ServerFailure>), Error> {
        self.close_evicted();
        let mut names = Vec::with_capacity(statements.len());
        for sql in statements {
            let name = self.cache.fresh_name();
            self.write(sql, |out| {
                frontend::parse(&name, sql, [], out)?;
                frontend::describe(b'S', &name, out)
            })?;
            names.push(name);
        }
        self.push_sync();
        let mut answer = Descriptions::default();
        self.exchange(&mut answer).await?;
        let count = answer.done.len();
        if answer.failure.is_none() && count != statements.len() {
            return Err(self.give_up("it did not describe every statement"));
        }
        self.learn_types(&answer.done).await?;
        for ((sql, name), description) in statements.iter().zip(names).zip(answer.done) {
            let prepared = self.describe(sql, name, description);
            self.cache.insert(Arc::clone(sql), prepared);
        }
        Ok((count, answer.failure))
    }

    fn describe(&self, sql: &str, name: String, description: Description) -> Prepared {
        let parameters = description.parameters.iter().map(|&oid| self.type_of(oid));
        let columns = description
            .columns
            .into_iter()
            .map(|(name, oid)| (name, self.type_of(oid)))
            .collect();
        Prepared::new(
            name,
            parameters.collect(),
            RowShape::new(columns, true),
            Residue::of(sql),
        )
    }

    /// Asks for the names of types that are not built in: enums, domains, extensions and their arrays.
    async fn learn_types(&mut self, descriptions: &[Description]) -> Result<(), Error> {
        let mut unknown: Vec<Oid> = descriptions
            .iter()
            .flat_map(|d| {
                d.parameters
                    .iter()
                    .chain(d.columns.iter().map(|(_, oid)| oid))
            })
            .copied()
            .filter(|oid| !encode::is_known(*oid) && !self.types.borrow().contains_key(oid))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() || self.status() == TransactionStatus::Failed {
            return Ok(());
        }
        let list = unknown.iter().map(|&oid| Value::Int(oid.into())).collect();
        let lookup = Statement::new(
            "SELECT oid, typname, CASE WHEN typcategory = 'A' THEN typelem ELSE 0::oid END \
             FROM pg_catalog.pg_type WHERE oid = ANY ($1::oid[])",
            vec![Value::List(list)],
        );
        let answer = self.run_inline(&lookup).await?;
        let mut types = self.types.borrow_mut();
        for row in answer.rows {
            if let [Value::Int(oid), Value::Text(name), Value::Int(element)] = row.as_slice() {
                let (oid, element) = (*oid as Oid, *element as Oid);
                let kind = match element {
                    0 => Type::scalar(oid, name),
                    _ => Type::array(oid, name.clone(), element),
                };
                types.insert(oid, kind);
            }
        }
        Ok(())
    }

    async fn run_inline(&mut self, statement: &Statement) -> Result<ResultSet, Error> {
        let mut steps = vec![Step {
            sql: &statement.sql,
            params: &statement.params,
            plan: Plan::Inline,
            at: 0,
            is_control: false,
        }];
        if let Some(misfit) = self.write_steps(&mut steps) {
            return Err(misfit.error);
        }
        self.push_sync();
        let mut results = Results::new(vec![RowShape::default()]);
        self.exchange(&mut results).await?;
        if let Some(failure) = results.failure {
            return Err(failure.into_error(&statement.sql));
        }
        let first = results.done.pop();
        Ok(first.map(|done| done.result).unwrap_or_default())
    }

    /// Writes the steps; at one whose parameters do not fit, `steps` and the output end before it.
    fn write_steps(&mut self, steps: &mut Vec<Step<'_>>) -> Option<Failure> {
        self.close_evicted();
        for index in 0..steps.len() {
            let start = self.out.len();
            if let Err(error) = write_step(&steps[index], 0, &mut self.out) {
                self.out.truncate(start);
                let at = steps[index].at;
                steps.truncate(index);
                return Some(Failure {
                    at,
                    error,
                    stale: false,
                });
            }
            self.residue.add(steps[index].residue());
        }
        None
    }

    fn close_evicted(&mut self) {
        for name in self.cache.take_evicted() {
            // Our own names are short and have no NUL byte.
            let _ = frontend::close(b'S', &name, &mut self.out);
        }
        self.closes = self.out.len();
    }

    fn write(
        &mut self,
        sql: &str,
        message: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let start = self.out.len();
        message(&mut self.out).map_err(|error| {
            self.out.truncate(start);
            unsendable(sql, &error.to_string())
        })
    }

    /// Starts a statement whose rows come in chunks and reads the first.
    pub(super) async fn open_portal(
        &mut self,
        statement: &Statement,
        size: u32,
    ) -> Result<Chunk, Error> {
        let mut steps = vec![self.step(&statement.sql, &statement.params, 0, false)];
        if let Some((_, failure)) = self.prepare_unknown(&mut steps).await? {
            return Err(failure.into_error(&statement.sql));
        }
        self.close_evicted();
        let start = self.out.len();
        for step in &steps {
            if let Err(error) = write_step(step, row_limit(size), &mut self.out) {
                self.out.truncate(start);
                return Err(error);
            }
            self.residue.add(step.residue());
        }
        let shape = steps.first().map(Step::shape).unwrap_or_default();
        self.cache.trim();
        self.read_chunk(Chunk::new(shape, size as usize)).await
    }

    /// The statement is prepared again at its next use.
    pub(super) fn forget(&mut self, sql: &str) {
        self.cache.remove(sql);
    }

    /// The next rows of the portal opened last.
    pub(super) async fn next_chunk(&mut self, shape: RowShape, size: u32) -> Result<Chunk, Error> {
        self.write("", |out| frontend::execute("", row_limit(size), out))?;
        self.read_chunk(Chunk::new(shape, size as usize)).await
    }

    async fn read_chunk(&mut self, mut chunk: Chunk) -> Result<Chunk, Error> {
        self.push_flush();
        self.exchange(&mut chunk).await?;
        Ok(chunk)
    }
}

impl<'a> Batch<'a> {
    /// Statements without anything around them.
    pub fn of(statements: &'a [Statement]) -> Self {
        Self {
            begin: None,
            statements,
            end: End::Open,
        }
    }
}

impl Step<'_> {
    fn residue(&self) -> Residue {
        match &self.plan {
            Plan::Prepared(prepared) => prepared.residue,
            Plan::Inline | Plan::Unknown => Residue::of(self.sql),
        }
    }

    fn shape(&self) -> RowShape {
        match &self.plan {
            Plan::Prepared(prepared) => prepared.shape.clone(),
            Plan::Inline | Plan::Unknown => RowShape::default(),
        }
    }
}

/// How many steps can go together: a statement not prepared yet must not be parsed before one that might change what it
/// means (DDL, `SET search_path`) or that a failure in parsing would undo (`SAVEPOINT`).
fn segment_length(steps: &[Step<'_>]) -> usize {
    let is_unknown = |step: &Step<'_>| matches!(step.plan, Plan::Unknown) && !step.is_control;
    let Some(last_unknown) = steps.iter().rposition(is_unknown) else {
        return steps.len();
    };
    steps[..last_unknown]
        .iter()
        .position(|step| !step.is_control && !is_plain(step.sql))
        .map_or(steps.len(), |barrier| barrier + 1)
}

fn write_step(step: &Step<'_>, limit: i32, out: &mut BytesMut) -> Result<(), Error> {
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
                "the statement takes {} parameters, {} given",
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
    encode: impl Fn(usize, &'a Value) -> Result<Encoded<'a>, Misfit>,
) -> Result<Vec<Encoded<'a>>, Error> {
    let values = step.params.iter().enumerate();
    values
        .map(|(at, value)| {
            encode(at, value).map_err(|misfit| Error::Parameter {
                statement: shorten(step.sql),
                message: format!("parameter {} {misfit}", at + 1),
            })
        })
        .collect()
}

fn bind(
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

/// The protocol itself cannot carry it: a NUL byte in the text, more than 65,535 parameters.
fn unsendable(sql: &str, reason: &str) -> Error {
    Error::Parameter {
        statement: shorten(sql),
        message: format!("the statement cannot be sent: {reason}"),
    }
}

fn rejected(step: &Step<'_>, failure: ServerFailure) -> Failure {
    Failure {
        at: step.at,
        stale: failure.is_stale_statement(),
        error: failure.into_error(step.sql),
    }
}

fn uncommitted(batch: &Batch<'_>, failure: ServerFailure) -> Failure {
    Failure {
        at: batch.statements.len(),
        stale: false,
        error: match batch.statements {
            [only] => failure.into_error(&only.source),
            _ => failure.into_error("COMMIT"),
        },
    }
}

fn undone(batch: &Batch<'_>) -> Failure {
    Failure {
        at: batch.statements.len(),
        stale: false,
        error: Error::Usage {
            message: "the transaction had failed before: COMMIT was answered by ROLLBACK"
                .to_owned(),
        },
    }
}

fn row_limit(size: u32) -> i32 {
    i32::try_from(size.max(1)).unwrap_or(i32::MAX)
}
