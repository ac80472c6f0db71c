//! Every public future is dropped at each of its polls. The connection has three channels, so one that is leaked shows soon.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use weft_core::amqp::{
    Config, Connection, ConsumeOptions, Consumer, Error, Event, Exchange, Publisher,
    PublisherOptions, Queue, Status, Topology,
};

use crate::cancellation_tests::{Ended, drop_at_every_poll};
use crate::fake_broker::{CONFIRM_SELECT, method};
use crate::scripted_broker::Broker;
use crate::support::{
    Proxy, config, connect, consumer, declare_queue, eventually, number, publisher, ready_messages,
    to, unique, wait_for_messages, within,
};

const CHANNELS: u16 = 3;

async fn narrow() -> Connection {
    let config = Config {
        channel_max: CHANNELS,
        ..config()
    };
    within(Connection::connect(config)).await.unwrap()
}

/// All channels can be taken at the same time, and nothing has happened to the connection.
async fn assert_intact(connection: &Connection, queue: &str) {
    eventually("every channel is free", async || {
        let state = || connection.queue_state(queue);
        let (one, two, three) = tokio::join!(state(), state(), state());
        one.is_ok() && two.is_ok() && three.is_ok()
    })
    .await;
    assert_undisturbed(connection).await;
}

async fn assert_undisturbed(connection: &Connection) {
    let event = tokio::time::timeout(Duration::ZERO, connection.next_event()).await;
    assert!(event.is_err(), "{event:?}");
    assert_eq!(connection.status(), Status::Connected);
}

async fn consumers(connection: &Connection, queue: &str) -> u32 {
    within(connection.queue_state(queue))
        .await
        .map_or(u32::MAX, |state| state.consumers)
}

