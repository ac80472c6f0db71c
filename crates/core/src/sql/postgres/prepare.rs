//! Prepares statements and looks up their types.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::cache::Prepared;
use super::connection::{Connection, TransactionStatus};
use super::decode::RowShape;
use super::encode;
use super::extended_query::{Plan, Step, unsendable};
use super::failure::ServerFailure;
use super::replies::{Description, Descriptions, Results};
use super::session_state::SessionState;
use super::types::{Oid, Type};
use crate::sql::{Error, ResultSet, Statement, Value};

/// The types, and those that they are made of. Arrays of boxes, which have another delimiter, stay text.
const TYPES: &str = "WITH RECURSIVE made_of AS (\
     SELECT oid, typname, typbasetype, CASE WHEN typtype <> 'd' AND typcategory = 'A' AND typdelim = ',' THEN typelem ELSE 0::oid END AS element \
     FROM pg_catalog.pg_type WHERE oid = ANY ($1::oid[]) \
     UNION \
     SELECT t.oid, t.typname, t.typbasetype, CASE WHEN t.typtype <> 'd' AND t.typcategory = 'A' AND t.typdelim = ',' THEN t.typelem ELSE 0::oid END \
     FROM made_of JOIN pg_catalog.pg_type t ON t.oid IN (made_of.typbasetype, made_of.element)\
     ) SELECT oid, typname, typbasetype, element FROM made_of";

/// A row of `pg_type`.
struct Found {
    name: String,
    /// The type under a domain; 0 for other types.
    base: Oid,
    /// The type of an array's elements; 0 for other types.
    element: Oid,
}

impl Found {
    fn read(row: Vec<Value>) -> Option<(Oid, Self)> {
        let [
            Value::Int(oid),
            Value::Text(name),
            Value::Int(base),
            Value::Int(element),
        ] = <[Value; 4]>::try_from(row).ok()?
        else {
            return None;
        };
        let (base, element) = (base as Oid, element as Oid);
        Some((
            oid as Oid,
            Self {
                name,
                base,
                element,
            },
        ))
    }

    /// A type by its own name, with the representation of the type under it.
    fn resolve(found: &HashMap<Oid, Self>, oid: Oid) -> Option<Type> {
        let name = found.get(&oid)?.name.clone();
        let base = Self::under(found, oid);
        Some(match found.get(&base)?.element {
            0 => Type::scalar(base, &name),
            element => Type::array(base, name, Self::under(found, element)),
        })
    }

    /// The type under a domain, which may be of another domain.
    fn under(found: &HashMap<Oid, Self>, mut oid: Oid) -> Oid {
        while let Some(Self {
            base: base @ 1.., ..
        }) = found.get(&oid)
        {
            oid = *base;
        }
        oid
    }
}

impl Connection {
    /// Prepares all statements that are new to this connection in one round trip. Returns the first step that failed.
    pub(super) async fn prepare_unknown(
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
        let (prepared, failure) = self.prepare(&mut unknown).await?;
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

    /// Writes the requests that prepare statements and returns their names. Removes a statement that the protocol cannot encode:
    /// it stays unknown and fails by itself when it is to be executed.
    fn push_prepare(&mut self, statements: &mut Vec<&Arc<str>>) -> Vec<String> {
        let mut names = Vec::with_capacity(statements.len());
        statements.retain(|sql| {
            let name = self.cache.fresh_name();
            let written = self.write(sql, |out| {
                frontend::parse(&name, sql, [], out)?;
                frontend::describe(b'S', &name, out)
            });
            names.extend(written.is_ok().then_some(name));
            written.is_ok()
        });
        names
    }

    /// Prepares the statements that can be sent. Returns their number up to the first that failed, and its failure.
    async fn prepare(
        &mut self,
        statements: &mut Vec<&Arc<str>>,
    ) -> Result<(usize, Option<ServerFailure>), Error> {
        self.close_evicted();
        let names = self.push_prepare(statements);
        if statements.is_empty() {
            return Ok((0, None));
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
            if !self.knows_types_of(&description) {
                self.cache.discard(name);
                continue;
            }
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
            SessionState::of(sql),
        )
    }

    /// Whether all types are resolved. After a failed statement of the same transaction they cannot be looked up; a statement
    /// that was cached without them would return arrays of user-defined types as text for ever.
    fn knows_types_of(&self, description: &Description) -> bool {
        description.oids().all(|oid| self.knows_type(oid))
    }

    fn knows_type(&self, oid: Oid) -> bool {
        encode::is_known(oid) || self.types.borrow().contains_key(&oid)
    }

    /// Looks up user-defined types: enums, domains, types of extensions, and arrays of them. A domain stands for its base type.
    async fn learn_types(&mut self, descriptions: &[Description]) -> Result<(), Error> {
        let mut unknown: Vec<Oid> = descriptions
            .iter()
            .flat_map(Description::oids)
            .filter(|oid| !self.knows_type(*oid))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() || self.status() == TransactionStatus::Failed {
            return Ok(());
        }
        let list = unknown.iter().map(|&oid| Value::Int(oid.into())).collect();
        let lookup = Statement::new(TYPES, vec![Value::List(list)]);
        let answer = self.run_inline(&lookup).await?;
        let found: HashMap<Oid, Found> = answer.rows.into_iter().filter_map(Found::read).collect();
        let mut types = self.types.borrow_mut();
        for oid in unknown {
            if let Some(kind) = Found::resolve(&found, oid) {
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
            is_cached: false,
            at: 0,
            is_control: false,
        }];
        if let Some(mismatch) = self.write_steps(&mut steps) {
            return Err(mismatch.error);
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

    /// Removes a statement from the cache, so that its next use prepares it again.
    pub(super) fn forget(&mut self, sql: &str) {
        self.cache.remove(sql);
    }

    pub(super) fn close_evicted(&mut self) {
        for name in self.cache.take_evicted() {
            // These names are short and have no NUL byte.
            let _ = frontend::close(b'S', &name, &mut self.link.out);
        }
        self.closes = self.link.out.len();
    }

    pub(super) fn write(
        &mut self,
        sql: &str,
        message: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let start = self.link.out.len();
        message(&mut self.link.out).map_err(|error| {
            self.link.out.truncate(start);
            unsendable(sql, &error.to_string())
        })
    }
}
