use super::codec::method::CloseReason;

/// Everything that can go wrong between this process and the broker.
///
/// Messages name the object, the broker and its own words, never a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("invalid AMQP DSN \"{dsn}\": {reason}")]
    Dsn { dsn: String, reason: String },

    #[error("cannot connect to {target}: {message}")]
    Connect {
        target: String,
        failure: ConnectFailure,
        message: String,
    },

    /// The connection broke; it is being restored in the background.
    #[error("connection to {target} lost: {message}")]
    ConnectionLost { target: String, message: String },

    /// The broker did not answer a method within `rpc_timeout`. Whether it did what was asked is unknown; the connection is
    /// made anew in the background.
    #[error(
        "{object}: {target} did not answer {method} within {} s (rpc_timeout); the connection is made anew",
        .after.as_secs_f64()
    )]
    Unanswered {
        /// The operation, such as `declare queue "orders"`.
        object: String,
        target: String,
        /// Such as `queue.declare`.
        method: &'static str,
        after: std::time::Duration,
    },

    /// The connection was closed and will not come back.
    #[error("connection to {target} is closed")]
    Closed { target: String },

    /// A bug in Weft ended the connection; it does not come back. Please report the message.
    #[error("connection to {target} is closed by an internal error: {message}")]
    Crashed { target: String, message: String },

    /// The broker refused an operation and closed its channel.
    #[error("{object}: {text} (AMQP {code})")]
    Refused {
        /// The operation, such as `declare queue "orders"`.
        object: String,
        code: u16,
        /// The broker's own words.
        text: String,
    },

    /// The broker closed the connection with an error while an operation or a message was unanswered. Both are repeated on the next
    /// connection; after three such answers they fail with this error, because the next attempt would have the same answer.
    #[error("{object}: the broker closed the connection: {text} (AMQP {code})")]
    ClosedByBroker {
        /// The operation, such as `declare queue "orders"`.
        object: String,
        code: u16,
        /// The broker's own words.
        text: String,
    },

    /// A mandatory message reached no queue.
    #[error(
        "message to exchange \"{exchange}\" with routing key \"{routing_key}\" reached no queue: {text} (AMQP {code})"
    )]
    Unroutable {
        exchange: String,
        routing_key: String,
        code: u16,
        text: String,
    },

    /// The broker could not take responsibility for a message (`basic.nack`), for instance because a queue is full.
    #[error(
        "broker did not accept the message to exchange \"{exchange}\" with routing key \"{routing_key}\" (basic.nack)"
    )]
    NotAccepted {
        exchange: String,
        routing_key: String,
    },

    /// The broker ended the consumer and it could not be started again.
    #[error("consumer of queue \"{queue}\" ended: {reason}")]
    ConsumerCancelled { queue: String, reason: String },

    /// The message was not sent: wait for [`Publisher::ready`](super::Publisher::ready) and try again.
    #[error(
        "publisher is full: {unconfirmed} messages unconfirmed (window {window}), {buffered} bytes buffered"
    )]
    Full {
        unconfirmed: usize,
        window: usize,
        buffered: usize,
    },

    /// The caller broke the rules of the object, such as a name longer than 255 bytes; nothing was sent.
    #[error("{message}")]
    Usage { message: String },
}

/// Why a connection could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Connection refused, or host unreachable.
    Refused,
    Timeout,
    /// The host name has no address.
    Dns,
    /// The broker refused user or password.
    Authentication,
    /// The virtual host does not exist, or the user may not use it.
    VirtualHost,
    Tls,
    /// The peer does not speak AMQP 0-9-1 as expected, or refused for another reason.
    Protocol,
}

/// Closed connections after which an operation or a message is given up.
pub(super) const MAX_CLOSES: u8 = 3;

impl Error {
    pub(super) fn closed_by_broker(object: String, reason: &CloseReason) -> Self {
        Self::ClosedByBroker {
            object,
            code: reason.code,
            text: reason.text.clone(),
        }
    }

    /// Whether the session it happened on is lost and the next one has to do it.
    pub(super) fn ends_session(&self) -> bool {
        matches!(
            self,
            Self::ConnectionLost { .. } | Self::Unanswered { .. } | Self::ClosedByBroker { .. }
        )
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
        }
    }
}
