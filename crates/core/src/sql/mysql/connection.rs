use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::BufMut;

use super::cache::StatementCache;
use super::config::Config;
use super::encode;
use super::failure::ServerFailure;
use super::local_infile::Infile;
use super::reply::{
    AUTOCOMMIT, Answer, Capabilities, Command, IN_TRANSACTION, NO_BACKSLASH_ESCAPES, Reply, Step,
};
use super::wire::{Framing, HEADER, Malformed, frame, push_packet, take_packet};
use crate::net::BufferedStream;
use crate::pool::Condition;
use crate::sql::deferred_statements::SentCommit;
use crate::sql::error::excerpt;
use crate::sql::hooks::HookState;
use crate::sql::{Error, Statement};

/// Bytes received before other tasks and sockets get a turn.
const BYTES_PER_TURN: usize = 256 * 1024;

/// The longest packet that a server may send (the maximum of `max_allowed_packet`), with its headers.
const ANSWER_BYTES: usize = (1 << 30) + 1024;

const COM_QUIT: u8 = 0x01;
const COM_INIT_DB: u8 = 0x02;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_CLOSE: u8 = 0x19;
const COM_STMT_FETCH: u8 = 0x1c;
const COM_RESET_CONNECTION: u8 = 0x1f;

/// One session with a server.
///
/// All state is kept here and not in the futures of the methods, so that a future can be dropped at any point and
/// the connection still knows which answers are outstanding.
pub struct Connection {
    link: BufferedStream,
    /// Requests that are not yet answered.
    commands: VecDeque<Command>,
    /// Answers that are not yet taken.
    answers: VecDeque<Answer>,
    reply: Reply,
    /// The reader of the rows was dropped.
    is_discarding: bool,
    is_broken: bool,
    /// A statement may have changed the state of the session.
    session_touched: bool,
    target: Rc<str>,
    /// The server's number of this session, for `KILL`.
    pub(super) id: u32,
    pub(super) cache: StatementCache,
    /// Numbers of statements to close with the next command.
    pub(super) evicted: Vec<u32>,
    /// The longest packet the server accepts, in bytes.
    pub(super) max_packet: usize,
    /// `LOAD DATA LOCAL`: the permission, and the state of an upload.
    pub(super) local_infile: Infile,
    /// A commit, or a statement that commits by itself, was sent and may stay unanswered.
    pub(super) commit_sent: Rc<Cell<bool>>,
    pub(super) mark: HookState,
}

impl Connection {
    pub(super) fn new(
        link: BufferedStream,
        target: Rc<str>,
        config: &Config,
        capabilities: Capabilities,
        (id, status): (u32, u16),
    ) -> Self {
        Self {
            link,
            commands: VecDeque::new(),
            answers: VecDeque::new(),
            reply: Reply::new(capabilities, status),
            is_discarding: false,
            is_broken: false,
            session_touched: false,
            target,
            id,
            cache: StatementCache::new(config.connect.statement_cache),
            evicted: Vec::new(),
            max_packet: 16 << 20,
            local_infile: Infile::new(config.local_infile),
            commit_sent: Rc::default(),
            mark: HookState::default(),
        }
    }

    /// No transaction is open, and the next statement does not begin one.
    pub(super) fn is_idle(&self) -> bool {
        self.reply.status & (IN_TRANSACTION | AUTOCOMMIT) == AUTOCOMMIT
    }

    pub(super) fn in_transaction(&self) -> bool {
        self.reply.status & IN_TRANSACTION != 0
    }

    pub(super) fn mark_session_changed(&mut self) {
        self.session_touched = true;
    }

    pub(super) fn has_changed_session(&self) -> bool {
        self.session_touched || self.reply.session_changed
    }

