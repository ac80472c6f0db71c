//! The statements of a request and how each is written.

use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::batch::{Batch, End, Failure, is_plain};
use super::cache::Prepared;
use super::connection::Connection;
use super::decode::RowShape;
use super::encode::{self, Encoded, Misfit};
use super::failure::shorten;
use super::residue::Residue;
use crate::sql::{Error, Value};

/// One statement of a request, `BEGIN` and `COMMIT` included.
pub(super) struct Step<'a> {
    pub(super) sql: &'a Arc<str>,
    pub(super) params: &'a [Value],
    pub(super) plan: Plan,
    /// Index in the batch, for failures.
    pub(super) at: usize,
    /// `BEGIN` and `COMMIT` have no result of their own.
    pub(super) is_control: bool,
}

#[derive(Clone)]
pub(super) enum Plan {
    /// `Bind`, `Execute`.
    Prepared(Rc<Prepared>),
    /// `Parse`, `Bind`, `Describe`, `Execute` without a name: all parameters and columns as text.
    Inline,
    /// Has to be prepared first.
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

    pub(super) fn plan_again(&self, steps: &mut [Step<'_>]) {
        for step in steps {
            if matches!(step.plan, Plan::Unknown) {
                step.plan = self.plan(step.sql, step.params, step.is_control);
            }
        }
    }

    /// Writes the steps; at one whose parameters do not fit, `steps` and the output end before it.
    pub(super) fn write_steps(&mut self, steps: &mut Vec<Step<'_>>) -> Option<Failure> {
        self.close_evicted();
        for index in 0..steps.len() {
            let start = self.link.out.len();
            if let Err(error) = write_step(&steps[index], 0, &mut self.link.out) {
                self.link.out.truncate(start);
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
}

impl Step<'_> {
    pub(super) fn residue(&self) -> Residue {
        match &self.plan {
            Plan::Prepared(prepared) => prepared.residue,
            Plan::Inline | Plan::Unknown => Residue::of(self.sql),
        }
    }

    pub(super) fn shape(&self) -> RowShape {
        match &self.plan {
            Plan::Prepared(prepared) => prepared.shape.clone(),
            Plan::Inline | Plan::Unknown => RowShape::default(),
        }
    }
}

/// How many steps can go together: a statement not prepared yet must not be parsed before one that might change what it
/// means (DDL, `SET search_path`) or that a failure in parsing would undo (`SAVEPOINT`).
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

/// The protocol itself cannot carry it: a NUL byte in the text, more than 65,535 parameters.
pub(super) fn unsendable(sql: &str, reason: &str) -> Error {
    Error::Parameter {
        statement: shorten(sql),
        message: format!("the statement cannot be sent: {reason}"),
    }
}
