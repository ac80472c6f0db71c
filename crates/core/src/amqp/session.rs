//! The calling side of one AMQP connection.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Error;
use super::codec::method::{self, CloseReason, MethodId, Reply};
use super::consumer_state::ConsumerShared;
use super::handshake::{Limits, Server};
use super::io_waker::IoWaker;
use super::lock::lock;
use super::publisher_state::PublisherShared;

/// One AMQP connection from its handshake to its end, for calls of methods. The driver executes its commands.
#[derive(Clone)]
pub(super) struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    /// Counts up with every connection made.
    generation: u64,
    limits: Limits,
    server: Server,
    target: String,
    io_waker: Arc<IoWaker>,
    /// `None` once the connection ended.
    commands: Mutex<Option<Vec<Command>>>,
    /// The error with which the broker has closed the connection.
    close_error: OnceLock<CloseReason>,
}

/// The purpose of a channel.
#[derive(Clone)]
pub(super) enum Role {
    /// Declarations and other calls.
    Control,
    Publisher(Arc<PublisherShared>),
    Consumer(Arc<ConsumerShared>),
}

pub(super) type CallResult = Result<Reply, CallFailure>;

/// Why a method has no reply.
pub(super) enum CallFailure {
    /// The broker closed the channel instead.
    Refused(CloseReason),
    /// The broker sent nothing for this long.
    TimedOut(Duration),
}

/// A command for the driver.
pub(super) enum Command {
    /// Opens a channel; later calls on it may follow at once.
    Open {
        channel: u16,
        role: Role,
        reply: oneshot::Sender<CallResult>,
    },
    /// Sends a method and waits for the one that answers it.
    Call {
        channel: u16,
        frame: Vec<u8>,
        expected: MethodId,
        reply: oneshot::Sender<CallResult>,
    },
    CloseConnection,
}

impl Session {
    pub(super) fn new(
        generation: u64,
        limits: Limits,
        server: Server,
        target: String,
        io_waker: Arc<IoWaker>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                generation,
                limits,
                server,
                target,
                io_waker,
                commands: Mutex::new(Some(Vec::new())),
                close_error: OnceLock::new(),
            }),
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.inner.generation
    }

    pub(super) fn limits(&self) -> Limits {
        self.inner.limits
    }

    pub(super) fn server(&self) -> &Server {
        &self.inner.server
    }

    /// The broker closes the connection. Call it before [`end`](Self::end): the calls that end learn the reason.
    pub(super) fn closed_by_broker(&self, reason: CloseReason) {
        if reason.is_error() {
            let _ = self.inner.close_error.set(reason);
        }
    }

    /// The error with which the broker has closed the connection.
    pub(super) fn close_error(&self) -> Option<&CloseReason> {
        self.inner.close_error.get()
    }

    fn lost(&self) -> Error {
        Error::ConnectionLost {
            target: self.inner.target.clone(),
            message: "it ended while an answer was awaited".into(),
        }
    }

    fn send(&self, command: Command) -> Result<(), Error> {
        match &mut *lock(&self.inner.commands) {
            Some(commands) => commands.push(command),
            None => return Err(self.lost()),
        }
        self.inner.io_waker.wake();
        Ok(())
    }

    /// Commands since the last call, for the driver.
    pub(super) fn take_commands(&self) -> Vec<Command> {
        let mut commands = lock(&self.inner.commands);
        commands.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends every call, waiting or to come, with [`Error::ConnectionLost`].
    pub(super) fn end(&self) {
        let commands = lock(&self.inner.commands).take();
        drop(commands);
    }

    /// Sends a method and waits for its answer.
    ///
    /// # Errors
    /// [`Error::Refused`] naming `object` if the broker closed the channel instead, [`Error::Unanswered`] if it was silent
    /// for too long, [`Error::ClosedByBroker`] if it closed the connection with an error, [`Error::ConnectionLost`] if the connection
    /// ended otherwise. [`Error::Usage`] if the method does not fit a frame: methods cannot be split.
    pub(super) async fn call(
        &self,
        channel: u16,
        frame: Vec<u8>,
        expected: MethodId,
        object: impl FnOnce() -> String,
    ) -> Result<Reply, Error> {
        let (bytes, frame_max) = (frame.len(), self.inner.limits.frame_max);
        if bytes > frame_max {
            return Err(Error::usage(format!(
                "{}: the method takes {bytes} bytes, the broker allows frames of {frame_max}",
                object()
            )));
        }
        let (reply, answer) = oneshot::channel();
        self.send(Command::Call {
            channel,
            frame,
            expected,
            reply,
        })?;
        self.answered(answer, expected, object).await
    }

    async fn answered(
        &self,
        answer: oneshot::Receiver<CallResult>,
        expected: MethodId,
        object: impl FnOnce() -> String,
    ) -> Result<Reply, Error> {
        match answer.await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(CallFailure::Refused(reason))) => Err(refused(object(), &reason)),
            Ok(Err(CallFailure::TimedOut(after))) => Err(Error::Unanswered {
                object: object(),
                target: self.inner.server.address.clone(),
                method: method::question(expected),
                after,
            }),
            Err(_) => Err(match self.close_error() {
                Some(reason) => Error::closed_by_broker(object(), reason),
                None => self.lost(),
            }),
        }
    }

    /// Opens a channel.
    pub(super) async fn open(
        &self,
        channel: u16,
        role: Role,
        object: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Open {
            channel,
            role,
            reply,
        })?;
        self.answered(answer, method::CHANNEL_OPEN_OK, object)
            .await
            .map(drop)
    }

    pub(super) async fn open_control(&self, channel: u16) -> Result<(), Error> {
        let object = || format!("open channel {channel}");
        self.open(channel, Role::Control, object).await
    }

    pub(super) async fn close_channel(&self, channel: u16) -> Result<(), Error> {
        let frame = method::close(channel, 200, "");
        let object = || format!("close channel {channel}");
        self.call(channel, frame, method::CHANNEL_CLOSE_OK, object)
            .await
            .map(drop)
    }

    /// Starts the closing handshake; what was queued before goes first.
    pub(super) fn close_connection(&self) {
        let _ = self.send(Command::CloseConnection);
    }
}

pub(super) fn refused(object: String, reason: &CloseReason) -> Error {
    Error::Refused {
        object,
        code: reason.code,
        text: reason.text.clone(),
    }
}