    /// Whether the connection can be lent. Reads a pending shutdown message without a round trip.
    pub(super) fn condition(&mut self) -> Condition {
        if self.is_broken || self.local_infile.is_sending() {
            return Condition::Broken;
        }
        if self.is_busy() || !self.is_idle() || self.has_changed_session() {
            return Condition::Dirty;
        }
        let mut cx = Context::from_waker(Waker::noop());
        match self.poll_exchange(&mut cx, usize::MAX) {
            Poll::Pending if !self.is_broken => Condition::Clean,
            _ => Condition::Broken,
        }
    }

    /// Whether an answer is outstanding.
    pub(super) fn is_busy(&self) -> bool {
        !self.commands.is_empty() || !self.answers.is_empty() || !self.link.out.is_empty()
    }

    /// The number of outstanding answers.
    pub(super) fn awaited(&self) -> usize {
        self.commands.len()
    }

    /// Sends a statement of the client itself in the text protocol.
    pub(super) fn push_control(&mut self, sql: &str) {
        self.push(Command::Control, COM_QUERY, sql.as_bytes());
    }

    /// The same, with an implicit answer: a failure breaks the connection.
    pub(super) fn push_silent(&mut self, sql: &str) {
        self.push(Command::Silent, COM_QUERY, sql.as_bytes());
    }

    pub(super) fn push_query(&mut self, sql: &str) {
        self.push(Command::Query, COM_QUERY, sql.as_bytes());
    }

    pub(super) fn push_prepare(&mut self, sql: &str) {
        self.push(Command::Prepare, COM_STMT_PREPARE, sql.as_bytes());
    }

    /// Resets the session, which loses its prepared statements and keeps its database.
    pub(super) fn push_reset(&mut self) {
        self.cache.clear();
        self.evicted.clear();
        self.push(Command::Control, COM_RESET_CONNECTION, b"");
        self.mark.is_set_up = false;
    }

    pub(super) fn push_database(&mut self, name: &str) {
        self.push(Command::Control, COM_INIT_DB, name.as_bytes());
    }

    /// # Errors
    /// [`Error::Parameter`] for a parameter that cannot be sent, and for a packet longer than the server accepts.
    pub(super) fn push_execute(
        &mut self,
        id: u32,
        statement: &Statement,
        cursor: bool,
    ) -> Result<(), Error> {
        let before = self.link.out.len();
        self.write_closes();
        let start = self.link.out.len();
        let mut outcome = Ok(());
        push_packet(&mut self.link.out, 0, |out| {
            outcome = encode::execute(id, statement, cursor, out)
        });
        let length = self.link.out.len() - start;
        if outcome.is_ok() && length > self.max_packet {
            outcome = Err(too_large(&statement.source, length, self.max_packet));
        }
        match outcome {
            Ok(()) => {
                self.evicted.clear();
                self.commands.push_back(Command::Execute);
            }
            Err(_) => self.link.out.truncate(before),
        }
        outcome
    }

    /// Requests the next rows of a cursor.
    pub(super) fn push_fetch(&mut self, id: u32, rows: u32) {
        let mut body = [0; 8];
        body[..4].copy_from_slice(&id.to_le_bytes());
        body[4..].copy_from_slice(&rows.to_le_bytes());
        self.push(Command::Fetch, COM_STMT_FETCH, &body);
    }

    /// # Errors
    /// [`Error::Parameter`] for a text longer than the server accepts.
    pub(super) fn check_length(&self, statement: &Statement) -> Result<(), Error> {
        match statement.sql.len() + HEADER + 1 {
            length if length > self.max_packet => {
                Err(too_large(&statement.source, length, self.max_packet))
            }
            _ => Ok(()),
        }
    }

    /// Writes the commands that close evicted statements, in front of a command that the server answers: it does not answer
    /// these, and by themselves they would make the connection look busy.
    fn write_closes(&mut self) {
        for id in &self.evicted {
            push_packet(&mut self.link.out, 0, |out| {
                out.put_u8(COM_STMT_CLOSE);
                out.put_u32_le(*id);
            });
        }
    }

