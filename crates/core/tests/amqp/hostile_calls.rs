//! A broker that keeps the connection alive and does not do its part: it answers a method never, ignores the prefetch, asks for
//! answers it does not read, or cancels consumers without end.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use weft_core::amqp::{
    Config, Connection, ConsumeOptions, Consumer, Error, Event, FieldTable, PublisherOptions,
    Queue, Status, Topology,
};

use crate::fake_broker::{
    BASIC_CANCEL, BASIC_CONSUME, BASIC_PUBLISH, BASIC_QOS, CHANNEL_CLOSE, CHANNEL_OPEN,
    CONFIRM_SELECT, Method, QUEUE_BIND, QUEUE_DECLARE, frame, method,
};
use crate::scripted_broker::{Broker, RPC_TIMEOUT, Reaction};
use crate::support::{eventually, to, wait_for_event, within};

/// An error of the broker (specification §1.2).
const INTERNAL_ERROR: u16 = 541;
/// The answer of an operator, whatever the client has sent.
const CONNECTION_FORCED: u16 = 320;

fn queue() -> Topology {
    Topology {
        queues: vec![Queue::new("q")],
        ..Topology::default()
    }
}

/// One of everything that the broker answers.
async fn converse(connection: &Connection) -> Result<(), Error> {
    connection.declare(queue()).await?;
    connection.publisher(PublisherOptions::default()).await?;
    let consumer = connection.consume("q", ConsumeOptions::default()).await?;
    consumer.close().await
}

async fn consume(connection: &Connection, prefetch: u16) -> Consumer {
    let options = ConsumeOptions {
        prefetch,
        ..ConsumeOptions::default()
    };
    within(connection.consume("q", options)).await.unwrap()
}

async fn disconnected(connection: &Connection) -> String {
    let lost = |event: &Event| matches!(event, Event::Disconnected { .. });
    match wait_for_event(connection, lost).await {
        Event::Disconnected { error } => error.to_string(),
        _ => unreachable!(),
    }
}

async fn recovered(connection: &Connection) {
    let back = |event: &Event| matches!(event, Event::Recovered { .. });
    wait_for_event(connection, back).await;
}

