use std::sync::Arc;

use super::dialect::Dialect;
use super::placeholders::{Placeholders, list};
use super::rewriter::Rewriter;
use crate::sql::{Error, Value};

/// Parameters as passed by the user.
#[derive(Debug, Clone, PartialEq)]
pub enum Params {
    Positional(Vec<Value>),
    /// A name may be written with or without its colon.
    Named(Vec<(String, Value)>),
}

/// SQL text with its placeholders located and rewritten. Parse once, bind often.
///
/// A `?` or `:name` inside a string, a quoted identifier or a comment is not a placeholder. `??` is one literal `?`
/// (PostgreSQL's `?`, `?|` and `?&` operators), as in PDO. A name used twice is one parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedSql {
    /// The rewritten text.
    pub sql: Arc<str>,
    /// The original text.
    pub source: Arc<str>,
    pub(super) placeholders: Placeholders,
    /// For dialects without numbered parameters: the index of the name at each place.
    places: Vec<usize>,
    /// Indexes of the parameters that are the only value of an `IN (…)` and must not be lists there.
    alone_in: Vec<usize>,
    dialect: Dialect,
}

impl ParsedSql {
    /// Locates the placeholders.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the text mixes `?` with `:name`, numbers its placeholders itself (`?1`, or `$1` next
    /// to `?`), or has more of them than the database accepts (65,535 for PostgreSQL and MySQL, 32,766 for SQLite).
    pub fn parse(dialect: Dialect, sql: &str) -> Result<Self, Error> {
        let mut rewriter = Rewriter::new(dialect, sql);
        rewriter
            .run()
            .map_err(|message| Error::parameter(sql, message))?;
        let source: Arc<str> = sql.into();
        let rewritten = match rewriter.output {
            output if rewriter.copied == 0 && output.is_empty() => Arc::clone(&source),
            output => output.into(),
        };
        Ok(Self {
            sql: rewritten,
            source,
            placeholders: rewriter.placeholders,
            places: rewriter.places,
            alone_in: rewriter.alone_in,
            dialect,
        })
    }

    /// The number of parameters of the rewritten text.
    pub fn parameter_count(&self) -> usize {
        self.placeholders.count()
    }

    /// Orders the parameters as in the rewritten text. A list remains one parameter.
    ///
    /// # Errors
    /// [`Error::Parameter`] that names missing, unknown, repeated or surplus parameters, and a list for `IN (?)` where the database has no arrays.
    pub fn bind(&self, params: Params) -> Result<Vec<Value>, Error> {
        match (&self.placeholders, params) {
            (Placeholders::Named(names), Params::Named(values)) => bind_named(names, values)
                .and_then(|values| self.without_lists_in(values))
                .map(|values| self.place(values)),
            (Placeholders::Named(names), Params::Positional(values)) => Err(format!(
                "the statement has named placeholders ({}), but {} positional {} given",
                list(names),
                values.len(),
                parameters_were(values.len())
            )),
            (_, Params::Positional(values)) => self
                .bind_positional(values)
                .and_then(|values| self.without_lists_in(values)),
            (_, Params::Named(values)) if values.is_empty() => self.bind_positional(Vec::new()),
            (_, Params::Named(values)) => Err(self.unexpected_names(&values)),
        }
        .map_err(|message| Error::parameter(&self.source, message))
    }

    /// A list is one value, JSON text, which nothing equals: `NOT IN (?)` would be true of every row.
    fn without_lists_in(&self, values: Vec<Value>) -> Result<Vec<Value>, String> {
        let is_list = |at: &&usize| matches!(values.get(**at), Some(Value::List(_)));
        let Some(at) = self.alone_in.iter().find(is_list) else {
            return Ok(values);
        };
        let name = match &self.placeholders {
            Placeholders::Named(names) => format!(":{}", names[*at]),
            _ => (at + 1).to_string(),
        };
        Err(format!(
            "parameter {name} is a list, which IN would compare as one value; write a placeholder for each value, as in IN (?, ?, ?)"
        ))
    }

    /// Repeats the value of a name that is used several times.
    fn place(&self, values: Vec<Value>) -> Vec<Value> {
        match self.places.iter().copied().eq(0..self.places.len()) {
            true => values,
            false => self.places.iter().map(|at| values[*at].clone()).collect(),
        }
    }

    fn bind_positional(&self, values: Vec<Value>) -> Result<Vec<Value>, String> {
        match (self.parameter_count(), values.len()) {
            (expected, given) if expected == given => Ok(values),
            (0, given) => Err(format!(
                "the statement has no placeholder (? or :name), but {given} {} given",
                parameters_were(given)
            )),
            (expected, given) => Err(format!(
                "the statement has {expected} ? {}, but {given} {} given{}",
                if expected == 1 {
                    "placeholder"
                } else {
                    "placeholders"
                },
                parameters_were(given),
                match self.dialect {
                    Dialect::Postgres if given == 0 => "; write ?? for the operator ?",
                    _ => "",
                }
            )),
        }
    }

    fn unexpected_names(&self, values: &[(String, Value)]) -> String {
        let names: Vec<&str> = values.iter().map(|(name, _)| bare(name)).collect();
        match self.placeholders {
            Placeholders::None => format!(
                "the statement has no placeholder, but parameters were given for {}",
                list(&names)
            ),
            _ => format!(
                "the statement has ? placeholders, but named parameters were given ({})",
                list(&names)
            ),
        }
    }
}

fn bind_named(names: &[String], values: Vec<(String, Value)>) -> Result<Vec<Value>, String> {
    let mut bound: Vec<Option<Value>> = vec![None; names.len()];
    for (name, value) in values {
        let name = bare(&name);
        let position = names
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| {
                format!(
                    "parameter :{name} is not in the statement, which has {}",
                    list(names)
                )
            })?;
        if bound[position].replace(value).is_some() {
            return Err(format!("parameter :{name} was given twice"));
        }
    }
    let missing: Vec<&String> = names
        .iter()
        .zip(&bound)
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name)
        .collect();
    if !missing.is_empty() {
        return Err(format!("no value was given for {}", list(&missing)));
    }
    Ok(bound.into_iter().flatten().collect())
}

fn bare(name: &str) -> &str {
    name.strip_prefix(':').unwrap_or(name)
}

fn parameters_were(count: usize) -> &'static str {
    if count == 1 {
        "parameter was"
    } else {
        "parameters were"
    }
}
