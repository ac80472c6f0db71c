//! Methods: what the broker sends, decoded, and what the client sends, encoded as whole frames.

use std::borrow::Cow;

use super::FieldTable;
use super::frame::{self, METHOD};
use super::wire::{Malformed, Reader, put_long, put_short, put_u16, put_u32, put_u64};

/// Class id in the upper half, method id in the lower.
pub(crate) type MethodId = u32;

const fn id(class: u16, method: u16) -> MethodId {
    ((class as u32) << 16) | method as u32
}

pub(crate) const CONNECTION_START: MethodId = id(10, 10);
pub(crate) const CONNECTION_START_OK: MethodId = id(10, 11);
pub(crate) const CONNECTION_SECURE: MethodId = id(10, 20);
pub(crate) const CONNECTION_TUNE: MethodId = id(10, 30);
pub(crate) const CONNECTION_TUNE_OK: MethodId = id(10, 31);
pub(crate) const CONNECTION_OPEN: MethodId = id(10, 40);
pub(crate) const CONNECTION_OPEN_OK: MethodId = id(10, 41);
pub(crate) const CONNECTION_CLOSE: MethodId = id(10, 50);
pub(crate) const CONNECTION_CLOSE_OK: MethodId = id(10, 51);
pub(crate) const CONNECTION_BLOCKED: MethodId = id(10, 60);
pub(crate) const CONNECTION_UNBLOCKED: MethodId = id(10, 61);
pub(crate) const CHANNEL_OPEN: MethodId = id(20, 10);
pub(crate) const CHANNEL_OPEN_OK: MethodId = id(20, 11);
pub(crate) const CHANNEL_FLOW: MethodId = id(20, 20);
pub(crate) const CHANNEL_FLOW_OK: MethodId = id(20, 21);
pub(crate) const CHANNEL_CLOSE: MethodId = id(20, 40);
pub(crate) const CHANNEL_CLOSE_OK: MethodId = id(20, 41);
pub(crate) const EXCHANGE_DECLARE: MethodId = id(40, 10);
pub(crate) const EXCHANGE_DECLARE_OK: MethodId = id(40, 11);
pub(crate) const EXCHANGE_DELETE: MethodId = id(40, 20);
pub(crate) const EXCHANGE_DELETE_OK: MethodId = id(40, 21);
pub(crate) const EXCHANGE_BIND: MethodId = id(40, 30);
pub(crate) const EXCHANGE_BIND_OK: MethodId = id(40, 31);
pub(crate) const QUEUE_DECLARE: MethodId = id(50, 10);
pub(crate) const QUEUE_DECLARE_OK: MethodId = id(50, 11);
pub(crate) const QUEUE_BIND: MethodId = id(50, 20);
pub(crate) const QUEUE_BIND_OK: MethodId = id(50, 21);
pub(crate) const QUEUE_PURGE: MethodId = id(50, 30);
pub(crate) const QUEUE_PURGE_OK: MethodId = id(50, 31);
pub(crate) const QUEUE_DELETE: MethodId = id(50, 40);
pub(crate) const QUEUE_DELETE_OK: MethodId = id(50, 41);
pub(crate) const QOS: MethodId = id(60, 10);
pub(crate) const QOS_OK: MethodId = id(60, 11);
pub(crate) const CONSUME: MethodId = id(60, 20);
pub(crate) const CONSUME_OK: MethodId = id(60, 21);
pub(crate) const CANCEL: MethodId = id(60, 30);
pub(crate) const CANCEL_OK: MethodId = id(60, 31);
pub(crate) const PUBLISH: MethodId = id(60, 40);
pub(crate) const RETURN: MethodId = id(60, 50);
pub(crate) const DELIVER: MethodId = id(60, 60);
pub(crate) const ACK: MethodId = id(60, 80);
pub(crate) const REJECT: MethodId = id(60, 90);
pub(crate) const NACK: MethodId = id(60, 120);
pub(crate) const CONFIRM_SELECT: MethodId = id(85, 10);
pub(crate) const CONFIRM_SELECT_OK: MethodId = id(85, 11);

