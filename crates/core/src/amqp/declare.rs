//! Declarations, each on a channel that may be lost: a refusal (404, 406) closes it and hurts nothing else.

use super::Error;
use super::codec::method::{self, ExchangeFlags, QueueFlags, Reply};
use super::session::Session;
use super::topology::{Binding, Destination, Exchange, Queue, QueueState};

pub(super) async fn exchange(
    session: &Session,
    channel: u16,
    exchange: &Exchange,
) -> Result<(), Error> {
    let Exchange {
        name,
        kind,
        arguments,
        ..
    } = exchange;
    let flags = ExchangeFlags {
        passive: exchange.passive,
        durable: exchange.durable,
        auto_delete: exchange.auto_delete,
        internal: exchange.internal,
    };
    let frame = method::exchange_declare(channel, name, kind, flags, arguments);
    let object = || format!("declare exchange \"{name}\"");
    session
        .call(channel, frame, method::EXCHANGE_DECLARE_OK, object)
        .await
        .map(drop)
}

pub(super) async fn queue(
    session: &Session,
    channel: u16,
    queue: &Queue,
) -> Result<QueueState, Error> {
    let flags = QueueFlags {
        passive: queue.passive,
        durable: queue.durable,
        exclusive: queue.exclusive,
        auto_delete: queue.auto_delete,
    };
    let object = || format!("declare queue \"{}\"", queue.name);
    let frame = method::queue_declare(channel, &queue.name, flags, &queue.arguments);
    let reply = session
        .call(channel, frame, method::QUEUE_DECLARE_OK, object)
        .await?;
    match reply {
        Reply::Queue {
            name,
            messages,
            consumers,
        } => Ok(QueueState {
            name,
            messages,
            consumers,
        }),
        other => Err(Error::usage(format!("{}: answered by {other:?}", object()))),
    }
}

pub(super) async fn binding(
    session: &Session,
    channel: u16,
    binding: &Binding,
) -> Result<(), Error> {
    let (method, expected, what, destination) = match &binding.destination {
        Destination::Queue(queue) => (method::QUEUE_BIND, method::QUEUE_BIND_OK, "queue", queue),
        Destination::Exchange(exchange) => (
            method::EXCHANGE_BIND,
            method::EXCHANGE_BIND_OK,
            "exchange",
            exchange,
        ),
    };
    let Binding {
        source,
        routing_key,
        arguments,
        ..
    } = binding;
    let frame = method::bind(channel, method, destination, source, routing_key, arguments);
    let object = || {
        format!("bind {what} \"{destination}\" to exchange \"{source}\" with key \"{routing_key}\"")
    };
    session
        .call(channel, frame, expected, object)
        .await
        .map(drop)
}

/// How many messages were dropped.
pub(super) async fn purge_queue(session: &Session, channel: u16, name: &str) -> Result<u32, Error> {
    let frame = method::queue_purge(channel, name);
    let object = || format!("purge queue \"{name}\"");
    let reply = session.call(channel, frame, method::QUEUE_PURGE_OK, object);
    Ok(count(&reply.await?))
}

/// How many messages were dropped with it.
pub(super) async fn delete_queue(
    session: &Session,
    channel: u16,
    name: &str,
) -> Result<u32, Error> {
    let frame = method::queue_delete(channel, name, false, false);
    let object = || format!("delete queue \"{name}\"");
    let reply = session.call(channel, frame, method::QUEUE_DELETE_OK, object);
    Ok(count(&reply.await?))
}

pub(super) async fn delete_exchange(
    session: &Session,
    channel: u16,
    name: &str,
) -> Result<(), Error> {
    let frame = method::exchange_delete(channel, name, false);
    let object = || format!("delete exchange \"{name}\"");
    session
        .call(channel, frame, method::EXCHANGE_DELETE_OK, object)
        .await
        .map(drop)
}

fn count(reply: &Reply) -> u32 {
    match reply {
        Reply::Count(count) => *count,
        _ => 0,
    }
}
