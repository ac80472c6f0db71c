use std::cell::Cell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BytesMut};
use postgres_protocol::message::backend as tag;
use postgres_protocol::message::frontend;

use super::cache::StatementCache;
use super::cancel_key::CancelKey;
use super::failure::ServerFailure;
use super::replies::{Drain, ExpectNothing, Replies, SimpleQuery};
use super::session_state::SessionState;
use super::text::Malformed;
use super::types::{Oid, Type};
use super::wire::Reader;
use crate::net::{BufferedStream, PeerProtocol, Stream};
use crate::pool::Condition;
use crate::sql::Error;
use crate::sql::deferred_statements::SentCommit;
use crate::sql::hooks::HookState;

/// Bytes received before other tasks and sockets get a turn.
const BYTES_PER_TURN: usize = 256 * 1024;
/// The largest message that a server can build (`MaxAllocSize`).
const MESSAGE_BYTES: usize = 0x3fff_ffff;
/// Largest message in bytes before authentication, when the peer is unknown. libpq accepts 30,000.
const LOG_IN_MESSAGE_BYTES: usize = 64 * 1024;
pub(super) const EXPECTED_SERVER: &str = "a PostgreSQL server";

/// The transaction status of the last `ReadyForQuery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    Idle,
    Open,
    /// Only `ROLLBACK` and `ROLLBACK TO` are accepted.
    Failed,
}

/// One session with a server.
///
/// All state is kept here and not in the futures of the methods, so that a future can be dropped at any point and
/// the connection still knows which answers are outstanding.
pub struct Connection {
    pub(super) link: BufferedStream,
    /// Buffered bytes that only close evicted statements.
    pub(super) closes: usize,
    /// Outstanding `ReadyForQuery` messages.
    awaited: usize,
    /// A request was sent that a `Sync` must end.
    unsynced: bool,
    broken: bool,
    /// The server waits for the data of a `COPY`.
    pub(super) copying: bool,
    status: TransactionStatus,
    target: Rc<str>,
    pub(super) cancel_key: CancelKey,
    pub(super) cache: StatementCache,
    /// Changes to the session that may need cleaning.
    pub(super) session_state: SessionState,
    /// User-defined types of the database, shared by all its connections.
    pub(super) types: Types,
    parameters: HashMap<String, String>,
    /// A commit was sent and may stay unanswered.
    pub(super) commit_sent: Rc<Cell<bool>>,
    pub(super) mark: HookState,
}

pub(super) type Types = Rc<std::cell::RefCell<HashMap<Oid, Type>>>;

impl Connection {
    pub(super) fn new(stream: Stream, target: Rc<str>, cache_limit: usize, types: Types) -> Self {
        Self {
            link: BufferedStream::new(stream, BytesMut::new()),
            closes: 0,
            awaited: 0,
            unsynced: false,
            broken: false,
            copying: false,
            status: TransactionStatus::Idle,
            target,
            cancel_key: CancelKey::default(),
            cache: StatementCache::new(cache_limit),
            session_state: SessionState::default(),
            types,
            parameters: HashMap::new(),
            commit_sent: Rc::default(),
            mark: HookState::default(),
        }
    }

    pub fn status(&self) -> TransactionStatus {
        self.status
    }

    /// A setting that the server reports, such as `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Whether the connection can be lent. Reads a pending shutdown message without a round trip.
    pub(super) fn condition(&mut self) -> Condition {
        if self.broken {
            return Condition::Broken;
        }
        if self.is_busy() || self.status != TransactionStatus::Idle || !self.session_state.is_none()
        {
            return Condition::Dirty;
        }
        let mut cx = Context::from_waker(Waker::noop());
        match self.poll_exchange(&mut cx, &mut ExpectNothing) {
            Poll::Pending if !self.broken => Condition::Clean,
            _ => Condition::Broken,
        }
    }

    /// Whether an answer is outstanding.
    pub(super) fn is_busy(&self) -> bool {
        self.awaited > 0 || self.unsynced || !self.link.out.is_empty()
    }

    /// Writes the start-up message, whose answer ends with the first `ReadyForQuery`.
    pub(super) fn push_startup(&mut self, settings: Vec<(&str, &str)>) -> io::Result<()> {
        frontend::startup_message(settings, &mut self.link.out)?;
        self.awaited = 1;
        Ok(())
    }

    /// Writes one or several statements in the simple protocol.
    pub(super) fn push_query(&mut self, sql: &str) -> Result<(), Error> {
        frontend::query(sql, &mut self.link.out)
            .map_err(|error| self.give_up(&error.to_string()))?;
        self.awaited += 1;
        Ok(())
    }