/// The name of the method that `answer` answers.
pub(crate) const fn question(answer: MethodId) -> &'static str {
    match answer {
        CHANNEL_OPEN_OK => "channel.open",
        CHANNEL_CLOSE_OK => "channel.close",
        EXCHANGE_DECLARE_OK => "exchange.declare",
        EXCHANGE_DELETE_OK => "exchange.delete",
        EXCHANGE_BIND_OK => "exchange.bind",
        QUEUE_DECLARE_OK => "queue.declare",
        QUEUE_BIND_OK => "queue.bind",
        QUEUE_PURGE_OK => "queue.purge",
        QUEUE_DELETE_OK => "queue.delete",
        QOS_OK => "basic.qos",
        CONSUME_OK => "basic.consume",
        CANCEL_OK => "basic.cancel",
        CONFIRM_SELECT_OK => "confirm.select",
        _ => "a method",
    }
}

/// The reason a broker gives when it closes a channel or a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloseReason {
    pub(crate) code: u16,
    pub(crate) text: String,
    /// The method that was refused, 0 if none was.
    pub(crate) method: MethodId,
}

/// An operator closes the connection or shuts the broker down (specification §1.2).
const CONNECTION_FORCED: u16 = 320;

impl CloseReason {
    /// Whether what the client has sent may be the cause, so that sending it again may have the same answer.
    pub(crate) fn is_error(&self) -> bool {
        self.code >= 400 && self.code != CONNECTION_FORCED
    }
}

/// A method from the broker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming<'a> {
    Start {
        server_properties: FieldTable<'a>,
        mechanisms: &'a [u8],
    },
    Secure,
    Tune {
        channel_max: u16,
        frame_max: u32,
        heartbeat: u16,
    },
    ConnectionClose(CloseReason),
    ConnectionCloseOk,
    Blocked {
        reason: Cow<'a, str>,
    },
    Unblocked,
    Flow {
        active: bool,
    },
    ChannelClose(CloseReason),
    ChannelCloseOk,
    Deliver {
        tag: u64,
        redelivered: bool,
        /// Where the exchange's name starts in the payload; the routing key follows it.
        exchange_at: usize,
    },
    Return {
        code: u16,
        text: Cow<'a, str>,
        exchange: Cow<'a, str>,
        routing_key: Cow<'a, str>,
    },
    Ack {
        tag: u64,
        multiple: bool,
    },
    Nack {
        tag: u64,
        multiple: bool,
    },
    /// The broker ended a consumer, usually because its queue is gone.
    Cancel {
        no_wait: bool,
        consumer_tag: Cow<'a, str>,
    },
    /// The answer to something this client asked for.
    Reply(MethodId, Reply),
}

/// The contents of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Done,
    Queue {
        name: String,
        messages: u32,
        consumers: u32,
    },
    Count(u32),
}

impl<'a> Incoming<'a> {
    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let method = reader.u32()?;
        let r = &mut reader;
        Ok(match method {
            DELIVER => decode_deliver(payload, r)?,
            ACK => Self::Ack {
                tag: r.u64()?,
                multiple: r.u8()? & 1 != 0,
            },
            NACK => Self::Nack {
                tag: r.u64()?,
                multiple: r.u8()? & 1 != 0,
            },
            RETURN => Self::Return {
                code: r.u16()?,
                text: r.short_string()?,
                exchange: r.short_string()?,
                routing_key: r.short_string()?,
            },
            CANCEL => Self::Cancel {
                consumer_tag: r.short_string()?,
                no_wait: r.u8()? & 1 != 0,
            },
            CONNECTION_START => decode_start(r)?,
            CONNECTION_SECURE => Self::Secure,
            CONNECTION_TUNE => Self::Tune {
                channel_max: r.u16()?,
                frame_max: r.u32()?,
                heartbeat: r.u16()?,
            },
            CONNECTION_CLOSE => Self::ConnectionClose(decode_close(r)?),
            CONNECTION_CLOSE_OK => Self::ConnectionCloseOk,
            CONNECTION_BLOCKED => Self::Blocked {
                reason: r.short_string()?,
            },
            CONNECTION_UNBLOCKED => Self::Unblocked,
            CHANNEL_FLOW => Self::Flow {
                active: r.u8()? & 1 != 0,
            },
            CHANNEL_CLOSE => Self::ChannelClose(decode_close(r)?),
            CHANNEL_CLOSE_OK => Self::ChannelCloseOk,
            QUEUE_DECLARE_OK => Self::Reply(
                method,
                Reply::Queue {
                    name: r.short_string()?.into_owned(),
                    messages: r.u32()?,
                    consumers: r.u32()?,
                },
            ),
            QUEUE_PURGE_OK | QUEUE_DELETE_OK => Self::Reply(method, Reply::Count(r.u32()?)),
            CONNECTION_OPEN_OK | CHANNEL_OPEN_OK | CHANNEL_FLOW_OK | EXCHANGE_DECLARE_OK
            | EXCHANGE_DELETE_OK | EXCHANGE_BIND_OK | QUEUE_BIND_OK | QOS_OK | CONSUME_OK
            | CANCEL_OK | CONFIRM_SELECT_OK => Self::Reply(method, Reply::Done),
            _ => return Err(Malformed("method id")),
        })
    }
}

