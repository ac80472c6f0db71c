//! The threads that read, each statement on a fresh snapshot, while the writer writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::connection::{self, Control};
use super::hub::Hub;
use super::jobs::{Job, Read, Unit, Work};
use super::mailbox::Answer;
use super::prepared::Prepared;
use super::verb::Verb;
use super::writer::STATEMENTS;
use crate::sql::cache::Cache;
use crate::sql::{Error, ResultSet};

/// Serves until the database is closed. After a panic, which costs one read its answer, with a new connection.
pub(super) fn run(hub: &Arc<Hub>, control: &Arc<Control>) {
    while catch_unwind(AssertUnwindSafe(|| serve(hub, control))).is_err() {
        control.finished();
    }
}

fn serve(hub: &Hub, control: &Arc<Control>) {
    let connection = match connection::open_reader(&hub.config, control) {
        Ok(connection) => connection,
        Err(error) => return refuse_all(hub, &error),
    };
    let mut statements = Cache::<Prepared<'_>>::new(STATEMENTS);
    while let Some(read) = hub.next_read() {
        let sql = &read.statement.sql;
        let prepared = statements.find_or_insert(sql, || {
            Ok::<_, Error>((
                Arc::clone(sql),
                Prepared::new(&connection, sql, Verb::of(sql))?,
            ))
        });
        match prepared {
            Ok(prepared) if !prepared.is_readonly() => pass_on(hub, read),
            Ok(prepared) => {
                control.started(read.reply.id);
                let result = prepared.run(&read.statement.params);
                let result = result.map_err(|error| error.in_words_of(&read.statement));
                control.finished();
                answer(read, result);
            }
            Err(error) => {
                let error = error.in_words_of(&read.statement);
                answer(read, Err(error));
            }
        }
    }
}

fn answer(read: Read, result: Result<ResultSet, Error>) {
    read.reply.answer(Answer::Rows(result));
}

/// It looked like a read (`WITH … INSERT`), but SQLite knows better.
fn pass_on(hub: &Hub, read: Read) {
    hub.push(Job::Unit(Unit::new(Work::One(read.statement), read.reply)));
}

fn refuse_all(hub: &Hub, error: &Error) {
    while let Some(read) = hub.next_read() {
        read.reply.fail(error.clone());
    }
}