    pub(super) fn push_sync(&mut self) {
        frontend::sync(&mut self.link.out);
        self.awaited += 1;
        self.unsynced = false;
    }

    pub(super) fn push_flush(&mut self) {
        frontend::flush(&mut self.link.out);
        self.unsynced = true;
    }

    pub(super) fn push_terminate(&mut self) {
        frontend::terminate(&mut self.link.out);
    }

    /// Cleans the session in one round trip; without changes to clean there is none.
    pub(super) async fn reset_session(&mut self) -> Result<(), Error> {
        if self.session_state.is_none() {
            return Ok(());
        }
        self.push_query(self.session_state.reset_sql())?;
        let mut answer = SimpleQuery::default();
        self.exchange(&mut answer).await?;
        if let Some(failure) = answer.failure {
            return Err(self.give_up(&format!(
                "its session cannot be cleaned: {}",
                failure.summary()
            )));
        }
        if self.session_state.affects_statements() {
            self.cache.clear();
        }
        self.session_state = SessionState::default();
        self.mark.is_set_up = false;
        Ok(())
    }

    /// Sends buffered requests and reads and ignores all outstanding answers.
    pub(super) async fn drain(&mut self) -> Result<(), Error> {
        if self.copying {
            self.decline_copy();
        }
        let unended = self.awaited == 0 && !self.link.out.is_empty();
        if self.unsynced || unended {
            self.push_sync();
        }
        if self.awaited == 0 {
            return Ok(());
        }
        let ready = self.awaited;
        self.exchange(&mut Drain { ready }).await
    }

    fn decline_copy(&mut self) {
        self.copying = false;
        // This text has no NUL byte.
        let _ = frontend::copy_fail("the client cancelled the COPY", &mut self.link.out);
    }

