use std::collections::BTreeSet;

use weft_core::amqp::{
    Binding, Error, Exchange, Field, FieldTable, Message, Properties, PublisherOptions, Queue,
    Topology,
};

use crate::support::{
    connect, consumer, declare_queue, number, plain, publish_numbers, publisher, ready_messages,
    to, unique, wait_for_messages, within,
};

#[tokio::test]
async fn a_message_arrives_as_it_was_published() {
    let connection = connect().await;
    let (exchange, inner, queue) = (unique("ex"), unique("inner"), unique("q"));
    let topology = Topology {
        exchanges: vec![
            Exchange::new(&exchange, "topic"),
            Exchange::new(&inner, "fanout"),
        ],
        queues: vec![Queue::new(&queue)],
        bindings: vec![
            Binding::exchange(&exchange, &inner, "orders.*"),
            Binding::queue(&inner, &queue, ""),
        ],
    };
    connection.declare(topology).await.unwrap();
    // RabbitMQ 4 delivers the fields sorted by name.
    let headers = FieldTable::new()
        .with("bytes", Field::Bytes(vec![0, 255].into()))
        .with("count", 7i64)
        .with("list", Field::Array(vec![true.into(), Field::Void]))
        .with("text", "grüße");
    let properties = Properties {
        content_type: Some("application/json".into()),
        headers,
        delivery_mode: Some(2),
        message_id: Some("m-1".into()),
        timestamp: Some(1_700_000_000),
        kind: Some("Order".into()),
        ..Properties::default()
    };
    let publisher = publisher(&connection, 10).await;
    let message = Message {
        exchange: &exchange,
        routing_key: "orders.new",
        properties: &properties,
        body: b"{}",
        mandatory: true,
    };
    within(publisher.try_publish(&message).unwrap().unwrap())
        .await
        .unwrap();

    let consumer = consumer(&connection, &queue, 10).await;
    let batch = within(consumer.next_batch(10)).await.unwrap();
    let delivery = &batch[0];
    assert_eq!(delivery.properties().unwrap(), properties);
    assert_eq!(
        (delivery.exchange(), delivery.routing_key()),
        (exchange.as_str().into(), "orders.new".into())
    );
    assert_eq!(
        (delivery.body(), delivery.redelivered()),
        (&b"{}"[..], false)
    );
    assert!(consumer.ack(delivery.tag()));
    within(consumer.close()).await.unwrap();
    wait_for_messages(&connection, &queue, 0).await;
    connection.delete_queue(&queue).await.unwrap();
    connection.delete_exchange(&exchange).await.unwrap();
    connection.delete_exchange(&inner).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn every_delivery_is_acknowledged_exactly_once_in_whatever_order() {
    const COUNT: u32 = 5_000;
    let connection = connect().await;
    let queue = declare_queue(&connection, "acks").await;
    publish_numbers(&publisher(&connection, 500).await, &queue, 0..COUNT).await;
    let consumer = consumer(&connection, &queue, 50).await;
    let mut seen = BTreeSet::new();
    let mut held = Vec::new();
    while seen.len() < COUNT as usize {
        let batch = within(consumer.next_batch(20)).await.unwrap();
        for delivery in batch {
            assert!(!delivery.redelivered() && seen.insert(number(&delivery)));
            held.push(delivery.tag());
        }
        // Newest first, and every tenth left behind for long.
        while held.len() > 15 {
            let index = if held.len() % 2 == 0 {
                held.len() - 1
            } else {
                7
            };
            let tag = held.swap_remove(index);
            assert!(consumer.ack(tag));
            assert!(!consumer.ack(tag));
        }
    }
    held.into_iter().for_each(|tag| assert!(consumer.ack(tag)));
    within(consumer.flush()).await.unwrap();
    within(consumer.close()).await.unwrap();
    wait_for_messages(&connection, &queue, 0).await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_slow_oldest_delivery_does_not_hold_the_prefetch() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "slow").await;
    publish_numbers(&publisher(&connection, 500).await, &queue, 0..200).await;
    let consumer = consumer(&connection, &queue, 10).await;
    let mut oldest = None;
    let mut seen = 0;
    while seen < 200 {
        for delivery in within(consumer.next_batch(10)).await.unwrap() {
            seen += 1;
            match oldest {
                None => oldest = Some(delivery.tag()),
                Some(_) => assert!(consumer.ack(delivery.tag())),
            }
        }
    }
    within(consumer.close()).await.unwrap();
    wait_for_messages(&connection, &queue, 1).await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_nacked_delivery_comes_again_or_is_dropped() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "nack").await;
    publish_numbers(&publisher(&connection, 10).await, &queue, 0..1).await;
    let consumer = consumer(&connection, &queue, 10).await;
    let first = within(consumer.next_batch(1)).await.unwrap();
    assert!(consumer.nack(first[0].tag(), true));
    let again = within(consumer.next_batch(1)).await.unwrap();
    assert!(again[0].redelivered() && number(&again[0]) == 0);
    assert!(consumer.reject(again[0].tag()));
    within(consumer.close()).await.unwrap();
    wait_for_messages(&connection, &queue, 0).await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn cancelled_consumers_keep_what_is_here_and_dropped_ones_give_it_back() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "cancel").await;
    let publisher = publisher(&connection, 100).await;
    publish_numbers(&publisher, &queue, 0..10).await;
    let taker = consumer(&connection, &queue, 4).await;
    let first = within(taker.next_batch(1)).await.unwrap();
    within(taker.cancel()).await.unwrap();
    assert!(taker.ack(first[0].tag()));
    let mut rest = 0;
    loop {
        let batch = within(taker.next_batch(10)).await.unwrap();
        if batch.is_empty() {
            break;
        }
        rest += batch.len();
    }
    assert_eq!(rest, 3);
    within(taker.flush()).await.unwrap();
    drop(taker);
    wait_for_messages(&connection, &queue, 9).await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn the_window_bounds_what_is_unconfirmed() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "window").await;
    let publisher = publisher(&connection, 3).await;
    let mut confirms = Vec::new();
    let full = loop {
        match publisher.try_publish(&to(&queue, b"x")) {
            Ok(confirm) => confirms.push(confirm.unwrap()),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::Full { window: 3, .. }), "{full}");
    assert!(publisher.unconfirmed() <= 3);
    within(publisher.ready()).await.unwrap();
    for confirm in confirms {
        within(confirm).await.unwrap();
    }
    for _ in 0..50 {
        drop(within(publisher.publish(&to(&queue, b"x"))).await.unwrap());
        assert!(publisher.unconfirmed() <= 3);
    }
    within(publisher.wait_for_confirms()).await.unwrap();
    assert!(ready_messages(&connection, &queue).await >= 53);
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_dispatcher_wakes_every_waiting_confirm() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "dispatch").await;
    let publisher = publisher(&connection, 100).await;
    let dispatcher = tokio::spawn(publisher.dispatcher());
    let mut tasks = Vec::new();
    for _ in 0..500 {
        let confirm = within(publisher.publish(&to(&queue, b"x"))).await.unwrap();
        tasks.push(tokio::spawn(confirm.unwrap()));
    }
    for task in tasks {
        within(task).await.unwrap().unwrap();
    }
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
    within(dispatcher).await.unwrap();
}