    fn push(&mut self, command: Command, code: u8, body: &[u8]) {
        self.write_closes();
        self.evicted.clear();
        push_packet(&mut self.link.out, 0, |out| {
            out.put_u8(code);
            out.extend_from_slice(body);
        });
        self.commands.push_back(command);
    }

    /// Sends a part of the file of `LOAD DATA LOCAL`; an empty one ends it.
    pub(super) fn push_file_part(&mut self, part: &[u8]) {
        self.local_infile.sequence =
            push_packet(&mut self.link.out, self.local_infile.sequence, |out| {
                out.extend_from_slice(part);
            });
    }

    /// The next answer. `sql` is the statement it belongs to.
    pub(super) async fn answer(&mut self, sql: &str) -> Result<Answer, Error> {
        loop {
            if let Some(answer) = self.answers.pop_front() {
                return Ok(answer);
            }
            self.exchange(usize::MAX).await?;
            self.serve_file(sql).await?;
        }
    }

    /// Receives until `rows` rows of the current answer, or all of it, have arrived. Rows are taken from
    /// [`reply`](Self::reply), the answer by [`answer`](Self::answer).
    pub(super) async fn receive_rows(&mut self, rows: usize) -> Result<(), Error> {
        if self.answers.is_empty() && self.reply.rows.len() < rows {
            self.exchange(rows).await?;
        }
        Ok(())
    }

    pub(super) fn reply(&mut self) -> &mut Reply {
        &mut self.reply
    }

