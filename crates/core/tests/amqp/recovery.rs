use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use weft_core::amqp::{
    Binding, Error, Event, Exchange, Message, PublisherOptions, Queue, Status, Topology,
};

use crate::support::{
    Proxy, connect, consumer, declare_queue, number, publish_numbers, publisher, to, unique,
    wait_for_event, wait_for_messages, within,
};

fn recovered(event: &Event) -> bool {
    matches!(event, Event::Recovered { .. })
}

#[tokio::test]
async fn a_cut_connection_comes_back_with_its_consumers_and_stale_tags_settle_nothing() {
    let proxy = Proxy::start().await;
    let connection = proxy.connect().await;
    let queue = declare_queue(&connection, "cut").await;
    let publisher = publisher(&connection, 100).await;
    publish_numbers(&publisher, &queue, 0..20).await;
    let consumer = consumer(&connection, &queue, 5).await;
    let held = within(consumer.next_batch(1)).await.unwrap();
    proxy.cut();
    wait_for_event(&connection, |event| {
        matches!(event, Event::Disconnected { .. })
    })
    .await;
    wait_for_event(&connection, recovered).await;
    assert_eq!(connection.status(), Status::Connected);
    assert!(!consumer.ack(held[0].tag()));

    let mut seen = BTreeSet::new();
    while seen.len() < 20 {
        let batch = within(consumer.next_batch(100)).await.unwrap();
        // The prefetch is restored too.
        assert!(batch.len() <= 5);
        for delivery in batch {
            assert!(seen.insert(number(&delivery)) && consumer.ack(delivery.tag()));
        }
    }
    within(consumer.close()).await.unwrap();
    wait_for_messages(&connection, &queue, 0).await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn nothing_confirmed_or_pending_is_lost_over_many_cuts() {
    const COUNT: u32 = 4_000;
    let proxy = Proxy::start().await;
    let connection = proxy.connect().await;
    let direct = connect().await;
    let queue = declare_queue(&direct, "cuts").await;
    let publisher = publisher(&connection, 50).await;
    let publishing = async {
        for number in 0..COUNT {
            let body = number.to_be_bytes();
            drop(publisher.publish(&to(&queue, &body)).await.unwrap());
            if number % 400 == 399 {
                proxy.cut();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        publisher.wait_for_confirms().await.unwrap();
    };
    within(publishing).await;
    let consumer = consumer(&direct, &queue, 0).await;
    let mut seen = BTreeSet::new();
    while seen.len() < COUNT as usize {
        for delivery in within(consumer.next_batch(1_000)).await.unwrap() {
            seen.insert(number(&delivery));
            consumer.ack(delivery.tag());
        }
    }
    direct.delete_queue(&queue).await.unwrap();
    direct.close().await;
    connection.close().await;
}

#[tokio::test]
async fn consumers_cut_again_and_again_settle_everything() {
    const COUNT: u32 = 3_000;
    let proxy = Proxy::start().await;
    let connection = proxy.connect().await;
    let direct = connect().await;
    let queue = declare_queue(&direct, "cuts").await;
    publish_numbers(&publisher(&direct, 500).await, &queue, 0..COUNT).await;
    let consumer = consumer(&connection, &queue, 50).await;
    let mut seen = BTreeSet::new();
    let mut next_cut = 300;
    while seen.len() < COUNT as usize {
        for delivery in within(consumer.next_batch(50)).await.unwrap() {
            seen.insert(number(&delivery));
            consumer.ack(delivery.tag());
        }
        if seen.len() > next_cut {
            next_cut += 300;
            proxy.cut();
        }
    }
    // Messages that were acknowledged in the moment of a cut come again.
    within(async {
        loop {
            if let Ok(batch) =
                tokio::time::timeout(Duration::from_millis(300), consumer.next_batch(50)).await
            {
                batch.unwrap().iter().for_each(|delivery| {
                    consumer.ack(delivery.tag());
                });
            } else if consumer.flush().await.is_ok() {
                break;
            }
        }
    })
    .await;
    within(consumer.close()).await.unwrap();
    wait_for_messages(&direct, &queue, 0).await;
    direct.delete_queue(&queue).await.unwrap();
    direct.close().await;
    connection.close().await;
}

#[tokio::test]
async fn topology_of_the_connection_is_restored_past_a_failing_declaration() {
    let proxy = Proxy::start().await;
    let connection = proxy.connect().await;
    let direct = connect().await;
    let (exchange, clashing) = (unique("ex"), unique("clash"));
    let mut temporary = Queue::new("");
    (temporary.exclusive, temporary.durable) = (true, false);
    let mut clash = Queue::new(&clashing);
    clash.auto_delete = true;
    let topology = Topology {
        exchanges: vec![Exchange {
            auto_delete: true,
            durable: false,
            ..Exchange::new(&exchange, "direct")
        }],
        queues: vec![clash, temporary],
        bindings: vec![],
    };
    let queues = connection.declare(topology).await.unwrap();
    let name = queues[1].name.clone();
    let bindings = vec![Binding::queue(&exchange, &name, "key")];
    connection
        .declare(Topology {
            bindings,
            ..Topology::default()
        })
        .await
        .unwrap();
    let consumer = consumer(&connection, &name, 10).await;

    proxy.refuse(true);
    proxy.cut();
    wait_for_event(&connection, |event| {
        matches!(event, Event::ReconnectFailed { .. })
    })
    .await;
    assert!(matches!(
        connection.status(),
        Status::Connecting {
            last_error: Some(_),
            ..
        }
    ));
    // Meanwhile another client declares one of the queues with other properties.
    direct.delete_queue(&clashing).await.unwrap();
    let other = Topology {
        queues: vec![Queue::new(&clashing)],
        ..Topology::default()
    };
    direct.declare(other).await.unwrap();
    proxy.refuse(false);

    let failed = wait_for_event(&connection, |event| {
        matches!(event, Event::RestoreFailed { .. })
    })
    .await;
    assert!(
        matches!(&failed, Event::RestoreFailed { error: Error::Refused { object, .. } } if object.contains(&clashing))
    );
    wait_for_event(&connection, recovered).await;
    let publisher = publisher(&connection, 10).await;
    let message = Message {
        exchange: &exchange,
        ..to("key", b"back")
    };
    within(publisher.try_publish(&message).unwrap().unwrap())
        .await
        .unwrap();
    let batch = within(consumer.next_batch(1)).await.unwrap();
    assert_eq!(batch[0].body(), b"back");
    direct.delete_queue(&clashing).await.unwrap();
    direct.close().await;
    connection.close().await;
}

#[tokio::test]
async fn messages_published_while_the_broker_is_away_arrive_when_it_is_back() {
    let proxy = Proxy::start().await;
    let connection = proxy.connect().await;
    let queue = declare_queue(&connection, "away").await;
    let confirming = publisher(&connection, 100).await;
    let options = PublisherOptions {
        confirm: false,
        window: 0,
    };
    let plain = within(connection.publisher(options)).await.unwrap();
    proxy.refuse(true);
    proxy.cut();
    wait_for_event(&connection, |event| {
        matches!(event, Event::Disconnected { .. })
    })
    .await;
    let mut confirms = Vec::new();
    for _ in 0..100 {
        confirms.push(
            confirming
                .try_publish(&to(&queue, b"confirmed"))
                .unwrap()
                .unwrap(),
        );
        assert!(plain.try_publish(&to(&queue, b"plain")).unwrap().is_none());
    }
    assert!(matches!(
        confirming.try_publish(&to(&queue, b"x")),
        Err(Error::Full { .. })
    ));
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.refuse(false);
    let begun = Instant::now();
    for confirm in confirms {
        within(confirm).await.unwrap();
    }
    // The longest pause between two attempts is 2 s.
    assert!(begun.elapsed() < Duration::from_secs(30));
    within(plain.flush()).await.unwrap();
    wait_for_messages(&connection, &queue, 200).await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn closing_while_the_broker_is_away_does_not_wait_for_it() {
    let proxy = Proxy::start().await;
    let connection = proxy.connect().await;
    let publisher = publisher(&connection, 10).await;
    proxy.refuse(true);
    proxy.cut();
    wait_for_event(&connection, |event| {
        matches!(event, Event::Disconnected { .. })
    })
    .await;
    let confirm = publisher
        .try_publish(&to("anything", b"x"))
        .unwrap()
        .unwrap();
    within(connection.close()).await;
    assert!(matches!(within(confirm).await, Err(Error::Closed { .. })));
}

#[tokio::test]
async fn a_publisher_that_waits_for_room_continues_after_a_cut() {
    let proxy = Proxy::start().await;
    let connection = proxy.connect().await;
    let queue = declare_queue(&connection, "room").await;
    let options = PublisherOptions {
        confirm: false,
        window: 0,
    };
    let publisher = within(connection.publisher(options)).await.unwrap();
    let body = vec![1; 100_000];
    for _ in 0..10 {
        while publisher.try_publish(&to(&queue, &body)).is_ok() {}
        let waiting = publisher.ready();
        proxy.cut();
        within(waiting).await.unwrap();
        // The messages that are sent again after the cut may take the room first.
        within(async {
            while publisher.try_publish(&to(&queue, &body)).is_err() {
                publisher.ready().await.unwrap();
            }
        })
        .await;
    }
    within(publisher.flush()).await.unwrap();
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}