#[tokio::test]
async fn a_method_that_is_never_answered_fails_with_its_name_and_the_connection_recovers() {
    let cases = [
        (CHANNEL_OPEN, "did not answer channel.open within"),
        (CHANNEL_CLOSE, "did not answer channel.close within"),
        (QUEUE_DECLARE, "declare queue \"q\": 127.0.0.1:"),
        (QUEUE_DECLARE, "did not answer queue.declare within"),
        (BASIC_QOS, "did not answer basic.qos within"),
        (BASIC_CONSUME, "did not answer basic.consume within"),
        (CONFIRM_SELECT, "did not answer confirm.select within"),
    ];
    let mut running = JoinSet::new();
    for (mute, said) in cases {
        running.spawn(fails_and_recovers(mute, said));
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}

async fn fails_and_recovers(mute: Method, said: &str) {
    let broker = Broker {
        mute: Some((mute, 0..1)),
        ..Broker::default()
    };
    let (_, config) = broker.start().await;
    let address = config.hosts[0].to_string();
    let connection = within(Connection::connect(config)).await.unwrap();
    let error = within(converse(&connection)).await.unwrap_err();

    assert!(matches!(error, Error::Unanswered { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(said), "{text}");
    assert!(text.contains(&address), "{text}");
    assert!(text.contains("within 3 s (rpc_timeout)"), "{text}");
    let lost = disconnected(&connection).await;
    assert!(
        lost.contains("was not answered within 3 s (rpc_timeout)"),
        "{lost}"
    );
    within(converse(&connection)).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_bind_that_is_never_answered_names_what_was_to_be_bound() {
    let broker = Broker {
        mute: Some((QUEUE_BIND, 0..1)),
        ..Broker::default()
    };
    let (_, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let topology = Topology {
        bindings: vec![weft_core::amqp::Binding::queue("events", "q", "order.*")],
        ..Topology::default()
    };
    let error = within(connection.declare(topology)).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("bind queue \"q\" to exchange \"events\" with key \"order.*\": 127.0.0.1:"),
        "{text}"
    );
    assert!(text.contains("did not answer queue.bind"), "{text}");
}

#[tokio::test]
async fn a_cancel_that_is_never_answered_ends_the_consumer_all_the_same() {
    let broker = Broker {
        mute: Some((BASIC_CANCEL, 0..1)),
        ..Broker::default()
    };
    let (broker, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let consumer = consume(&connection, 10).await;
    within(consumer.cancel()).await.unwrap();
    recovered(&connection).await;

    assert!(within(consumer.next_batch(10)).await.unwrap().is_empty());
    assert_eq!(broker.count(BASIC_CONSUME), 1);
}

#[tokio::test]
async fn a_recovery_that_is_never_answered_is_given_up_and_the_next_one_brings_everything_back() {
    let broker = Broker {
        mute: Some((BASIC_CONSUME, 1..3)),
        ..Broker::default()
    };
    let (broker, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let consumer = consume(&connection, 10).await;
    assert_eq!(within(consumer.next_batch(10)).await.unwrap().len(), 1);
    broker.cut.notify_one();
    recovered(&connection).await;

    assert_eq!(broker.connections.load(Ordering::SeqCst), 4);
    assert_eq!(within(consumer.next_batch(10)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_time_during_which_a_connection_is_blocked_does_not_count() {
    let broker = Broker {
        mute: Some((QUEUE_DECLARE, 0..1)),
        after: Some((
            QUEUE_DECLARE,
            Box::new(|_, channel, say| {
                let _ = say.send(method(0, (10, 60), b"\x0dlow on memory"));
                let say = say.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(RPC_TIMEOUT * 2).await;
                    let _ = say.send(method(0, (10, 61), &[]));
                    let declared = b"\x01q\0\0\0\0\0\0\0\0";
                    let _ = say.send(method(channel, (50, 11), declared));
                });
            }),
        )),
        ..Broker::default()
    };
    let (broker, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    within(connection.declare(queue())).await.unwrap();

    assert_eq!(connection.status(), Status::Connected);
    assert_eq!(broker.connections.load(Ordering::SeqCst), 1);
}

/// Deliveries of empty messages with these tags.
fn deliveries(channel: u16, tags: std::ops::RangeInclusive<u64>) -> Vec<u8> {
    let header = frame(2, channel, &[&[0, 60, 0, 0][..], &[0; 10]].concat());
    let mut out = Vec::new();
    for tag in tags {
        let deliver = [&b"\x01t"[..], &tag.to_be_bytes(), b"\0\0\x01q"].concat();
        out.extend(method(channel, (60, 60), &deliver));
        out.extend(&header);
    }
    out
}

#[tokio::test]
async fn a_broker_that_ignores_the_prefetch_loses_the_connection_and_not_our_memory() {
    let flood = |_, channel, say: &UnboundedSender<Vec<u8>>| {
        // One more came with the answer to basic.consume.
        let _ = say.send(deliveries(channel, 2..=2 + (64 << 10)));
    };
    let broker = Broker {
        after: Some((BASIC_CONSUME, Box::new(flood))),
        ..Broker::default()
    };
    let (_, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let consumer = consume(&connection, 0).await;
    eventually("all is delivered", async || {
        consumer.queued() == (64 << 10) + 2
    })
    .await;
    drop(consumer);
    // Within twice the prefetch and 65,536 with a prefetch of 1: exactly what is allowed.
    let consumer = consume(&connection, 1).await;
    eventually("what is allowed is delivered", async || {
        consumer.queued() == (64 << 10) + 2
    })
    .await;
    assert_eq!(connection.status(), Status::Connected);
    drop(consumer);
    connection.close().await;

    let flood = |_, channel, say: &UnboundedSender<Vec<u8>>| {
        let _ = say.send(deliveries(channel, 2..=3 + (64 << 10)));
    };
    let broker = Broker {
        after: Some((BASIC_CONSUME, Box::new(flood))),
        ..Broker::default()
    };
    let (_, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let consumer = within(connection.consume(
        "q",
        ConsumeOptions {
            prefetch: 1,
            ..ConsumeOptions::default()
        },
    ))
    .await;
    let lost = disconnected(&connection).await;
    assert!(lost.contains("prefetch"), "{lost}");
    drop(consumer);
    connection.close().await;
}

/// Closes the channel the first time; the second time it does what `then` says.
fn closes_once(then: impl Fn(u16) -> Vec<u8> + Send + Sync + 'static) -> Reaction {
    let count = AtomicUsize::new(0);
    Box::new(move |_, channel, say| {
        let _ = say.send(match count.fetch_add(1, Ordering::SeqCst) {
            0 => method(channel, CHANNEL_CLOSE, b"\x01\x96\x06broken\0\x3c\0\x14"),
            _ => then(channel),
        });
    })
}

#[tokio::test]
async fn a_consumer_whose_channel_is_closed_together_with_the_answer_is_started_again() {
    let broker = Broker {
        after: Some((
            BASIC_CONSUME,
            closes_once(|channel| deliveries(channel, 1..=1)),
        )),
        ..Broker::default()
    };
    let (broker, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let consumer = consume(&connection, 10).await;
    let closed = |event: &Event| matches!(event, Event::ChannelClosed { .. });
    wait_for_event(&connection, closed).await;

    assert_eq!(within(consumer.next_batch(10)).await.unwrap().len(), 1);
    assert_eq!(broker.count(BASIC_CONSUME), 2);
    assert_eq!(broker.connections.load(Ordering::SeqCst), 1);
    connection.close().await;
}

#[tokio::test]
async fn a_publisher_whose_channel_is_closed_together_with_the_answer_gets_another_one() {
    let broker = Broker {
        after: Some((CONFIRM_SELECT, closes_once(|_| Vec::new()))),
        ..Broker::default()
    };
    let (broker, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let publisher = within(connection.publisher(PublisherOptions::default()));
    let publisher = publisher.await.unwrap();
    let closed = |event: &Event| matches!(event, Event::ChannelClosed { .. });
    wait_for_event(&connection, closed).await;

    let confirm = within(publisher.publish(&to("q", b"hello"))).await.unwrap();
    within(confirm.unwrap()).await.unwrap();
    assert_eq!(broker.connections.load(Ordering::SeqCst), 1);
    connection.close().await;
}

/// `basic.cancel` for a consumer with a tag of 255 bytes; each asks for an answer of as many.
fn cancels(channel: u16, count: usize, no_wait: bool) -> Vec<u8> {
    let arguments = [&[255][..], &[b't'; 255], &[u8::from(no_wait)]].concat();
    method(channel, (60, 30), &arguments).repeat(count)
}

#[tokio::test]
async fn a_broker_that_asks_for_answers_and_reads_none_loses_the_connection() {
    let flood = |_, channel, say: &UnboundedSender<Vec<u8>>| {
        // 16 MiB may wait here; the sockets take a few more.
        for _ in 0..100 {
            let _ = say.send(cancels(channel, 1_500, false));
        }
    };
    let broker = Broker {
        after: Some((BASIC_CONSUME, Box::new(flood))),
        deaf_after: Some(BASIC_CONSUME),
        ..Broker::default()
    };
    let (_, config) = broker.start().await;
    let config = Config {
        // Neither of the two other limits ends it.
        rpc_timeout: Duration::ZERO,
        ..config
    };
    let connection = within(Connection::connect(config)).await.unwrap();
    let options = ConsumeOptions::default();
    let consumer = within(connection.consume("q", options)).await;
    let lost = disconnected(&connection).await;
    assert!(
        lost.contains("the broker sends requests and does not read the answers"),
        "{lost}"
    );
    drop(consumer);
    connection.close().await;
}

#[tokio::test]
async fn a_flood_of_cancels_is_answered_by_one_attempt_to_consume_at_a_time() {
    const CANCELS: usize = 20_000;
    let flooded = Arc::new(AtomicUsize::new(0));
    let once = Arc::clone(&flooded);
    let flood = move |_, channel, say: &UnboundedSender<Vec<u8>>| {
        if once.fetch_add(1, Ordering::SeqCst) == 0 {
            let _ = say.send(cancels(channel, CANCELS, true));
        }
    };
    let broker = Broker {
        after: Some((BASIC_CONSUME, Box::new(flood))),
        ..Broker::default()
    };
    let (broker, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let consumer = consume(&connection, 10).await;
    eventually("it consumes again", async || {
        broker.count(BASIC_CONSUME) > 1
    })
    .await;
    // An answered call on the same channel: whatever the flood has caused, the broker has seen.
    within(consumer.flush()).await.unwrap();
    let consumes = broker.count(BASIC_CONSUME);
    assert!(consumes < CANCELS / 100, "{consumes}");
    assert_eq!(broker.connections.load(Ordering::SeqCst), 1);
    connection.close().await;
}

/// A broker that closes connections with these numbers on a method.
async fn closing_on(asked: Method, connections: Range<usize>, code: u16) -> (Arc<Broker>, Config) {
    let closed = connections.clone();
    let close: Reaction = Box::new(move |number, _, say| {
        if closed.contains(&number) {
            let text = b"\x0eINTERNAL_ERROR";
            let arguments = [&code.to_be_bytes()[..], text, &[0; 4]].concat();
            let _ = say.send(method(0, (10, 50), &arguments));
        }
    });
    let broker = Broker {
        mute: Some((asked, connections)),
        after: Some((asked, close)),
        ..Broker::default()
    };
    broker.start().await
}

fn is_closed_by_broker(error: &Error, on: &str) -> bool {
    matches!(error, Error::ClosedByBroker { object, code: INTERNAL_ERROR, text } if object.contains(on) && text == "INTERNAL_ERROR")
}

#[tokio::test]
async fn a_message_on_which_the_broker_closes_every_connection_is_given_up() {
    let (broker, config) = closing_on(BASIC_PUBLISH, 0..usize::MAX, INTERNAL_ERROR).await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let publisher = within(connection.publisher(PublisherOptions::default()))
        .await
        .unwrap();
    let confirm = within(publisher.publish(&to("q", b"poison"))).await;
    let failed = within(confirm.unwrap().unwrap()).await.unwrap_err();
    assert!(
        is_closed_by_broker(&failed, "routing key \"q\""),
        "{failed}"
    );
    assert_eq!(broker.count(BASIC_PUBLISH), 3);
    within(connection.declare(queue())).await.unwrap();
    assert_eq!(broker.count(BASIC_PUBLISH), 3);
}

#[tokio::test]
async fn a_message_survives_an_operator_who_closes_many_connections() {
    let (broker, config) = closing_on(BASIC_PUBLISH, 0..4, CONNECTION_FORCED).await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let publisher = within(connection.publisher(PublisherOptions::default()))
        .await
        .unwrap();
    let confirm = within(publisher.publish(&to("q", b"resent"))).await;
    within(confirm.unwrap().unwrap()).await.unwrap();
    assert_eq!(broker.count(BASIC_PUBLISH), 5);
}

#[tokio::test]
async fn a_message_that_is_given_up_after_its_confirm_was_dropped_fails_the_next_flush() {
    let (broker, config) = closing_on(BASIC_PUBLISH, 0..usize::MAX, INTERNAL_ERROR).await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let publisher = within(connection.publisher(PublisherOptions::default()))
        .await
        .unwrap();
    drop(
        within(publisher.publish(&to("q", b"poison")))
            .await
            .unwrap(),
    );
    let failed = within(publisher.flush()).await.unwrap_err();
    assert!(
        is_closed_by_broker(&failed, "routing key \"q\""),
        "{failed}"
    );
    assert_eq!(broker.count(BASIC_PUBLISH), 3);
}

#[tokio::test]
async fn a_declaration_on_which_the_broker_closes_every_connection_is_given_up() {
    let (broker, config) = closing_on(QUEUE_DECLARE, 0..usize::MAX, INTERNAL_ERROR).await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let failed = within(connection.declare(queue())).await.unwrap_err();
    assert!(
        is_closed_by_broker(&failed, "declare queue \"q\""),
        "{failed}"
    );
    assert_eq!(broker.count(QUEUE_DECLARE), 3);
    within(connection.publisher(PublisherOptions::default()))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_consumer_on_which_the_broker_closes_every_connection_is_given_up() {
    let (broker, config) = closing_on(BASIC_CONSUME, 0..usize::MAX, INTERNAL_ERROR).await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let started = within(connection.consume("q", ConsumeOptions::default())).await;
    let failed = started.err().unwrap();
    assert!(
        is_closed_by_broker(&failed, "consume queue \"q\""),
        "{failed}"
    );
    assert_eq!(broker.count(BASIC_CONSUME), 3);
}

#[tokio::test]
async fn a_declaration_on_which_the_broker_closes_every_recovery_is_forgotten() {
    let (broker, config) = closing_on(QUEUE_DECLARE, 1..usize::MAX, INTERNAL_ERROR).await;
    let connection = within(Connection::connect(config)).await.unwrap();
    within(connection.declare(queue())).await.unwrap();
    broker.cut.notify_one();
    let failed = wait_for_event(&connection, |event| {
        matches!(event, Event::RestoreFailed { .. })
    })
    .await;
    assert!(
        matches!(&failed, Event::RestoreFailed { error } if is_closed_by_broker(error, "declare queue \"q\"")),
        "{failed:?}"
    );
    recovered(&connection).await;
    assert_eq!(broker.count(QUEUE_DECLARE), 1 + 3);
}

#[tokio::test]
async fn a_consumer_on_which_the_broker_closes_every_recovery_ends() {
    let (broker, config) = closing_on(BASIC_CONSUME, 1..usize::MAX, INTERNAL_ERROR).await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let consumer = consume(&connection, 1).await;
    within(consumer.next_batch(1)).await.unwrap();
    broker.cut.notify_one();
    let failed = within(consumer.next_batch(1)).await.unwrap_err();
    assert!(
        matches!(&failed, Error::ConsumerCancelled { reason, .. } if reason.contains("INTERNAL_ERROR (AMQP 541)")),
        "{failed}"
    );
    recovered(&connection).await;
    assert_eq!(broker.count(BASIC_CONSUME), 1 + 3);
}

#[tokio::test]
async fn arguments_that_do_not_fit_a_frame_are_refused_before_they_are_sent() {
    let (broker, config) = Broker::default().start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let mut queue = Queue::new("q");
    queue.arguments = FieldTable::new().with("x", "v".repeat(5_000));
    let topology = Topology {
        queues: vec![queue],
        ..Topology::default()
    };
    let refused = within(connection.declare(topology)).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Usage { message } if message.contains("queue \"q\"") && message.contains("frames of 4096")),
        "{refused}"
    );
    assert_eq!(broker.count(QUEUE_DECLARE), 0);
}