fn decode_deliver<'a>(payload: &'a [u8], r: &mut Reader<'a>) -> Result<Incoming<'a>, Malformed> {
    r.short_bytes()?;
    let tag = r.u64()?;
    let redelivered = r.u8()? & 1 != 0;
    let exchange_at = payload.len() - r.remaining();
    r.short_bytes()?;
    r.short_bytes()?;
    Ok(Incoming::Deliver {
        tag,
        redelivered,
        exchange_at,
    })
}

fn decode_start<'a>(r: &mut Reader<'a>) -> Result<Incoming<'a>, Malformed> {
    r.u16()?;
    let server_properties = FieldTable::decode(r)?;
    Ok(Incoming::Start {
        server_properties,
        mechanisms: r.long_bytes()?,
    })
}

fn decode_close(r: &mut Reader<'_>) -> Result<CloseReason, Malformed> {
    Ok(CloseReason {
        code: r.u16()?,
        text: r.short_string()?.into_owned(),
        method: r.u32()?,
    })
}

/// Appends a method frame whose arguments `args` writes.
pub(crate) fn put(
    out: &mut Vec<u8>,
    channel: u16,
    method: MethodId,
    args: impl FnOnce(&mut Vec<u8>),
) {
    frame::put(out, METHOD, channel, |out| {
        put_u32(out, method);
        args(out);
    });
}

fn encoded(channel: u16, method: MethodId, args: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    put(&mut out, channel, method, args);
    out
}

pub(crate) fn start_ok(properties: &FieldTable<'_>, mechanism: &str, response: &[u8]) -> Vec<u8> {
    encoded(0, CONNECTION_START_OK, |out| {
        properties.encode(out);
        put_short(out, mechanism);
        put_long(out, response);
        put_short(out, "en_US");
    })
}

pub(crate) fn tune_ok(channel_max: u16, frame_max: u32, heartbeat: u16) -> Vec<u8> {
    encoded(0, CONNECTION_TUNE_OK, |out| {
        put_u16(out, channel_max);
        put_u32(out, frame_max);
        put_u16(out, heartbeat);
    })
}

pub(crate) fn connection_open(vhost: &str) -> Vec<u8> {
    encoded(0, CONNECTION_OPEN, |out| {
        put_short(out, vhost);
        out.extend_from_slice(&[0, 0]);
    })
}

pub(crate) fn close(channel: u16, code: u16, text: &str) -> Vec<u8> {
    let method = if channel == 0 {
        CONNECTION_CLOSE
    } else {
        CHANNEL_CLOSE
    };
    encoded(channel, method, |out| {
        put_u16(out, code);
        put_short(out, text);
        put_u32(out, 0);
    })
}

/// Methods without arguments, or whose only arguments are reserved.
pub(crate) fn bare(channel: u16, method: MethodId) -> Vec<u8> {
    encoded(channel, method, |out| match method {
        CHANNEL_OPEN | CONFIRM_SELECT => out.push(0),
        _ => {}
    })
}

pub(crate) fn flow_ok(channel: u16, active: bool) -> Vec<u8> {
    encoded(channel, CHANNEL_FLOW_OK, |out| out.push(u8::from(active)))
}

/// Bits packed into one octet, first argument lowest (specification §4.2.5.2).
fn bits<const N: usize>(flags: [bool; N]) -> u8 {
    flags
        .iter()
        .rev()
        .fold(0, |octet, flag| (octet << 1) | u8::from(*flag))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeFlags {
    pub(crate) passive: bool,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) internal: bool,
}

