//! Channels that the broker closes, and what becomes of their restart when the connection is lost or the owner goes away meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use weft_core::amqp::{
    Config, Connection, ConsumeOptions, Consumer, Error, Event, Publisher, PublisherOptions, Status,
};

use crate::fake_broker::{
    BASIC_CANCEL, BASIC_CONSUME, BASIC_PUBLISH, CHANNEL_CLOSE, CHANNEL_OPEN, CONFIRM_SELECT, method,
};
use crate::scripted_broker::{Broker, Reaction};
use crate::support::{eventually, to, wait_for_event, within};

/// Between two starts of a channel.
const RESTART_DELAY: Duration = Duration::from_millis(500);

/// Closes the channel on the connections that `on` selects.
fn closes(on: impl Fn(usize) -> bool + Send + Sync + 'static) -> Reaction {
    Box::new(move |connection, channel, say| {
        if on(connection) {
            close(channel, say);
        }
    })
}

/// Closes the channel the first time.
fn closes_once() -> Reaction {
    let has_closed = AtomicBool::new(false);
    Box::new(move |_, channel, say| {
        if !has_closed.swap(true, Ordering::SeqCst) {
            close(channel, say);
        }
    })
}

fn close(channel: u16, say: &UnboundedSender<Vec<u8>>) {
    let reason = b"\x01\x96\x06broken\0\x3c\0\x14";
    let _ = say.send(method(channel, CHANNEL_CLOSE, reason));
}

/// The broker cancels the consumer.
fn cancel(channel: u16, say: &UnboundedSender<Vec<u8>>) {
    let _ = say.send(method(channel, BASIC_CANCEL, b"\x01t\x01"));
}

async fn connect(broker: Broker) -> (Arc<Broker>, Connection) {
    let (broker, config) = broker.start().await;
    let config = Config {
        // No call fails because the machine is busy.
        rpc_timeout: Duration::ZERO,
        ..config
    };
    let connection = within(Connection::connect(config)).await.unwrap();
    (broker, connection)
}

async fn consume(connection: &Connection) -> Consumer {
    let consuming = connection.consume("q", ConsumeOptions::default());
    within(consuming).await.unwrap()
}

async fn publisher(connection: &Connection, confirm: bool) -> Publisher {
    let options = PublisherOptions {
        confirm,
        ..PublisherOptions::default()
    };
    within(connection.publisher(options)).await.unwrap()
}

async fn channel_closed(connection: &Connection) {
    let closed = |event: &Event| matches!(event, Event::ChannelClosed { .. });
    wait_for_event(connection, closed).await;
}

async fn recovered(connection: &Connection) {
    let back = |event: &Event| matches!(event, Event::Recovered { .. });
    wait_for_event(connection, back).await;
}

#[tokio::test]
async fn the_restart_of_a_consumer_ends_with_its_connection() {
    let (broker, connection) = connect(Broker {
        after: Some((BASIC_CONSUME, closes(|connection| connection == 0))),
        ..Broker::default()
    })
    .await;
    let consumer = consume(&connection).await;
    channel_closed(&connection).await;
    broker.cut.notify_one();
    recovered(&connection).await;

    let held = within(consumer.next_batch(10)).await.unwrap();
    // The restart that the first connection asked for is due.
    tokio::time::sleep(RESTART_DELAY * 3).await;
    assert!(consumer.ack(held[0].tag()));
    within(consumer.flush()).await.unwrap();
    assert_eq!(broker.count(BASIC_CONSUME), 2);
    assert_eq!(connection.status(), Status::Connected);
    connection.close().await;
}

