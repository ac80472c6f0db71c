//! `Weft\Native\SqlDatabase`, `SqlTransaction`, `SqlCursor`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ext_php_rs::convert::{FromZval, IntoZval};
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, ZendObject, Zval};

use weft_core::sql::{
    Database, Error, HookPoint, Hooks, Params, ParseCache, Pending, PoolChange, PoolEvent,
    PoolEvents, RowStream, Session, Statement, Transaction, Value,
};

use crate::array::values;
use crate::caller::{Place, borrower};
use crate::convert;
use crate::failure::Failure;
use crate::outcome::Payload;
use crate::pool;
use crate::process::Process;
use crate::runtime::{seconds, start, start_begun};
use crate::sql_copy::{SqlCopyIn, SqlCopyOut};
use crate::sql_failure::{failure, item_failure};
use crate::sql_listener::SqlListener;
use crate::sql_places::StatementPlaces;
use crate::sql_plain;
use crate::sql_values;
use crate::text::{NotUtf8, Text};

/// Parsed statements remembered per database.
const PARSED_STATEMENTS: usize = 512;
/// Deferred statements are sent when as many wait, so that a transaction of any length needs little memory.
const MOST_STATEMENTS: usize = 1_000;
/// And when their parameters are as large.
const MOST_BYTES: usize = 8 << 20;

#[php_class]
#[php(name = "Weft\\Native\\SqlDatabase")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct SqlDatabase {
    database: Database,
    /// `None` for SQLite, which has no pool.
    events: Option<Rc<PoolEvents>>,
    /// Leaks are looked for: borrowers leave their stack.
    traces: bool,
    parsed: Rc<RefCell<ParseCache>>,
}

#[php_impl]
impl SqlDatabase {
    pub fn open(
        dsn: &mut ZendObject,
        pool: &ZendHashTable,
        name: Text<'_>,
        hooks: &ZendHashTable,
    ) -> PhpResult<i64> {
        let dsn = dsn.try_call_method("getValue", Vec::new())?;
        let dsn = Text::from_zval(&dsn).ok_or("the DSN must be a string")?;
        let dsn = dsn.utf8().map_err(unreadable_dsn)?;
        let name = name
            .utf8()
            .map_err(|wrong| Failure::new("usage", format!("the name of the pool is {wrong}")))?;
        let pool = pool::options(pool, name.to_owned());
        let traces = !pool.leak_threshold.is_zero();
        let opening = Database::open(dsn, pool, self::hooks(hooks)).map_err(failure)?;
        start(async move {
            let database = opening.await.map_err(failure)?;
            Ok(Payload::build(move || {
                Ok(Self::new(database, traces).into_zval(false)?)
            }))
        })
    }

