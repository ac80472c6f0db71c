//! `LISTEN`: notifications on a connection of their own.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Duration;

use postgres_protocol::message::backend as tag;

use super::connection::Connection;
use super::failure::ServerFailure;
use super::replies::Replies;
use super::startup::Postgres;
use super::text::Malformed;
use super::wire::Reader;
use crate::pool::Pool;
use crate::sql::{ConnectFailure, Error};

/// Notifications buffered for the reader.
const QUEUE_LIMIT: usize = 1_000;
/// Bytes of a channel's name; the server truncates longer ones.
const CHANNEL_NAME_BYTES: usize = 63;
/// The delay between two attempts to reconnect, at first and at most.
const FIRST_RECONNECT_DELAY: Duration = Duration::from_millis(100);
const LONGEST_RECONNECT_DELAY: Duration = Duration::from_secs(5);

/// The events of a [`Listener`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    Notification(Notification),
    /// The listener has reconnected after it lost its connection for this reason. Notifications may be missing.
    Missed {
        reason: String,
    },
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub channel: String,
    pub payload: String,
    /// The process id of the sender's session.
    pub process: i32,
}

/// A subscription to channels, which reconnects after a loss of its connection and reports that.
///
/// It has a connection of its own outside of the pool. It reads only while a task waits, so that the
/// server buffers the rest. Dropping it ends the subscription.
pub struct Listener {
    pool: Pool<Postgres>,
    channels: Vec<String>,
    check: Duration,
    /// `None` while the connection is lost.
    connection: Option<Box<Connection>>,
    queue: VecDeque<Notification>,
    /// The reason for which the connection was lost, until it is reported.
    lost: Option<String>,
    pause: Duration,
}

impl Listener {
    /// Connects and subscribes, and returns when the server has confirmed. A connection that was idle for `check`
    /// is checked by a round trip.
    ///
    /// # Errors
    /// [`Error::Usage`] for a channel without a name or with one longer than 63 bytes, [`Error::Connect`], [`Error::Server`].
    pub(super) async fn open(
        pool: Pool<Postgres>,
        channels: Vec<String>,
        check: Duration,
    ) -> Result<Self, Error> {
        check_names(&channels)?;
        let mut listener = Self {
            pool,
            channels,
            check,
            connection: None,
            queue: VecDeque::new(),
            lost: None,
            pause: FIRST_RECONNECT_DELAY,
        };
        listener.connection = Some(listener.subscribe().await?);
        Ok(listener)
    }

    /// Waits until there are events to [`take`](Self::take). May be dropped and called again at any time.
    ///
    /// Reconnects after a loss, with growing delays of at most 5 seconds and without a limit of attempts.
    ///
    /// # Errors
    /// [`Error::Connect`] when authentication fails, [`Error::Server`] when the server refuses the subscription,
    /// [`Error::PoolClosed`] when the database was closed in the meantime.
    pub async fn wait(&mut self) -> Result<(), Error> {
        while self.queue.is_empty() && self.connection.is_some() {
            if let Err(error) = self.receive().await {
                self.lost = Some(error.to_string());
                self.connection = None;
            }
        }
        if self.queue.is_empty() {
            self.connect_again().await?;
        }
        Ok(())
    }

    /// Takes the events that have arrived, in order.
    pub fn take(&mut self) -> Vec<News> {
        // It reconnects only after all earlier notifications were taken.
        let lost = self.lost.take_if(|_| self.connection.is_some());
        let missed = lost.map(|reason| News::Missed { reason });
        let notifications = self.queue.drain(..).map(News::Notification);
        missed.into_iter().chain(notifications).collect()
    }