#[tokio::test]
async fn a_consumer_that_the_broker_cancels_on_both_sides_of_a_reconnect_consumes_again() {
    let mut running = JoinSet::new();
    // The second cancel must come while the first is being answered: of several connections some are quick enough.
    for _ in 0..20 {
        running.spawn(consumes_again());
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}

async fn consumes_again() {
    let (broker, connection) = connect(Broker {
        after: Some((
            BASIC_CONSUME,
            Box::new(|_, channel, say| cancel(channel, say)),
        )),
        ..Broker::default()
    })
    .await;
    let consumer = consume(&connection).await;
    let cancelled = |event: &Event| matches!(event, Event::ConsumerCancelled { .. });
    wait_for_event(&connection, cancelled).await;
    broker.cut.notify_one();
    recovered(&connection).await;

    let before = broker.count(BASIC_CONSUME);
    within(async {
        while broker.count(BASIC_CONSUME) == before {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    })
    .await;
    assert_eq!(broker.connections.load(Ordering::SeqCst), 2);
    drop(consumer);
    connection.close().await;
}

#[tokio::test]
async fn a_consumer_cancelled_while_others_are_restored_is_cancelled_on_the_new_connection() {
    let (broker, connection) = connect(Broker {
        held: Some((1, 2, CHANNEL_OPEN)),
        ..Broker::default()
    })
    .await;
    let (first, second) = (consume(&connection).await, consume(&connection).await);
    broker.cut.notify_one();
    eventually("the first consumer is restored", async || {
        broker.count(BASIC_CONSUME) == 3
    })
    .await;
    within(first.cancel()).await.unwrap();
    broker.release.notify_one();
    recovered(&connection).await;

    eventually("the broker hears of it", async || {
        broker.count(BASIC_CANCEL) > 0
    })
    .await;
    drop((first, second));
    connection.close().await;
}

#[tokio::test]
async fn a_consumer_can_be_cancelled_while_its_channel_is_closed() {
    let (_, connection) = connect(Broker {
        after: Some((BASIC_CONSUME, closes(|_| true))),
        ..Broker::default()
    })
    .await;
    let consumer = consume(&connection).await;
    channel_closed(&connection).await;
    within(consumer.cancel()).await.unwrap();
    assert!(within(consumer.next_batch(10)).await.unwrap().is_empty());
    connection.close().await;
}

#[tokio::test]
async fn a_publisher_whose_channel_is_closed_each_time_is_opened_again_with_a_delay() {
    let begun = Instant::now();
    let (broker, connection) = connect(Broker {
        after: Some((CONFIRM_SELECT, closes(|_| true))),
        ..Broker::default()
    })
    .await;
    let publisher = publisher(&connection, true).await;
    eventually("it was opened five times", async || {
        broker.count(CHANNEL_OPEN) >= 5
    })
    .await;
    assert!(begun.elapsed() >= RESTART_DELAY * 4);
    drop(publisher);
    within(connection.close()).await;
}

#[tokio::test]
async fn the_restart_of_a_publisher_ends_with_its_connection() {
    let (broker, connection) = connect(Broker {
        after: Some((CONFIRM_SELECT, closes(|connection| connection == 0))),
        ..Broker::default()
    })
    .await;
    let publisher = publisher(&connection, true).await;
    channel_closed(&connection).await;
    broker.cut.notify_one();
    recovered(&connection).await;

    tokio::time::sleep(RESTART_DELAY * 3).await;
    let confirm = within(publisher.publish(&to("q", b"hello"))).await.unwrap();
    within(confirm.unwrap()).await.unwrap();
    assert_eq!(broker.connections.load(Ordering::SeqCst), 2);
    assert_eq!(connection.status(), Status::Connected);
    connection.close().await;
}

#[tokio::test]
async fn the_channel_of_a_publisher_dropped_before_its_restart_is_free_for_others() {
    let (broker, connection) = connect(Broker {
        after: Some((CONFIRM_SELECT, closes_once())),
        ..Broker::default()
    })
    .await;
    let publisher = publisher(&connection, true).await;
    channel_closed(&connection).await;
    drop(publisher);
    let next = self::publisher(&connection, true).await;
    // The restart that the first one asked for is due.
    tokio::time::sleep(RESTART_DELAY * 3).await;
    let confirm = within(next.publish(&to("q", b"hello"))).await.unwrap();
    within(confirm.unwrap()).await.unwrap();
    assert_eq!(broker.connections.load(Ordering::SeqCst), 1);
    connection.close().await;
}

/// A publisher without confirms whose channel the broker closes at the first message, and a second message that waits for the restart.
async fn waiting() -> (Arc<Broker>, Connection, Publisher) {
    let (broker, connection) = connect(Broker {
        after: Some((BASIC_PUBLISH, closes_once())),
        ..Broker::default()
    })
    .await;
    let publisher = publisher(&connection, false).await;
    publisher.try_publish(&to("q", b"refused")).unwrap();
    channel_closed(&connection).await;
    publisher.try_publish(&to("q", b"waits")).unwrap();
    (broker, connection, publisher)
}

#[tokio::test]
async fn a_flush_waits_for_messages_that_wait_for_a_channel() {
    let (broker, connection, publisher) = waiting().await;
    let refused = within(publisher.flush()).await.unwrap_err();
    assert!(
        matches!(refused, Error::Refused { code: 406, .. }),
        "{refused:?}"
    );
    assert_eq!(broker.count(BASIC_PUBLISH), 2);
    within(publisher.flush()).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn messages_that_wait_for_a_channel_are_sent_before_a_dropped_publisher_ends() {
    let (broker, connection, publisher) = waiting().await;
    drop(publisher);
    eventually("the publisher has ended", async || {
        broker.count(CHANNEL_CLOSE) > 0
    })
    .await;
    assert_eq!(broker.count(BASIC_PUBLISH), 2);
    assert_eq!(broker.connections.load(Ordering::SeqCst), 1);
    connection.close().await;
}

#[tokio::test]
async fn messages_that_wait_for_a_channel_are_sent_before_the_connection_closes() {
    let (broker, connection, _publisher) = waiting().await;
    within(connection.close()).await;
    assert_eq!(broker.count(BASIC_PUBLISH), 2);
}

#[tokio::test]
async fn messages_of_a_publisher_that_cannot_be_restored_fail() {
    let (broker, connection) = connect(Broker {
        mute: Some((CONFIRM_SELECT, 1..2)),
        after: Some((CONFIRM_SELECT, closes(|connection| connection == 1))),
        ..Broker::default()
    })
    .await;
    let publisher = publisher(&connection, true).await;
    broker.cut.notify_one();
    let lost = |event: &Event| matches!(event, Event::Disconnected { .. });
    wait_for_event(&connection, lost).await;
    let confirm = publisher.try_publish(&to("q", b"hello")).unwrap();
    let failed = within(confirm.unwrap()).await.unwrap_err();
    assert!(matches!(failed, Error::Refused { .. }), "{failed:?}");
    connection.close().await;
}

#[tokio::test]
async fn a_connection_that_is_blocked_while_it_is_restored_says_so() {
    let blocks = |connection: usize, _, say: &UnboundedSender<Vec<u8>>| {
        if connection == 1 {
            let _ = say.send(method(0, (10, 60), b"\x0dlow on memory"));
        }
    };
    let (broker, connection) = connect(Broker {
        after: Some((CONFIRM_SELECT, Box::new(blocks))),
        ..Broker::default()
    })
    .await;
    let _publisher = publisher(&connection, true).await;
    broker.cut.notify_one();
    recovered(&connection).await;
    let reason = "low on memory".to_owned();
    assert_eq!(connection.status(), Status::Blocked { reason });
}
