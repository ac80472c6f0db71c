//! Large results in chunks, with back-pressure.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};

use super::config::{Config, Location};
use super::connection::{self, Control};
use super::database::Database;
use super::failure;
use super::prepared::{Cursor, Prepared};
use super::verb::Verb;
use crate::sql::{Error, ResultSet, Statement};

/// Rows of one statement. Clones are the same stream; when the last one is dropped, the reading stops.
#[derive(Clone)]
pub struct RowStream {
    shared: Rc<Shared>,
}

struct Shared {
    database: Database,
    chunk: usize,
    source: Mutex<Source>,
    /// Interrupts the statement, even one that finds no row.
    stop: RefCell<Option<Arc<Control>>>,
}

enum Source {
    NotStarted(Statement),
    Thread(mpsc::Receiver<Result<ResultSet, Error>>),
    /// An in-memory database's rows, already read.
    Rows(ResultSet),
    Ended,
}

impl RowStream {
    pub(super) fn new(database: Database, statement: Statement, chunk: usize) -> Self {
        let shared = Shared {
            database,
            chunk,
            source: Mutex::new(Source::NotStarted(statement)),
            stop: RefCell::new(None),
        };
        Self {
            shared: Rc::new(shared),
        }
    }

    /// The next rows with the columns, `None` after the last. A result without rows is one empty chunk.
    ///
    /// # Errors
    /// Those of the statement, at any chunk; the stream has ended then. [`Error::Usage`] for a statement that writes.
    pub fn next(&self) -> impl Future<Output = Result<Option<ResultSet>, Error>> + 'static {
        let shared = Rc::clone(&self.shared);
        async move {
            let mut source = shared.source.lock().await;
            let next = shared.advance(&mut source).await;
            if !matches!(next, Ok(Some(_))) {
                *source = Source::Ended;
            }
            next
        }
    }
}

impl Shared {
    async fn advance(&self, source: &mut Source) -> Result<Option<ResultSet>, Error> {
        if let Source::NotStarted(_) = source {
            if let Source::NotStarted(statement) = std::mem::replace(source, Source::Ended) {
                *source = self.start(statement).await?;
            }
        }
        match source {
            Source::NotStarted(_) | Source::Ended => Ok(None),
            Source::Thread(chunks) => chunks.recv().await.transpose(),
            Source::Rows(rest) => {
                let chunk = self.split(rest);
                if rest.rows.is_empty() {
                    *source = Source::Ended;
                }
                Ok(Some(chunk))
            }
        }
    }

    async fn start(&self, statement: Statement) -> Result<Source, Error> {
        let hub = &self.database.client().hub;
        self.database.client().check_open()?;
        if hub.config.location == Location::Memory {
            return self.database.execute(statement).await.map(Source::Rows);
        }
        let (sender, receiver) = mpsc::channel(1);
        let control = Arc::new(Control::new());
        self.stop.replace(Some(Arc::clone(&control)));
        let chunk = self.chunk;
        hub.start_thread("weft-sqlite-stream", move |hub| {
            if let Err(error) = read(&hub.config, &control, &statement, chunk, &sender) {
                let _ = sender.blocking_send(Err(error));
            }
        })?;
        Ok(Source::Thread(receiver))
    }

    fn split(&self, rest: &mut ResultSet) -> ResultSet {
        let later = rest.rows.split_off(self.chunk.min(rest.rows.len()));
        let rows = std::mem::replace(&mut rest.rows, later);
        ResultSet {
            columns: Arc::clone(&rest.columns),
            affected: rows.len() as u64,
            rows,
            last_insert_id: None,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(control) = self.stop.get_mut() {
            control.stop();
        }
    }
}

fn read(
    config: &Config,
    control: &Arc<Control>,
    statement: &Statement,
    chunk: usize,
    sender: &mpsc::Sender<Result<ResultSet, Error>>,
) -> Result<(), Error> {
    let connection = connection::open_reader(config, control)?;
    let mut prepared = Prepared::new(&connection, &statement.sql, Verb::of(&statement.sql))?;
    if !prepared.is_readonly() {
        return Err(failure::usage(format!(
            "only a statement that reads can be streamed [statement: {}]",
            statement.sql
        )));
    }
    prepared.bind(&statement.params)?;
    prepared.start(|cursor| {
        let mut first = true;
        loop {
            let (chunk, ended) = take(cursor, chunk)?;
            let nothing_more = chunk.rows.is_empty() && !first;
            if nothing_more || sender.blocking_send(Ok(chunk)).is_err() || ended {
                return Ok(());
            }
            first = false;
        }
    })
}

fn take(cursor: &mut Cursor<'_>, chunk: usize) -> Result<(ResultSet, bool), Error> {
    let mut rows = Vec::new();
    while rows.len() < chunk {
        match cursor.next()? {
            Some(row) => rows.push(row),
            None => return Ok((result(cursor, rows), true)),
        }
    }
    Ok((result(cursor, rows), false))
}

fn result(cursor: &Cursor<'_>, rows: Vec<Vec<crate::sql::Value>>) -> ResultSet {
    ResultSet {
        columns: Arc::clone(cursor.columns()),
        affected: rows.len() as u64,
        rows,
        last_insert_id: None,
    }
}