    /// Sends buffered requests and reads until the answer is complete.
    pub(super) async fn exchange(&mut self, replies: &mut impl Replies) -> Result<(), Error> {
        if self.broken {
            return Err(self.lost("it was lost before"));
        }
        while !poll_fn(|cx| self.poll_exchange(cx, replies)).await? {
            // Lets the reactor poll other sockets, which it would seldom do during an answer without pauses.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Sends and receives concurrently, because a server that waits for the client to read does not read itself. True when the
    /// answer is complete, false when other tasks should get a turn first.
    fn poll_exchange(
        &mut self,
        cx: &mut Context<'_>,
        replies: &mut impl Replies,
    ) -> Poll<Result<bool, Error>> {
        let mut received = 0;
        let outcome = loop {
            match self.read_messages(replies) {
                Ok(false) if received < BYTES_PER_TURN => {}
                done => break done,
            }
            match ready!(self.link.poll_transfer(cx, 0)) {
                Ok(count) => received += count,
                Err(error) => break Err(self.lost_while(&error.to_string(), replies)),
            }
        };
        self.broken |= outcome.is_err();
        Poll::Ready(outcome)
    }

    /// Handles every complete message. True when the answer is complete.
    pub(super) fn read_messages(&mut self, replies: &mut impl Replies) -> Result<bool, Error> {
        let complete = self.dispatch_all(replies);
        self.broken |= complete.is_err();
        complete
    }

    fn dispatch_all(&mut self, replies: &mut impl Replies) -> Result<bool, Error> {
        let limit = match replies.is_log_in() {
            true => LOG_IN_MESSAGE_BYTES,
            false => MESSAGE_BYTES,
        };
        while let Some(total) = self.next_message(limit, replies)? {
            let tag = self.link.input[0];
            let done = self.dispatch(tag, total, replies)?;
            self.link.input.advance(total);
            if done {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The length of the first message in the buffer, if it is complete.
    fn next_message(&self, limit: usize, replies: &impl Replies) -> Result<Option<usize>, Error> {
        // Some greetings of MySQL have the form of a message.
        if replies.is_log_in()
            && let Some(other) = PeerProtocol::of(&self.link.input)
        {
            return Err(self.lost(&other.instead_of(EXPECTED_SERVER)));
        }
        let Some((tag, rest)) = self.link.input.split_first() else {
            return Ok(None);
        };
        let Some((length, _)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if !(4..=limit).contains(&length) {
            let problem = format!(
                "it sent something that is not the PostgreSQL protocol: a message \"{}\" of {length} bytes",
                tag.escape_ascii()
            );
            return Err(self.lost_while(&problem, replies));
        }
        Ok((self.link.input.len() > length).then_some(length + 1))
    }

    fn dispatch(
        &mut self,
        tag: u8,
        total: usize,
        replies: &mut impl Replies,
    ) -> Result<bool, Error> {
        let body = &self.link.input[5..total];
        let outcome = match tag {
            tag::ERROR_RESPONSE_TAG => match ServerFailure::read(body) {
                Ok(failure) if failure.is_fatal() && !replies.is_log_in() => {
                    return Err(self.closed_by(failure));
                }
                Ok(failure) => {
                    self.copying = false;
                    Ok(replies.failed(failure))
                }
                Err(malformed) => Err(malformed),
            },
            tag::NOTICE_RESPONSE_TAG => Ok(false),
            tag::NOTIFICATION_RESPONSE_TAG => replies.notified(body),
            tag::PARAMETER_STATUS_TAG => remember(&mut self.parameters, body).map(|()| false),
            tag::READY_FOR_QUERY_TAG => read_status(body, self.awaited).and_then(|status| {
                self.status = status;
                self.awaited -= 1;
                replies.message(tag, body)
            }),
            tag::COPY_IN_RESPONSE_TAG | tag::COPY_OUT_RESPONSE_TAG if !replies.copies() => {
                return Err(Error::Usage {
                    message: "use copyIn() or copyOut() for a COPY whose data the client sends or receives"
                        .to_owned(),
                });
            }
            tag::COPY_IN_RESPONSE_TAG if self.awaited > 0 => {
                // A cancelled COPY begins after all. The server has ignored the `Sync` after it.
                self.decline_copy();
                frontend::sync(&mut self.link.out);
                return Ok(false);
            }
            tag::COPY_IN_RESPONSE_TAG => {
                self.copying = true;
                replies.message(tag, body)
            }
            _ => replies.message(tag, body),
        };
        outcome.map_err(|Malformed| {
            let problem = format!(
                "it sent an unexpected or malformed message \"{}\" ({})",
                tag.escape_ascii(),
                message_name(tag)
            );
            let hint = match tag {
                tag::DATA_ROW_TAG => {
                    ". Behind a pooler, a row that does not fit its columns means that a table has changed under a prepared statement"
                }
                _ => "",
            };
            self.lost(&format!("{problem} while the client waited for {}{hint}", replies.awaited()))
        })
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
        self.broken = true;
        self.lost(message)
    }

    /// The same as [`lost`](Self::lost), with the state of the protocol.
    fn lost_while(&self, problem: &str, replies: &impl Replies) -> Error {
        self.lost(&format!(
            "{problem} while the client waited for {}",
            replies.awaited()
        ))
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

    pub(super) fn type_of(&self, oid: Oid) -> Type {
        Type::built_in(oid)
            .or_else(|| self.types.borrow().get(&oid).cloned())
            .unwrap_or_else(|| Type::unknown(oid))
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// The text of a control statement, shared so that its cache entry is found without an allocation.
    pub(super) fn commit_text() -> Arc<str> {
        thread_local! {
            static COMMIT: Arc<str> = Arc::from("COMMIT");
        }
        COMMIT.with(Arc::clone)
    }
}

/// PostgreSQL documentation, "Message Formats".
fn message_name(tag: u8) -> &'static str {
    match tag {
        b'1' => "ParseComplete",
        b'2' => "BindComplete",
        b'3' => "CloseComplete",
        b'A' => "NotificationResponse",
        b'C' => "CommandComplete",
        b'D' => "DataRow",
        b'E' => "ErrorResponse",
        b'G' => "CopyInResponse",
        b'H' => "CopyOutResponse",
        b'I' => "EmptyQueryResponse",
        b'K' => "BackendKeyData",
        b'N' => "NoticeResponse",
        b'R' => "Authentication",
        b'S' => "ParameterStatus",
        b'T' => "RowDescription",
        b'V' => "FunctionCallResponse",
        b'W' => "CopyBothResponse",
        b'Z' => "ReadyForQuery",
        b'c' => "CopyDone",
        b'd' => "CopyData",
        b'n' => "NoData",
        b's' => "PortalSuspended",
        b't' => "ParameterDescription",
        b'v' => "NegotiateProtocolVersion",
        _ => "not a message of the protocol",
    }
}

fn read_status(body: &[u8], awaited: usize) -> Result<TransactionStatus, Malformed> {
    match body {
        _ if awaited == 0 => Err(Malformed),
        b"I" => Ok(TransactionStatus::Idle),
        b"T" => Ok(TransactionStatus::Open),
        b"E" => Ok(TransactionStatus::Failed),
        _ => Err(Malformed),
    }
}

fn remember(parameters: &mut HashMap<String, String>, body: &[u8]) -> Result<(), Malformed> {
    let mut reader = Reader::new(body);
    parameters.insert(reader.text()?, reader.text()?);
    Ok(())
}