#[tokio::test]
async fn an_unroutable_mandatory_message_fails_alone() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "mandatory").await;
    let publisher = publisher(&connection, 100).await;
    let nowhere = unique("nowhere");
    let mut confirms = Vec::new();
    for number in 0..20 {
        let target = if number == 7 { &nowhere } else { &queue };
        confirms.push(
            publisher
                .try_publish(&to(target, &[number]))
                .unwrap()
                .unwrap(),
        );
    }
    for (number, confirm) in confirms.into_iter().enumerate() {
        match within(confirm).await {
            Ok(()) => assert_ne!(number, 7),
            Err(Error::Unroutable {
                routing_key, code, ..
            }) => {
                assert_eq!(
                    (number, routing_key.as_str(), code),
                    (7, nowhere.as_str(), 312)
                );
            }
            Err(other) => panic!("{other}"),
        }
    }
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_full_queue_refuses_with_a_nack() {
    let connection = connect().await;
    let name = unique("full");
    let mut queue = Queue::new(&name);
    queue.arguments = FieldTable::new()
        .with("x-max-length", 1)
        .with("x-overflow", "reject-publish");
    connection
        .declare(Topology {
            queues: vec![queue],
            ..Topology::default()
        })
        .await
        .unwrap();
    let publisher = publisher(&connection, 100).await;
    let mut refused = 0;
    for _ in 0..20 {
        let confirm = publisher.try_publish(&to(&name, b"x")).unwrap().unwrap();
        match within(confirm).await {
            Ok(()) => {}
            Err(Error::NotAccepted { routing_key, .. }) if routing_key == name => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0);
    connection.delete_queue(&name).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_missing_exchange_fails_its_messages_and_the_publisher_goes_on() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "missing").await;
    let publisher = publisher(&connection, 100).await;
    let exchange = unique("missing");
    let lost = Message {
        exchange: &exchange,
        ..to("key", b"x")
    };
    let before = publisher.try_publish(&to(&queue, b"1")).unwrap().unwrap();
    let failing = publisher.try_publish(&lost).unwrap().unwrap();
    let after = publisher.try_publish(&to(&queue, b"2")).unwrap().unwrap();
    let error = within(failing).await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused { code: 404, text, .. } if text.contains(&exchange)),
        "{error}"
    );
    within(before).await.unwrap();
    within(after).await.unwrap();
    assert!(ready_messages(&connection, &queue).await >= 2);
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn ten_megabytes_travel_both_ways() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "large").await;
    let body: Vec<u8> = (0..10_000_000u32).map(|i| (i >> 3) as u8).collect();
    let publisher = publisher(&connection, 10).await;
    within(publisher.try_publish(&to(&queue, &body)).unwrap().unwrap())
        .await
        .unwrap();
    let consumer = consumer(&connection, &queue, 1).await;
    let batch = within(consumer.next_batch(1)).await.unwrap();
    assert!(batch[0].body() == body);
    assert!(consumer.ack(batch[0].tag()));
    within(consumer.close()).await.unwrap();
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_publisher_without_confirms_waits_at_the_high_water_mark_and_flushes() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "plain").await;
    let options = PublisherOptions {
        confirm: false,
        window: 0,
    };
    let publisher = within(connection.publisher(options)).await.unwrap();
    let body = vec![1; 10_000];
    for _ in 0..1_000 {
        assert!(
            within(publisher.publish(&to(&queue, &body)))
                .await
                .unwrap()
                .is_none()
        );
    }
    within(publisher.flush()).await.unwrap();
    wait_for_messages(&connection, &queue, 1_000).await;
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn messages_that_amqp_cannot_encode_are_refused_before_they_are_sent() {
    let connection = connect().await;
    let publisher = publisher(&connection, 10).await;
    let long = "k".repeat(256);
    assert!(matches!(
        publisher.try_publish(&to(&long, b"")),
        Err(Error::Usage { .. })
    ));
    let headers = FieldTable::new().with("h", "x".repeat(200_000));
    let properties = Properties {
        headers,
        ..Properties::default()
    };
    let message = Message {
        properties: &properties,
        ..to("q", b"")
    };
    assert!(matches!(
        publisher.try_publish(&message),
        Err(Error::Usage { .. })
    ));
    assert_eq!(publisher.unconfirmed(), 0);
    let named = connection.consume(&long, Default::default()).await;
    assert!(matches!(named.err(), Some(Error::Usage { .. })));
    connection.close().await;
}