    pub fn driver(&self) -> &'static str {
        self.database.driver()
    }

    pub fn execute(&self, sql: Text<'_>, params: &ZendHashTable, task: i64) -> PhpResult<i64> {
        let running = self
            .lender(task)
            .execute(statement(&self.parsed, sql, params)?);
        start_begun(running, |result| {
            let result = result.map_err(failure)?;
            Ok(Payload::build(move || sql_values::result_set(result)))
        })
    }

    pub fn stream(
        &self,
        sql: Text<'_>,
        params: &ZendHashTable,
        chunk: i64,
        task: i64,
    ) -> PhpResult<SqlCursor> {
        let chunk = usize::try_from(chunk).unwrap_or(0).max(1);
        let statement = statement(&self.parsed, sql, params)?;
        Ok(SqlCursor {
            rows: RefCell::new(Some(self.lender(task).stream(statement, chunk))),
        })
    }

    pub fn transaction(&self, task: i64) -> SqlTransaction {
        SqlTransaction {
            transaction: self.lender(task).transaction(),
            parsed: Rc::clone(&self.parsed),
            waiting: Cell::default(),
            places: Rc::default(),
        }
    }

    pub fn session(&self) -> SqlSession {
        SqlSession {
            session: Session::new(&self.database),
            database: self.database.clone(),
            traces: self.traces,
            parsed: Rc::clone(&self.parsed),
        }
    }

    pub fn copy_in(&self, sql: Text<'_>, task: i64) -> PhpResult<SqlCopyIn> {
        let statement = literal(sql)?;
        let text = statement.source.to_string();
        Ok(SqlCopyIn::new(self.lender(task).copy_in(statement), text))
    }

    pub fn copy_out(&self, sql: Text<'_>, task: i64) -> PhpResult<SqlCopyOut> {
        Ok(SqlCopyOut::new(self.lender(task).copy_out(literal(sql)?)))
    }

    pub fn listen(&self, channels: &ZendHashTable, check: f64) -> PhpResult<i64> {
        let mut names = Vec::with_capacity(channels.len());
        for channel in values(channels) {
            let name = channel
                .zend_str()
                .and_then(|name| std::str::from_utf8(name.as_bytes()).ok());
            let name = name
                .ok_or_else(|| Failure::new("usage", "the name of a channel is not UTF-8 text"))?;
            names.push(name.to_owned());
        }
        let listening = self
            .database
            .listen(names, seconds(check))
            .map_err(failure)?;
        start(async move {
            let listener = listening.await.map_err(failure)?;
            Ok(Payload::build(move || {
                Ok(SqlListener::new(listener).into_zval(false)?)
            }))
        })
    }

    pub fn wait_for_change(&self) -> PhpResult<i64> {
        let changed = self.database.wait_for_change().map_err(failure)?;
        start(async move { changed.await.map(|()| Payload::Null).map_err(failure) })
    }

    pub fn stats(&self) -> PhpResult<Zval> {
        match self.database.stats() {
            Some(stats) => pool::stats(&stats),
            None => Ok(convert::array_zval(ZendHashTable::new())),
        }
    }

    pub fn holders(&self) -> PhpResult<Zval> {
        pool::holders(&self.database.holders())
    }

    pub fn work_arrived(&self) -> PhpResult<i64> {
        let events = self.events.clone();
        start(async move {
            match events {
                Some(events) => events.wait().await,
                None => std::future::pending().await,
            }
            Ok(Payload::Null)
        })
    }

    pub fn work(&self) -> PhpResult<Zval> {
        let mut list = ZendHashTable::new();
        for event in self.events.iter().flat_map(|events| events.take()) {
            list.push(event_row(&event)?)?;
        }
        Ok(convert::array_zval(list))
    }

    pub fn execute_in_hook(
        &self,
        call: i64,
        sql: Text<'_>,
        params: &ZendHashTable,
    ) -> PhpResult<i64> {
        let statement = statement(&self.parsed, sql, params)?;
        let running = self.database.execute_in_hook(call as u64, statement);
        start(async move {
            let result = running.await.map_err(failure)?;
            Ok(Payload::build(move || sql_values::result_set(result)))
        })
    }

    pub fn hook_returned(&self, call: i64) {
        self.database.end_hook(call as u64, Ok(()));
    }

    pub fn hook_threw(&self, call: i64, thrown: i64, message: Text<'_>) {
        let message = message.lossy();
        let error = Error::Hook { message, thrown };
        self.database.end_hook(call as u64, Err(error));
    }

    pub fn resize(&self, size: i64, minimum_idle: i64) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        self.database.change_pool(PoolChange::Resize {
            size: usize::try_from(size).unwrap_or(0),
            minimum_idle: usize::try_from(minimum_idle).unwrap_or(0),
        });
        Ok(())
    }

    pub fn pause(&self) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        self.database.change_pool(PoolChange::Pause);
        Ok(())
    }

    pub fn resume(&self) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        self.database.change_pool(PoolChange::Resume);
        Ok(())
    }

    pub fn reset(&self) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        self.database.change_pool(PoolChange::Reset);
        Ok(())
    }

    pub fn close(&self) -> PhpResult<i64> {
        let closing = self.database.close();
        start(async move { closing.await.map(|()| Payload::Null).map_err(failure) })
    }
}

impl SqlDatabase {
    /// The database for the task that calls.
    fn lender(&self, task: i64) -> Database {
        self.database.on_behalf_of(borrower(task, self.traces))
    }

    fn new(database: Database, traces: bool) -> Self {
        let parsed = ParseCache::new(database.dialect(), PARSED_STATEMENTS);
        Self {
            events: database.events(),
            database,
            traces,
            parsed: Rc::new(RefCell::new(parsed)),
        }
    }
}

/// Which hooks PHP has, by name.
fn hooks(names: &ZendHashTable) -> Hooks {
    let has = |hook: &str| values(names).any(|name| name.str() == Some(hook));
    Hooks {
        created: has("created"),
        borrowed: has("borrowed"),
        returned: has("returned"),
        closed: has("closed"),
    }
}

/// `[kind, call, session]`, for a leak `["leak", holder]`.
fn event_row(event: &PoolEvent) -> PhpResult<Zval> {
    let mut row = ZendHashTable::new();
    match event {
        PoolEvent::Hook {
            point,
            call,
            session,
        } => {
            row.push(match point {
                HookPoint::Created => "created",
                HookPoint::Renewed => "renewed",
                HookPoint::Borrowed => "borrowed",
                HookPoint::Returned => "returned",
                HookPoint::Closed => "closed",
            })?;
            row.push(*call as i64)?;
            row.push(*session)?;
        }
        PoolEvent::Abandon { call } => {
            row.push("abandon")?;
            row.push(*call as i64)?;
        }
        PoolEvent::Leak(holder) => {
            row.push("leak")?;
            row.push(pool::holder(holder)?)?;
        }
    }
    Ok(convert::array_zval(row))
}

