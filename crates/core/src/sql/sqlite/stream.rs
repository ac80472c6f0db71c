//! Large results in chunks, with back-pressure.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, mpsc};

use super::client::Client;
use super::config::{Config, Location};
use super::connection::{self, Control};
use super::failure;
use super::prepared::{Cursor, Prepared};
use super::statement_kind::StatementKind;
use crate::sql::error::excerpt;
use crate::sql::{Error, ResultSet, Statement, Value};

/// Rows of one statement. Clones share the stream; dropping the last one ends it.
#[derive(Clone)]
pub struct RowStream {
    shared: Rc<Shared>,
}

struct Shared {
    client: Rc<Client>,
    chunk: usize,
    source: Mutex<Source>,
    /// Interrupts the statement, even if it finds no row.
    stop: RefCell<Option<Arc<Control>>>,
}

enum Source {
    NotStarted(Statement),
    Thread(mpsc::Receiver<Part>),
    /// The rows of an in-memory database, which are read at once.
    Rows(ResultSet),
    Ended,
}

/// `None` is the end; a channel that closes without it was interrupted.
type Part = Result<Option<ResultSet>, Error>;

impl RowStream {
    pub(super) fn new(client: Rc<Client>, statement: Statement, chunk: usize) -> Self {
        let shared = Shared {
            client,
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
    /// Those of the statement, at any chunk; they end the stream. [`Error::Usage`] for a statement that writes.
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
        if let Source::NotStarted(_) = source
            && let Source::NotStarted(statement) = std::mem::replace(source, Source::Ended)
        {
            *source = self.start(statement).await?;
        }
        match source {
            Source::NotStarted(_) | Source::Ended => Ok(None),
            Source::Thread(parts) => parts.recv().await.unwrap_or_else(|| Err(self.cut())),
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
        let engine = &self.client.engine;
        self.client.check_open()?;
        if engine.config.location == Location::Memory {
            return self.client.execute(statement).await.map(Source::Rows);
        }
        let (sender, receiver) = mpsc::channel(1);
        let control = Arc::new(Control::new());
        self.stop.replace(Some(Arc::clone(&control)));
        engine.add_stream(&control);
        let chunk = self.chunk;
        engine.start_thread("weft-sqlite-stream", move |engine| {
            if let Ok(mut outlet) = Outlet::new(sender, &control) {
                let read = read(&engine.config, &control, &statement, chunk, &mut outlet);
                match read.map_err(|error| engine.with_hint(error).in_words_of(&statement)) {
                    Ok(true) => outlet.send(Ok(None)),
                    Ok(false) => false,
                    Err(error) => outlet.send(Err(error)),
                };
            }
        })?;
        Ok(Source::Thread(receiver))
    }

    fn cut(&self) -> Error {
        Error::ConnectionLost {
            target: self.client.engine.target.clone(),
            message: "it was closed while rows were streamed".into(),
            sqlstate: None,
        }
    }

    fn split(&self, rest: &mut ResultSet) -> ResultSet {
        let later = rest.rows.split_off(self.chunk.min(rest.rows.len()));
        let rows = std::mem::replace(&mut rest.rows, later);
        ResultSet {
            columns: Arc::clone(&rest.columns),
            affected: rows.len() as u64,
            rows,
            last_insert_id: None,
            further: Vec::new(),
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

/// The sending end, with a runtime for waiting for capacity or for the stop.
struct Outlet<'a> {
    sender: mpsc::Sender<Part>,
    runtime: Runtime,
    control: &'a Control,
}

impl<'a> Outlet<'a> {
    fn new(sender: mpsc::Sender<Part>, control: &'a Control) -> std::io::Result<Self> {
        Ok(Self {
            sender,
            runtime: Builder::new_current_thread().build()?,
            control,
        })
    }

    /// Returns whether the receiver wants more.
    fn send(&mut self, part: Part) -> bool {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                sent = self.sender.send(part) => sent.is_ok(),
                () = self.control.stopped() => false,
            }
        })
    }
}

/// Returns whether all rows were read.
fn read(
    config: &Config,
    control: &Arc<Control>,
    statement: &Statement,
    chunk: usize,
    outlet: &mut Outlet<'_>,
) -> Result<bool, Error> {
    let connection = connection::open_reader(config, control)?;
    let mut prepared = Prepared::new(
        &connection,
        &statement.sql,
        StatementKind::of(&statement.sql),
    )?;
    if !prepared.is_readonly() {
        return Err(failure::usage(format!(
            "only statements that read can be streamed [statement: {}]",
            excerpt(&statement.sql)
        )));
    }
    prepared.bind(&statement.params)?;
    prepared.start(|cursor| {
        let mut first = true;
        loop {
            let (chunk, ended) = take(cursor, chunk)?;
            if chunk.rows.is_empty() && !first {
                return Ok(true);
            }
            if !outlet.send(Ok(Some(chunk))) {
                return Ok(false);
            }
            if ended {
                return Ok(true);
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

fn result(cursor: &Cursor<'_>, rows: Vec<Vec<Value>>) -> ResultSet {
    ResultSet {
        columns: Arc::clone(cursor.columns()),
        affected: rows.len() as u64,
        rows,
        last_insert_id: None,
        further: Vec::new(),
    }
}
