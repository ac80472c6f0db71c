use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use weft_core::amqp::{Config, ConnectFailure, Connection, Error, Host, PublisherOptions, Status};

use crate::support::{config, connect, consumer, declare_queue, publisher, to, variable, within};

async fn failure(config: Config) -> (ConnectFailure, String) {
    match within(Connection::connect(config)).await.err() {
        Some(Error::Connect {
            failure, message, ..
        }) => (failure, message),
        other => panic!("expected a failed connect, got {other:?}"),
    }
}

fn at(port: u16) -> Vec<Host> {
    let name = "127.0.0.1".into();
    vec![Host { name, port }]
}

#[tokio::test]
async fn a_connection_tells_its_state_and_closes() {
    let connection = connect().await;
    assert_eq!(connection.status(), Status::Connected);
    assert_eq!(connection.server().product, "RabbitMQ");
    within(connection.close()).await;
    within(connection.close()).await;
    assert!(matches!(connection.status(), Status::Closed { .. }));
    assert_eq!(within(connection.next_event()).await, None);
    let refused = within(connection.publisher(PublisherOptions::default())).await;
    assert!(matches!(refused.err(), Some(Error::Closed { .. })));
}

#[tokio::test]
async fn a_wrong_password_is_an_authentication_failure_that_does_not_repeat_it() {
    let password = "not-the-password".into();
    let (kind, message) = failure(Config {
        password,
        ..config()
    })
    .await;
    assert_eq!(kind, ConnectFailure::Authentication, "{message}");
    assert!(!message.contains("not-the-password"));
}

#[tokio::test]
async fn an_unknown_virtual_host_is_named() {
    let vhost = "weft-no-such-host".into();
    let (kind, message) = failure(Config { vhost, ..config() }).await;
    assert_eq!(kind, ConnectFailure::VirtualHost);
    assert!(message.contains("weft-no-such-host"), "{message}");
}

#[tokio::test]
async fn a_port_nobody_listens_on_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let (kind, message) = failure(Config {
        hosts: at(port),
        ..config()
    })
    .await;
    assert_eq!(kind, ConnectFailure::Refused, "{message}");
}

#[tokio::test]
async fn a_host_without_address_is_a_dns_failure() {
    let hosts = vec![Host {
        name: "weft.invalid".into(),
        port: 5672,
    }];
    let (kind, message) = failure(Config { hosts, ..config() }).await;
    assert_eq!(kind, ConnectFailure::Dns, "{message}");
}

#[tokio::test]
async fn a_silent_server_is_given_up_after_the_connect_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hosts = at(listener.local_addr().unwrap().port());
    let connect_timeout = Duration::from_millis(200);
    let begun = Instant::now();
    let (kind, _) = failure(Config {
        hosts,
        connect_timeout,
        ..config()
    })
    .await;
    assert_eq!(kind, ConnectFailure::Timeout);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn the_next_host_is_tried() {
    let mut hosts = at(1);
    hosts.extend(config().hosts);
    let connection = Connection::connect(Config { hosts, ..config() })
        .await
        .unwrap();
    assert_eq!(connection.status(), Status::Connected);
    connection.close().await;
}

#[tokio::test]
async fn messages_travel_over_tls() {
    let dsn = format!(
        "{}?cacertfile={}",
        variable("AMQPS_URL"),
        variable("TLS_CA_FILE")
    );
    let connection = Connection::connect(Config::parse(&dsn).unwrap())
        .await
        .unwrap();
    let queue = declare_queue(&connection, "tls").await;
    let body = vec![7; 300_000];
    let confirm = publisher(&connection, 10)
        .await
        .try_publish(&to(&queue, &body))
        .unwrap();
    within(confirm.unwrap()).await.unwrap();
    let consumer = consumer(&connection, &queue, 10).await;
    let batch = within(consumer.next_batch(1)).await.unwrap();
    assert_eq!(batch[0].body(), body);
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused_unless_asked_for() {
    let url = variable("AMQPS_URL");
    let (kind, message) = failure(Config::parse(&url).unwrap()).await;
    assert_eq!(kind, ConnectFailure::Tls, "{message}");
    let careless = Config::parse(&format!("{url}?verify=verify_none")).unwrap();
    within(Connection::connect(careless))
        .await
        .unwrap()
        .close()
        .await;
}

#[tokio::test]
async fn a_connection_lives_while_its_callers_thread_computes() {
    let heartbeat = Duration::from_secs(3);
    let connection = Connection::connect(Config {
        heartbeat,
        ..config()
    })
    .await
    .unwrap();
    let queue = declare_queue(&connection, "heartbeat").await;
    // No await: the caller's runtime stands still, as under a handler that computes, for longer than the two to three heartbeats after
    // which a broker gives up.
    std::thread::sleep(Duration::from_secs(10));
    let publisher = publisher(&connection, 10).await;
    let confirm = publisher
        .try_publish(&to(&queue, b"alive"))
        .unwrap()
        .unwrap();
    within(confirm).await.unwrap();
    let event = tokio::time::timeout(Duration::from_millis(50), connection.next_event()).await;
    assert!(
        event.is_err(),
        "the connection was not left alone: {event:?}"
    );
    connection.delete_queue(&queue).await.unwrap();
    connection.close().await;
}