#[tokio::test]
async fn a_refused_declaration_names_its_object_and_hurts_nothing_else() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "declared").await;
    let publisher = publisher(&connection, 10).await;
    let other = Queue {
        durable: true,
        ..Queue::new(&queue)
    };
    let topology = Topology {
        queues: vec![other],
        ..Topology::default()
    };
    let error = within(connection.declare(topology)).await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused { code: 406, .. }) && error.to_string().contains(&queue),
        "{error}"
    );
    let missing = unique("missing");
    let error = within(connection.queue_state(&missing)).await.unwrap_err();
    assert!(matches!(error, Error::Refused { code: 404, .. }));
    let error = within(connection.consume(&missing, Default::default()))
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains(&missing), "{error}");
    within(publisher.try_publish(&to(&queue, b"x")).unwrap().unwrap())
        .await
        .unwrap();
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn a_deleted_queue_ends_its_consumer_with_a_clear_error() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "deleted").await;
    let consumer = consumer(&connection, &queue, 10).await;
    connection.delete_queue(&queue).await.unwrap();
    let error = within(consumer.next_batch(1)).await.unwrap_err();
    assert!(
        matches!(&error, Error::ConsumerCancelled { queue: named, .. } if *named == queue),
        "{error}"
    );
    connection.close().await;
}

#[tokio::test]
async fn closing_sends_what_was_published_and_acknowledged() {
    let connection = connect().await;
    let queue = declare_queue(&connection, "closing").await;
    let options = PublisherOptions {
        confirm: false,
        window: 0,
    };
    let publisher = connection.publisher(options).await.unwrap();
    for _ in 0..500 {
        assert!(
            publisher
                .try_publish(&Message {
                    properties: plain(),
                    ..to(&queue, b"x")
                })
                .unwrap()
                .is_none()
        );
    }
    within(connection.close()).await;
    let second = connect().await;
    wait_for_messages(&second, &queue, 500).await;
    let consumer = consumer(&second, &queue, 500).await;
    let mut left = 500;
    while left > 0 {
        for delivery in within(consumer.next_batch(500)).await.unwrap() {
            consumer.ack(delivery.tag());
            left -= 1;
        }
    }
    within(second.close()).await;
    let third = connect().await;
    assert_eq!(within(third.delete_queue(&queue)).await.unwrap(), 0);
    third.close().await;
}

#[tokio::test]
async fn handles_that_are_dropped_still_send_what_was_published() {
    let watching = connect().await;
    let queue = declare_queue(&watching, "dropped").await;
    let connection = connect().await;
    let confirming = publisher(&connection, 1_000).await;
    let options = PublisherOptions {
        confirm: false,
        window: 0,
    };
    let plain = connection.publisher(options).await.unwrap();
    for _ in 0..300 {
        drop(confirming.try_publish(&to(&queue, b"x")).unwrap());
        assert!(plain.try_publish(&to(&queue, b"x")).unwrap().is_none());
    }
    drop((confirming, plain, connection));
    wait_for_messages(&watching, &queue, 600).await;
    watching.delete_queue(&queue).await.unwrap();
    watching.close().await;
}