    pub(super) fn has_answer(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Sends buffered requests and reads and ignores all outstanding answers.
    pub(super) async fn drain(&mut self) -> Result<(), Error> {
        self.is_discarding = true;
        while !self.commands.is_empty() {
            self.answers.clear();
            self.exchange(usize::MAX).await?;
            if self.local_infile.is_asked() {
                return Err(self.give_up("it requests a file for a cancelled statement"));
            }
        }
        self.answers.clear();
        self.is_discarding = false;
        Ok(())
    }

    /// Sends buffered requests and reads until an answer is complete, `rows` rows have arrived or a file is requested.
    pub(super) async fn exchange(&mut self, rows: usize) -> Result<(), Error> {
        if self.is_broken {
            return Err(self.lost("it was lost before"));
        }
        while !poll_fn(|cx| self.poll_exchange(cx, rows)).await? {
            // Lets the reactor poll other sockets, which it would seldom do during an answer without pauses.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Sends and receives concurrently, because a server that waits for the client to read does not read itself. True when there is
    /// progress to handle, false when other tasks should get a turn first.
    fn poll_exchange(&mut self, cx: &mut Context<'_>, rows: usize) -> Poll<Result<bool, Error>> {
        let mut received = 0;
        let outcome = loop {
            match self.read_packets(rows) {
                Ok(false) if received < BYTES_PER_TURN => {}
                done => break done,
            }
            let missing = match frame(&self.link.input) {
                Framing::Missing(bytes) if self.link.input.len() + bytes > ANSWER_BYTES => {
                    break Err(
                        self.lost_while("it announced a packet longer than the protocol allows")
                    );
                }
                // At most twice the received bytes: a packet may announce bytes that never arrive.
                Framing::Missing(bytes) => bytes.min(self.link.input.len().max(BYTES_PER_TURN)),
                Framing::Whole { .. } => 0,
            };
            match ready!(self.link.poll_transfer(cx, missing)) {
                Ok(count) => received += count,
                Err(error) => break Err(self.lost_while(&error.to_string())),
            }
        };
        self.is_broken |= outcome.is_err();
        Poll::Ready(outcome)
    }

    /// Sends buffered requests and waits until the socket has accepted them.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        let sent = self.link.flush().await;
        sent.map_err(|error| self.give_up(&format!("{error} while the client sent a file")))
    }

    /// Handles every complete packet up to the end of an answer. True when there is progress to handle.
    fn read_packets(&mut self, rows: usize) -> Result<bool, Error> {
        while let Framing::Whole { total } = frame(&self.link.input) {
            let (packet, sequence) = take_packet(&mut self.link.input, total);
            let Some(command) = self.commands.front() else {
                return Err(self.lost(&last_words(&packet)));
            };
            let step = self.reply.packet(command, &packet);
            let step = step.map_err(|Malformed| {
                let first = packet.first().map_or_else(
                    || "empty".to_owned(),
                    |byte| format!("{} bytes, the first {byte:#04x}", packet.len()),
                );
                self.lost_while(&format!(
                    "it sent an unexpected or malformed packet ({first})"
                ))
            });
            match step? {
                Step::More if self.is_discarding => self.reply.rows.clear(),
                Step::More if self.reply.rows.len() >= rows => return Ok(true),
                Step::More => {}
                Step::File(name) => {
                    self.local_infile.ask(name, sequence.wrapping_add(1));
                    return Ok(true);
                }
                Step::Complete(Answer::Failed(failure)) if failure.is_fatal() => {
                    return Err(self.closed_by(failure));
                }
                Step::Complete(Answer::Failed(failure)) if matches!(command, Command::Silent) => {
                    return Err(self.lost(&failure.summary()));
                }
                Step::Complete(answer) => {
                    if let Some(Command::Silent) = self.commands.pop_front() {
                        if self.commands.is_empty() {
                            // Nothing else will arrive.
                            return Ok(true);
                        }
                        continue;
                    }
                    self.answers.push_back(answer);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a backslash in a string literal is an escape character.
    pub(super) fn has_backslash_escapes(&self) -> bool {
        self.reply.status & NO_BACKSLASH_ESCAPES == 0
    }

    /// Records for the task that waits for a commit whether it was sent.
    pub(super) fn sent_commit(&self) -> SentCommit {
        SentCommit {
            target: Rc::clone(&self.target),
            sent: Rc::clone(&self.commit_sent),
            is_shared: false,
        }
    }

    /// Breaks the connection after a protocol violation.
    pub(super) fn give_up(&mut self, message: &str) -> Error {
        self.is_broken = true;
        self.lost(message)
    }

    /// The same as [`lost`](Self::lost), with the state of the protocol.
    fn lost_while(&self, problem: &str) -> Error {
        match self.commands.front() {
            Some(command) => self.lost(&format!(
                "{problem} while the client waited for {}",
                self.reply.awaited(command)
            )),
            None => self.lost(problem),
        }
    }

    pub(super) fn lost(&self, message: &str) -> Error {
        Error::ConnectionLost {
            target: self.target.to_string(),
            message: message.to_owned(),
            sqlstate: None,
        }
    }

    /// The same after the server has said why.
    fn closed_by(&self, failure: ServerFailure) -> Error {
        Error::ConnectionLost {
            target: self.target.to_string(),
            message: failure.summary(),
            sqlstate: Some(failure.sqlstate),
        }
    }

    /// The session is reset.
    pub(super) fn mark_clean(&mut self) {
        self.session_touched = false;
        self.reply.session_changed = false;
    }

    /// Sends `COM_QUIT` if the socket accepts it at once.
    pub(super) fn quit(&mut self) {
        if self.is_broken || self.is_busy() || !self.reply.is_fresh() {
            return;
        }
        push_packet(&mut self.link.out, 0, |out| out.put_u8(COM_QUIT));
        self.link.send_now();
    }
}

/// The reason in an unrequested message, which a server sends before it closes the connection.
fn last_words(packet: &[u8]) -> String {
    match packet.split_first() {
        Some((0xff, body)) => match ServerFailure::read(body) {
            Ok(failure) => failure.summary(),
            Err(Malformed) => "the server closed the connection".to_owned(),
        },
        _ => "it sent an unrequested packet".to_owned(),
    }
}

fn too_large(sql: &str, length: usize, limit: usize) -> Error {
    Error::Parameter {
        statement: excerpt(sql),
        message: format!(
            "the statement with its parameters has {length} bytes, but the server accepts {limit} (max_allowed_packet)"
        ),
    }
}