#[php_class]
#[php(name = "Weft\\Native\\SqlTransaction")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct SqlTransaction {
    transaction: Transaction,
    parsed: Rc<RefCell<ParseCache>>,
    waiting: Cell<Waiting>,
    places: Rc<StatementPlaces>,
}

/// Approximate bytes that were pushed since the last flush.
#[derive(Clone, Copy, Default)]
struct Waiting {
    statements: usize,
    bytes: usize,
}

impl Waiting {
    fn and(self, statement: &Statement) -> Self {
        Self {
            statements: self.statements + 1,
            bytes: self.bytes + statement.params.iter().map(Value::size).sum::<usize>(),
        }
    }

    fn is_much(self) -> bool {
        self.statements >= MOST_STATEMENTS || self.bytes >= MOST_BYTES
    }
}

#[php_impl]
impl SqlTransaction {
    pub fn push(&self, sql: Text<'_>, params: &ZendHashTable) -> PhpResult<i64> {
        self.note(statement(&self.parsed, sql, params)?, Place::of_caller())
    }

    pub fn push_item(&self, sql: Text<'_>, params: &ZendHashTable, item: i64) -> PhpResult<i64> {
        // Reported before executeMany() returns.
        let statement = statement_of_item(&self.parsed, sql, params, Some(item))?;
        self.note(statement, None)
    }

    pub fn flush_items(&self, first: i64, count: i64, item: i64) -> PhpResult<i64> {
        self.waiting.set(Waiting::default());
        let transaction = self.transaction.clone();
        start(async move {
            let flushed = transaction.flush().await;
            let mut affected = Vec::new();
            for at in first..first.saturating_add(count) {
                let result = usize::try_from(at)
                    .ok()
                    .and_then(|at| transaction.take_result(at));
                match result {
                    Some(Ok(result)) => affected.push(result.affected as i64),
                    Some(Err(error)) => {
                        return Err(item_failure(error, item.saturating_add(at - first)));
                    }
                    None => break,
                }
            }
            flushed.map_err(failure)?;
            Ok(Payload::build(move || Ok(affected.into_zval(false)?)))
        })
    }

    pub fn copy_in(&self, sql: Text<'_>) -> PhpResult<SqlCopyIn> {
        let statement = literal(sql)?;
        let text = statement.source.to_string();
        Ok(SqlCopyIn::new(self.transaction.copy_in(statement), text))
    }

    pub fn copy_out(&self, sql: Text<'_>) -> PhpResult<SqlCopyOut> {
        Ok(SqlCopyOut::new(self.transaction.copy_out(literal(sql)?)))
    }

    pub fn stream(
        &self,
        sql: Text<'_>,
        params: &ZendHashTable,
        chunk: i64,
    ) -> PhpResult<SqlCursor> {
        let chunk = usize::try_from(chunk).unwrap_or(0).max(1);
        let statement = statement(&self.parsed, sql, params)?;
        let rows = self.transaction.stream(statement, chunk).map_err(failure)?;
        Ok(SqlCursor {
            rows: RefCell::new(Some(rows)),
        })
    }

    pub fn is_waiting(&self) -> bool {
        self.waiting.get().statements > 0
    }

    pub fn result(&self, index: i64) -> PhpResult<Zval> {
        let result = usize::try_from(index)
            .ok()
            .and_then(|index| self.transaction.take_result(index));
        match result {
            Some(result) => {
                let failed = |error| self.places.failure(error, &self.transaction);
                sql_values::result_set(result.map_err(failed)?)
            }
            None => Ok(Zval::null()),
        }
    }

    pub fn discard(&self) {
        self.transaction.discard();
    }

    pub fn flush(&self) -> PhpResult<i64> {
        self.waiting.set(Waiting::default());
        self.settle(self.transaction.flush())
    }

    pub fn commit(&self) -> PhpResult<i64> {
        self.settle(self.transaction.commit())
    }

    pub fn rollback(&self) -> PhpResult<i64> {
        let undone = self.transaction.rollback();
        start(async move { undone.await.map(|()| Payload::Null).map_err(failure) })
    }

    pub fn is_open(&self) -> bool {
        self.transaction.is_open()
    }

    pub fn check_outcome(&self) -> PhpResult<()> {
        Ok(self.transaction.check_outcome().map_err(failure)?)
    }
}

impl SqlTransaction {
    /// Waits for the answers to what is noted.
    fn settle(&self, answered: Pending<()>) -> PhpResult<i64> {
        let (places, transaction) = (Rc::clone(&self.places), self.transaction.clone());
        let end = places.end();
        start_begun(answered, move |outcome| {
            places.settle(end, outcome, &transaction)?;
            Ok(Payload::Null)
        })
    }