    async fn receive(&mut self) -> Result<(), Error> {
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let received = connection.receive_notifications(&mut self.queue);
        match tokio::time::timeout(self.check, received).await {
            Ok(outcome) => outcome,
            Err(_) => {
                connection.push_sync();
                let limit = self.pool.manager().server.connect_timeout();
                let mut answer = Listening::onto(&mut self.queue);
                match tokio::time::timeout(limit, connection.exchange(&mut answer)).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(connection.give_up(&format!("no answer within {limit:?}"))),
                }
            }
        }
    }

    async fn connect_again(&mut self) -> Result<(), Error> {
        loop {
            if self.pool.is_closed() {
                return Err(Error::PoolClosed {
                    pool: "the listener's database".to_owned(),
                });
            }
            match self.subscribe().await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.pause = FIRST_RECONNECT_DELAY;
                    return Ok(());
                }
                Err(error) if is_final(&error) => return Err(error),
                Err(_) => {
                    tokio::time::sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(LONGEST_RECONNECT_DELAY);
                }
            }
        }
    }

    async fn subscribe(&mut self) -> Result<Box<Connection>, Error> {
        let mut connection = Box::new(self.pool.manager().server.connect().await?);
        let listen: Vec<String> = self.channels.iter().map(|name| listen(name)).collect();
        let sql = listen.join("; ");
        connection.push_query(&sql)?;
        let mut answer = Listening::onto(&mut self.queue);
        connection.exchange(&mut answer).await?;
        match answer.failure {
            None if answer.completed < self.channels.len() => {
                Err(connection.give_up("it did not answer every LISTEN"))
            }
            None => Ok(connection),
            Some(failure) => Err(failure.into_error(&sql)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && !connection.is_broken()
        {
            connection.push_terminate();
            connection.link.send_now();
        }
    }
}

impl Connection {
    /// Returns when there is at least one. Dropping the future loses none.
    async fn receive_notifications(
        &mut self,
        queue: &mut VecDeque<Notification>,
    ) -> Result<(), Error> {
        poll_fn(|cx| {
            loop {
                if let Err(error) = self.read_messages(&mut Listening::onto(queue)) {
                    return Poll::Ready(Err(error));
                }
                if !queue.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                if let Err(error) = ready!(self.link.poll_transfer(cx, 0)) {
                    let problem = format!("{error} while the client waited for notifications");
                    return Poll::Ready(Err(self.give_up(&problem)));
                }
            }
        })
        .await
    }
}

/// Collects notifications.
pub(super) struct Listening<'a> {
    queue: &'a mut VecDeque<Notification>,
    /// The number of successful statements.
    completed: usize,
    failure: Option<ServerFailure>,
}

impl<'a> Listening<'a> {
    pub(super) fn onto(queue: &'a mut VecDeque<Notification>) -> Self {
        Self {
            queue,
            completed: 0,
            failure: None,
        }
    }
}

impl Replies for Listening<'_> {
    fn message(&mut self, tag: u8, _: &[u8]) -> Result<bool, Malformed> {
        match tag {
            tag::COMMAND_COMPLETE_TAG => {
                self.completed += 1;
                Ok(false)
            }
            tag::READY_FOR_QUERY_TAG => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn failed(&mut self, failure: ServerFailure) -> bool {
        self.failure = Some(failure);
        false
    }

    fn awaited(&self) -> &'static str {
        "notifications"
    }

    fn notified(&mut self, body: &[u8]) -> Result<bool, Malformed> {
        let mut reader = Reader::new(body);
        let process = reader.i32()?;
        self.queue.push_back(Notification {
            process,
            channel: reader.text()?,
            payload: reader.text()?,
        });
        Ok(self.queue.len() >= QUEUE_LIMIT)
    }
}

fn check_names(channels: &[String]) -> Result<(), Error> {
    let refused = |message: String| Err(Error::Usage { message });
    if channels.is_empty() {
        return refused("listen() needs a channel".to_owned());
    }
    for name in channels {
        match name.len() {
            0 => return refused("a channel needs a name".to_owned()),
            1..=CHANNEL_NAME_BYTES if !name.contains('\0') => {}
            length => {
                return refused(format!(
                    "\"{}\" is not a name of a channel: it has {length} bytes, at most {CHANNEL_NAME_BYTES} are allowed and none may be NUL",
                    name.escape_debug()
                ));
            }
        }
    }
    Ok(())
}

fn listen(name: &str) -> String {
    format!("LISTEN \"{}\"", name.replace('"', "\"\""))
}

/// Whether a retry is useless.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Connect { failure, .. } => matches!(
            failure,
            ConnectFailure::Authentication | ConnectFailure::Database | ConnectFailure::Tls
        ),
        Error::ConnectionLost { .. } => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_channels_are_quoted_and_checked() {
        assert_eq!(listen("a\"; DROP"), "LISTEN \"a\"\"; DROP\"");
        for names in [
            vec![],
            vec![String::new()],
            vec!["a".repeat(64)],
            vec!["a\0".to_owned()],
        ] {
            assert!(check_names(&names).is_err(), "{names:?}");
        }
        assert!(check_names(&["a".repeat(63), "Ä b".to_owned()]).is_ok());
    }

    #[test]
    fn reading_pauses_when_enough_has_been_read() {
        let mut queue = VecDeque::new();
        let mut listening = Listening::onto(&mut queue);
        let body = b"\0\0\0\x07jobs\0new\0";
        for count in 1..=QUEUE_LIMIT {
            assert_eq!(listening.notified(body), Ok(count == QUEUE_LIMIT));
        }
        assert_eq!(queue[0].process, 7);
        assert_eq!((&*queue[0].channel, &*queue[0].payload), ("jobs", "new"));
        let mut listening = Listening::onto(&mut queue);
        assert_eq!(listening.notified(&body[..body.len() - 1]), Err(Malformed));
    }
}