pub(crate) fn exchange_declare(
    channel: u16,
    name: &str,
    kind: &str,
    flags: ExchangeFlags,
    arguments: &FieldTable<'_>,
) -> Vec<u8> {
    encoded(channel, EXCHANGE_DECLARE, |out| {
        put_u16(out, 0);
        put_short(out, name);
        put_short(out, kind);
        out.push(bits([
            flags.passive,
            flags.durable,
            flags.auto_delete,
            flags.internal,
            false,
        ]));
        arguments.encode(out);
    })
}

pub(crate) fn exchange_delete(channel: u16, name: &str, if_unused: bool) -> Vec<u8> {
    encoded(channel, EXCHANGE_DELETE, |out| {
        put_u16(out, 0);
        put_short(out, name);
        out.push(bits([if_unused, false]));
    })
}

/// `method` is [`EXCHANGE_BIND`] or [`QUEUE_BIND`]: their arguments have the same form.
pub(crate) fn bind(
    channel: u16,
    method: MethodId,
    destination: &str,
    source: &str,
    routing_key: &str,
    arguments: &FieldTable<'_>,
) -> Vec<u8> {
    encoded(channel, method, |out| {
        put_u16(out, 0);
        put_short(out, destination);
        put_short(out, source);
        put_short(out, routing_key);
        out.push(0);
        arguments.encode(out);
    })
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueFlags {
    pub(crate) passive: bool,
    pub(crate) durable: bool,
    pub(crate) exclusive: bool,
    pub(crate) auto_delete: bool,
}

pub(crate) fn queue_declare(
    channel: u16,
    name: &str,
    flags: QueueFlags,
    arguments: &FieldTable<'_>,
) -> Vec<u8> {
    encoded(channel, QUEUE_DECLARE, |out| {
        put_u16(out, 0);
        put_short(out, name);
        out.push(bits([
            flags.passive,
            flags.durable,
            flags.exclusive,
            flags.auto_delete,
            false,
        ]));
        arguments.encode(out);
    })
}

pub(crate) fn queue_purge(channel: u16, name: &str) -> Vec<u8> {
    encoded(channel, QUEUE_PURGE, |out| {
        put_u16(out, 0);
        put_short(out, name);
        out.push(0);
    })
}

pub(crate) fn queue_delete(channel: u16, name: &str, if_unused: bool, if_empty: bool) -> Vec<u8> {
    encoded(channel, QUEUE_DELETE, |out| {
        put_u16(out, 0);
        put_short(out, name);
        out.push(bits([if_unused, if_empty, false]));
    })
}

pub(crate) fn qos(channel: u16, prefetch: u16) -> Vec<u8> {
    encoded(channel, QOS, |out| {
        put_u32(out, 0);
        put_u16(out, prefetch);
        out.push(0);
    })
}

pub(crate) fn consume(
    channel: u16,
    queue: &str,
    consumer_tag: &str,
    exclusive: bool,
    arguments: &FieldTable<'_>,
) -> Vec<u8> {
    encoded(channel, CONSUME, |out| {
        put_u16(out, 0);
        put_short(out, queue);
        put_short(out, consumer_tag);
        out.push(bits([false, false, exclusive, false]));
        arguments.encode(out);
    })
}

pub(crate) fn cancel(channel: u16, consumer_tag: &str) -> Vec<u8> {
    encoded(channel, CANCEL, |out| {
        put_short(out, consumer_tag);
        out.push(0);
    })
}

pub(crate) fn cancel_ok(channel: u16, consumer_tag: &str) -> Vec<u8> {
    encoded(channel, CANCEL_OK, |out| put_short(out, consumer_tag))
}

pub(crate) fn put_publish(
    out: &mut Vec<u8>,
    channel: u16,
    exchange: &str,
    routing_key: &str,
    mandatory: bool,
) {
    put(out, channel, PUBLISH, |out| {
        put_u16(out, 0);
        put_short(out, exchange);
        put_short(out, routing_key);
        out.push(bits([mandatory, false]));
    });
}

pub(crate) fn put_ack(out: &mut Vec<u8>, channel: u16, tag: u64, multiple: bool) {
    put(out, channel, ACK, |out| {
        put_u64(out, tag);
        out.push(u8::from(multiple));
    });
}

pub(crate) fn put_reject(out: &mut Vec<u8>, channel: u16, tag: u64, requeue: bool) {
    put(out, channel, REJECT, |out| {
        put_u64(out, tag);
        out.push(u8::from(requeue));
    });
}