    /// Its index, negated where it is time to flush.
    fn note(&self, statement: Statement, place: Option<Place>) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        let waiting = self.waiting.get().and(&statement);
        let index = self.transaction.push(statement).map_err(failure)?;
        self.places.note(index, place);
        let index = index as i64;
        self.waiting.set(waiting);
        Ok(if waiting.is_much() { !index } else { index })
    }
}

#[php_class]
#[php(name = "Weft\\Native\\SqlSession")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct SqlSession {
    session: Session,
    database: Database,
    traces: bool,
    parsed: Rc<RefCell<ParseCache>>,
}

#[php_impl]
impl SqlSession {
    pub fn begin(&self) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        Ok(self.session.begin().map_err(failure)?)
    }

    pub fn execute(
        &self,
        sql: Text<'_>,
        params: Option<&ZendHashTable>,
        keep: bool,
        task: i64,
    ) -> PhpResult<i64> {
        let statement = match params {
            Some(params) => statement(&self.parsed, sql, params)?,
            None => literal(sql)?,
        };
        let database = self.database.on_behalf_of(borrower(task, self.traces));
        let dialect = self.database.dialect();
        let running = self.session.execute(&database, statement, keep);
        start(async move {
            let result = running.await.map_err(failure)?;
            Ok(Payload::build(move || {
                sql_plain::result_set(result, dialect)
            }))
        })
    }

    pub fn commit(&self) -> PhpResult<i64> {
        let committed = self.session.commit();
        start(async move { committed.await.map(|()| Payload::Null).map_err(failure) })
    }

    pub fn roll_back(&self) -> PhpResult<i64> {
        let undone = self.session.roll_back();
        start(async move { undone.await.map(|()| Payload::Null).map_err(failure) })
    }

    pub fn reset(&self) -> PhpResult<()> {
        Process::refuse_after_fork()?;
        self.session.reset();
        Ok(())
    }
}

#[php_class]
#[php(name = "Weft\\Native\\SqlCursor")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct SqlCursor {
    /// `None` once closed.
    rows: RefCell<Option<RowStream>>,
}

#[php_impl]
impl SqlCursor {
    pub fn next(&self) -> PhpResult<i64> {
        let next = self.rows.borrow().as_ref().map(RowStream::next);
        start(async move {
            let chunk = match next {
                Some(next) => next.await.map_err(failure)?,
                None => None,
            };
            Ok(Payload::build(move || {
                sql_values::rows(chunk.unwrap_or_default())
            }))
        })
    }

    pub fn close(&self) {
        Process::release(self.rows.borrow_mut().take());
    }
}

fn statement(
    parsed: &RefCell<ParseCache>,
    sql: Text<'_>,
    params: &ZendHashTable,
) -> PhpResult<Statement> {
    statement_of_item(parsed, sql, params, None)
}

/// `item` is the place of the parameters among those of a batch.
fn statement_of_item(
    parsed: &RefCell<ParseCache>,
    sql: Text<'_>,
    params: &ZendHashTable,
    item: Option<i64>,
) -> PhpResult<Statement> {
    let sql = readable(sql)?;
    let params = sql_values::params(params, sql, item)?;
    // Making an exception runs autoloaders, which may use the database: the cache is not borrowed any more by then.
    let bound = bound(&mut parsed.borrow_mut(), sql, params, item);
    Ok(bound?)
}

fn bound(
    parsed: &mut ParseCache,
    sql: &str,
    params: Params,
    item: Option<i64>,
) -> Result<Statement, Failure> {
    let parsed = parsed.parse(sql).map_err(failure)?;
    let bound = parsed.bind(params);
    Ok(Statement {
        sql: parsed.sql.clone(),
        source: parsed.source.clone(),
        params: bound.map_err(|error| match item {
            Some(item) => item_failure(error, item),
            None => failure(error),
        })?,
    })
}

/// A text without placeholders, as it is.
fn literal(sql: Text<'_>) -> PhpResult<Statement> {
    Process::refuse_after_fork()?;
    Ok(Statement::new(readable(sql)?, Vec::new()))
}

fn readable(sql: Text<'_>) -> PhpResult<&str> {
    let readable = sql.utf8().map_err(|wrong| {
        let message = format!("the statement is {wrong}; send bytes as a parameter");
        failure(Error::parameter(&sql.lossy(), message))
    });
    Ok(readable?)
}

/// Without the DSN: what cannot be read may be the password.
fn unreadable_dsn(wrong: NotUtf8) -> Failure {
    let message = format!("invalid database DSN: it is {wrong}; percent-encode it");
    Failure::new("dsn", message)
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .class::<SqlDatabase>()
        .class::<SqlTransaction>()
        .class::<SqlSession>()
        .class::<SqlCursor>()
}
