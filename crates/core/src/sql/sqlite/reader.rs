//! The reader threads, which run each statement on a new snapshot concurrently with the writer.

use std::sync::Arc;

use super::connection::{self, Control};
use super::engine::Engine;
use super::jobs::{Job, Read, Unit, Work};
use super::prepared::{Prepared, STATEMENT_CACHE_SIZE};
use super::reply_queue::Answer;
use super::statement_kind::StatementKind;
use crate::panics;
use crate::sql::cache::Cache;
use crate::sql::{Error, ResultSet};

/// Serves until the database is closed. A panic fails one read; later reads use a new connection.
pub(super) fn run(engine: &Arc<Engine>, control: &Arc<Control>) {
    while panics::caught_call(|| serve(engine, control)).is_err() {
        control.finished();
    }
}

fn serve(engine: &Engine, control: &Arc<Control>) {
    let connection = match connection::open_reader(&engine.config, control) {
        Ok(connection) => connection,
        Err(error) => return refuse_all(engine, &error),
    };
    let mut statements = Cache::<Prepared<'_>>::new(STATEMENT_CACHE_SIZE);
    while let Some(read) = engine.next_read() {
        let sql = &read.statement.sql;
        let prepared = statements.find_or_insert(sql, || {
            Ok::<_, Error>((
                Arc::clone(sql),
                Prepared::new(&connection, sql, StatementKind::of(sql))?,
            ))
        });
        match prepared {
            Ok(prepared) if !prepared.is_readonly() => pass_on(engine, read),
            Ok(prepared) => {
                control.started(read.reply.id);
                let result = prepared.run(&read.statement.params);
                let result =
                    result.map_err(|error| engine.with_hint(error).in_words_of(&read.statement));
                control.finished();
                answer(read, result);
            }
            Err(error) => {
                let error = engine.with_hint(error).in_words_of(&read.statement);
                answer(read, Err(error));
            }
        }
    }
}

fn answer(read: Read, result: Result<ResultSet, Error>) {
    read.reply.answer(Answer::Rows(result));
}

/// The error of a statement that looked like a read and is none (`WITH … INSERT`).
fn pass_on(engine: &Engine, read: Read) {
    engine.push(Job::Unit(Unit::new(Work::One(read.statement), read.reply)));
}

fn refuse_all(engine: &Engine, error: &Error) {
    while let Some(read) = engine.next_read() {
        read.reply.fail(error.clone());
    }
}