#[tokio::test]
async fn a_dropped_connect_leaves_no_connection() {
    let proxy = Proxy::start().await;
    drop_at_every_poll(
        async || (),
        async |()| Connection::connect(proxy.config()).await.unwrap(),
        async |(), ended| {
            if let Ended::Completed(connection) = ended {
                within(connection.close()).await;
            }
            eventually("the connection is closed", async || {
                proxy.open_connections() == 0
            })
            .await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_dropped_declaration_gives_its_channel_back() {
    let connection = narrow().await;
    let queue = declare_queue(&connection, "declared").await;
    drop_at_every_poll(
        async || (),
        async |()| {
            let queues = vec![Queue {
                passive: true,
                ..Queue::new(&queue)
            }];
            let topology = Topology {
                queues,
                ..Topology::default()
            };
            connection.declare(topology).await.unwrap();
            connection.queue_state(&queue).await.unwrap();
            connection.purge_queue(&queue).await.unwrap();
        },
        async |(), _| assert_intact(&connection, &queue).await,
    )
    .await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_dropped_opening_of_a_publisher_or_consumer_gives_its_channel_back() {
    let connection = narrow().await;
    let queue = declare_queue(&connection, "opened").await;
    drop_at_every_poll(
        async || (),
        async |()| {
            let publisher = connection.publisher(PublisherOptions::default()).await;
            let consumer = connection.consume(&queue, ConsumeOptions::default()).await;
            (publisher.unwrap(), consumer.unwrap())
        },
        async |(), ended| {
            drop(ended);
            assert_intact(&connection, &queue).await;
            eventually("nobody consumes", async || {
                consumers(&connection, &queue).await == 0
            })
            .await;
        },
    )
    .await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_dropped_publish_sends_its_message_once_or_not_at_all() {
    let connection = narrow().await;
    let queue = declare_queue(&connection, "published").await;
    let consumer = consumer(&connection, &queue, 0).await;
    // A window of one: the second message has to wait for room.
    let publisher = publisher(&connection, 1).await;
    let mut run = 0u32;
    drop_at_every_poll(
        async || {
            run += 1;
            run
        },
        async |run| {
            for message in [*run * 2, *run * 2 + 1] {
                let body = message.to_be_bytes();
                let confirm = publisher.publish(&to(&queue, &body)).await.unwrap();
                if message % 2 == 1 {
                    confirm.unwrap().await.unwrap();
                }
            }
            publisher.flush().await.unwrap();
        },
        async |run, ended| {
            within(publisher.wait_for_confirms()).await.unwrap();
            assert_eq!(publisher.unconfirmed(), 0);
            let mark = u32::MAX.to_be_bytes();
            drop(within(publisher.publish(&to(&queue, &mark))).await.unwrap());
            let mut seen = Vec::new();
            while seen.last() != Some(&u32::MAX) {
                for delivery in within(consumer.next_batch(10)).await.unwrap() {
                    seen.push(number(&delivery));
                    assert!(consumer.ack(delivery.tag()));
                }
            }
            seen.pop();
            let own = [run * 2, run * 2 + 1];
            assert!(own.starts_with(&seen), "{seen:?}");
            if matches!(ended, Ended::Completed(())) {
                assert_eq!(seen, own);
            }
            assert_undisturbed(&connection).await;
        },
    )
    .await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_dropped_wait_for_deliveries_loses_none() {
    let connection = narrow().await;
    let queue = declare_queue(&connection, "awaited").await;
    let consumer = self::consumer(&connection, &queue, 10).await;
    let publisher = publisher(&connection, 10).await;
    let (mut sent, mut taken) = (0u32, BTreeSet::new());
    drop_at_every_poll(
        async || {
            sent += 1;
            let body = sent.to_be_bytes();
            drop(within(publisher.publish(&to(&queue, &body))).await.unwrap());
        },
        async |()| {
            let batch = consumer.next_batch(1).await.unwrap();
            assert!(consumer.ack(batch[0].tag()));
            consumer.flush().await.unwrap();
            number(&batch[0])
        },
        async |(), ended| {
            if let Ended::Completed(number) = ended {
                assert!(taken.insert(number));
            }
            assert_undisturbed(&connection).await;
        },
    )
    .await;
    within(publisher.flush()).await.unwrap();
    // Deliveries that a closed consumer gives back, because they were still on their way, are consumed again.
    let mut consumer = consumer;
    loop {
        let last = consumer.next_batch(100);
        let unsettled = tokio::time::timeout(Duration::from_millis(50), last).await;
        for delivery in unsettled.ok().into_iter().flat_map(Result::unwrap) {
            assert!(taken.insert(number(&delivery)), "delivered twice");
            assert!(consumer.ack(delivery.tag()));
        }
        within(consumer.close()).await.unwrap();
        if ready_messages(&connection, &queue).await == 0 {
            break;
        }
        consumer = self::consumer(&connection, &queue, 10).await;
    }
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

async fn consuming(connection: &Connection, queue: &str) -> Option<Consumer> {
    let options = ConsumeOptions::default();
    Some(within(connection.consume(queue, options)).await.unwrap())
}

#[tokio::test]
async fn a_dropped_cancel_ends_the_consumer_all_the_same() {
    let connection = narrow().await;
    let queue = declare_queue(&connection, "cancelled").await;
    drop_at_every_poll(
        async || consuming(&connection, &queue).await,
        async |consumer| consumer.as_ref().unwrap().cancel().await.unwrap(),
        async |consumer, ended| {
            let never_polled = matches!(ended, Ended::Dropped(point) if point.polls == 0);
            let consumer = consumer.unwrap();
            if !never_polled {
                assert!(within(consumer.next_batch(1)).await.unwrap().is_empty());
                eventually("nobody consumes", async || {
                    consumers(&connection, &queue).await == 0
                })
                .await;
            }
            drop(consumer);
            assert_intact(&connection, &queue).await;
        },
    )
    .await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_dropped_close_of_a_consumer_closes_its_channel_once() {
    let connection = narrow().await;
    let queue = declare_queue(&connection, "closed").await;
    drop_at_every_poll(
        async || consuming(&connection, &queue).await,
        async |consumer| consumer.take().unwrap().close().await.unwrap(),
        async |consumer, _| {
            drop(consumer);
            eventually("nobody consumes", async || {
                consumers(&connection, &queue).await == 0
            })
            .await;
            assert_intact(&connection, &queue).await;
        },
    )
    .await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_dropped_close_of_the_connection_closes_it_in_the_background() {
    let observer = connect().await;
    let queue = declare_queue(&observer, "left").await;
    drop_at_every_poll(
        async || {
            let connection = narrow().await;
            let publisher: Publisher = publisher(&connection, 10).await;
            let sent = publisher.try_publish(&to(&queue, b"last")).unwrap();
            (connection, publisher, sent)
        },
        async |(connection, _, _)| connection.close().await,
        async |(connection, publisher, sent), ended| {
            if !matches!(ended, Ended::Dropped(point) if point.polls == 0) {
                within(sent.unwrap()).await.unwrap();
                eventually("the connection is closed", async || {
                    matches!(connection.status(), Status::Closed { .. })
                })
                .await;
                assert!(publisher.try_publish(&to(&queue, b"late")).is_err());
            }
        },
    )
    .await;
    observer.delete_queue(&queue).await.unwrap();
    observer.close().await;
}

/// Whether passive declarations find them. Other errors count as an answer that is still to come.
async fn exists(connection: &Connection, exchange: Option<&str>, queue: Option<&str>) -> bool {
    let topology = Topology {
        exchanges: exchange
            .map(|name| Exchange {
                passive: true,
                ..Exchange::new(name, "fanout")
            })
            .into_iter()
            .collect(),
        queues: queue
            .map(|name| Queue {
                passive: true,
                ..Queue::new(name)
            })
            .into_iter()
            .collect(),
        ..Topology::default()
    };
    match within(connection.declare(topology)).await {
        Ok(_) => true,
        Err(error) => !matches!(error, Error::Refused { code: 404, .. }),
    }
}

#[tokio::test]
async fn a_dropped_deletion_is_carried_out_and_gives_its_channel_back() {
    let connection = narrow().await;
    let kept = declare_queue(&connection, "kept").await;
    let (queue, exchange) = (unique("deleted"), unique("deleted"));
    drop_at_every_poll(
        async || {
            let topology = Topology {
                exchanges: vec![Exchange::new(&exchange, "fanout")],
                queues: vec![Queue::new(&queue)],
                ..Topology::default()
            };
            within(connection.declare(topology)).await.unwrap();
            Cell::new(0)
        },
        async |begun| {
            begun.set(1);
            connection.delete_queue(&queue).await.unwrap();
            begun.set(2);
            connection.delete_exchange(&exchange).await.unwrap();
        },
        async |begun, _| {
            assert_intact(&connection, &kept).await;
            if begun.get() >= 1 {
                eventually("the queue is gone", async || {
                    !exists(&connection, None, Some(&queue)).await
                })
                .await;
            }
            if begun.get() >= 2 {
                eventually("the exchange is gone", async || {
                    !exists(&connection, Some(&exchange), None).await
                })
                .await;
            }
            // Deleting what does not exist succeeds.
            within(connection.delete_queue(&queue)).await.unwrap();
            within(connection.delete_exchange(&exchange)).await.unwrap();
            assert_undisturbed(&connection).await;
        },
    )
    .await;
    connection.delete_queue(&kept).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_dropped_wait_for_room_leaves_the_room_to_the_next() {
    let connection = narrow().await;
    let queue = declare_queue(&connection, "room").await;
    let publisher = publisher(&connection, 1).await;
    let mut sent = 0;
    let publish = || drop(publisher.try_publish(&to(&queue, b"one")).unwrap());
    drop_at_every_poll(
        async || publish(),
        async |()| publisher.ready().await.unwrap(),
        async |(), _| {
            within(publisher.ready()).await.unwrap();
            publish();
            within(publisher.wait_for_confirms()).await.unwrap();
            assert_eq!(publisher.unconfirmed(), 0);
            sent += 2;
            assert_undisturbed(&connection).await;
        },
    )
    .await;
    wait_for_messages(&connection, &queue, sent).await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_dropped_wait_for_confirms_leaves_a_failure_to_the_next() {
    let connection = narrow().await;
    let publisher = publisher(&connection, 10).await;
    let nowhere = unique("nowhere");
    drop_at_every_poll(
        async || {
            // The broker returns a mandatory message that no queue takes.
            drop(publisher.try_publish(&to(&nowhere, b"lost")).unwrap());
        },
        async |()| publisher.wait_for_confirms().await,
        async |(), ended| {
            let outcome = match ended {
                Ended::Completed(outcome) => outcome,
                Ended::Dropped(_) => within(publisher.wait_for_confirms()).await,
            };
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains(&nowhere), "{error}");
            assert_eq!(publisher.unconfirmed(), 0);
            within(publisher.wait_for_confirms()).await.unwrap();
            assert_undisturbed(&connection).await;
        },
    )
    .await;
    connection.close().await;
}

/// The broker blocks the connection for this reason: one event.
fn blocked(reason: u32) -> Vec<u8> {
    let reason = reason.to_string();
    let arguments = [&[reason.len() as u8][..], reason.as_bytes()].concat();
    method(0, (10, 60), &arguments)
}

#[tokio::test]
async fn a_dropped_wait_for_an_event_loses_none() {
    let said: Arc<Mutex<Option<UnboundedSender<Vec<u8>>>>> = Arc::default();
    let keep = {
        let said = Arc::clone(&said);
        move |_: usize, _: u16, say: &UnboundedSender<Vec<u8>>| {
            said.lock().unwrap().replace(say.clone());
        }
    };
    let broker = Broker {
        after: Some((CONFIRM_SELECT, Box::new(keep))),
        ..Broker::default()
    };
    let (_broker, config) = broker.start().await;
    let connection = within(Connection::connect(config)).await.unwrap();
    let _publisher = publisher(&connection, 1).await;
    let say = said.lock().unwrap().clone().unwrap();
    let (mut sent, mut seen) = (0, Vec::new());
    // The event comes before the wait, or during it.
    for is_before in [true, false] {
        let polls = drop_at_every_poll(
            async || {
                sent += 1;
                if is_before {
                    say.send(blocked(sent)).unwrap();
                    let reason = sent.to_string();
                    eventually("the connection is blocked", async || {
                        connection.status()
                            == Status::Blocked {
                                reason: reason.clone(),
                            }
                    })
                    .await;
                }
                (sent, Cell::new(is_before))
            },
            async |(number, is_sent)| {
                if !is_sent.replace(true) {
                    say.send(blocked(*number)).unwrap();
                }
                connection.next_event().await
            },
            async |(number, is_sent), ended| {
                if !is_sent.get() {
                    say.send(blocked(number)).unwrap();
                }
                if let Ended::Completed(event) = ended {
                    seen.push(event.unwrap());
                }
                while seen.len() < number as usize {
                    seen.push(within(connection.next_event()).await.unwrap());
                }
            },
        )
        .await;
        assert!(is_before || polls > 1, "{polls}");
    }
    let expected = (1..=sent).map(|number| Event::Blocked {
        reason: number.to_string(),
    });
    assert!(seen.iter().cloned().eq(expected), "{seen:?}");
    connection.close().await;
}

struct Counted;

impl Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

#[tokio::test]
async fn waits_that_are_dropped_again_and_again_leave_no_waker() {
    let connection = narrow().await;
    let queue = declare_queue(&connection, "idle").await;
    let consumer = consumer(&connection, &queue, 1).await;
    let task = Arc::new(Counted);
    for _ in 0..100 {
        let waker = Waker::from(Arc::clone(&task));
        let mut context = Context::from_waker(&waker);
        assert!(pin!(consumer.next_batch(1)).poll(&mut context).is_pending());
        assert!(
            pin!(connection.next_event())
                .poll(&mut context)
                .is_pending()
        );
    }
    assert_eq!(Arc::strong_count(&task), 1);
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

/// Stands for a bug: the I/O thread panics when it wakes it.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("on purpose, on the I/O thread");
    }
}

#[tokio::test]
async fn a_panic_of_the_io_thread_ends_every_wait_with_an_error_that_names_it() {
    let (connection, other) = (connect().await, connect().await);
    let queue = declare_queue(&other, "panic").await;
    let waiting_queue = declare_queue(&other, "waiting").await;
    let consumer = consumer(&connection, &queue, 1).await;
    let waiting = self::consumer(&connection, &waiting_queue, 1).await;
    let publisher = publisher(&connection, 10).await;
    let waker = Waker::from(Arc::new(Panics));
    let mut next = pin!(consumer.next_batch(1));
    let polled = next.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(matches!(polled, Poll::Pending));

    let trigger = self::publisher(&other, 1).await;
    drop(within(trigger.publish(&to(&queue, b"now"))).await.unwrap());
    let error = within(waiting.next_batch(1)).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("internal error: on purpose, on the I/O thread"),
        "{text}"
    );
    assert_eq!(
        connection.status(),
        Status::Closed {
            error: error.clone()
        }
    );
    assert_eq!(
        publisher.try_publish(&to(&queue, b"x")).err(),
        Some(error.clone())
    );
    assert_eq!(
        within(connection.queue_state(&queue)).await.err(),
        Some(error)
    );
    within(connection.close()).await;
    while within(connection.next_event()).await.is_some() {}
    // Connections beside it go on.
    other.delete_queue(&queue).await.unwrap();
    other.delete_queue(&waiting_queue).await.unwrap();
    other.close().await;
}
