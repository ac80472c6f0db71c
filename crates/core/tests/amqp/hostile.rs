//! Peers that break the protocol.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use weft_core::amqp::{Config, ConnectFailure, Connection, Error, Event, Status};

use crate::fake_broker::{Frame, connection_start, frame, listen, method};
use crate::support::{config, wait_for_event, within};

/// A server that opens connections properly and then sends `after`; returns what the client answered.
async fn serve(listener: TcpListener, after: Vec<u8>) -> Vec<u8> {
    serve_one(listener, after).await.1
}

async fn serve_one(listener: TcpListener, after: Vec<u8>) -> (TcpListener, Vec<u8>) {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut buffer = [0; 4096];
    socket.read_exact(&mut buffer[..8]).await.unwrap();
    answer(&mut socket, &connection_start()).await;
    answer(
        &mut socket,
        &method(0, (10, 30), &[0, 10, 0, 0, 16, 0, 0, 0]),
    )
    .await;
    Frame::read(&mut socket).await.unwrap();
    socket.write_all(&method(0, (10, 41), &[0])).await.unwrap();
    socket.write_all(&after).await.unwrap();
    let answer = Frame::read(&mut socket).await.unwrap();
    (listener, answer.payload)
}

async fn answer(socket: &mut TcpStream, bytes: &[u8]) {
    socket.write_all(bytes).await.unwrap();
    Frame::read(socket).await.unwrap();
}

async fn listener() -> (TcpListener, Config) {
    let (listener, host) = listen().await;
    let hosts = vec![host];
    (listener, Config { hosts, ..config() })
}

/// The reply code the client closes with after the server sent `bytes`.
async fn reply_code(bytes: Vec<u8>) -> u16 {
    let (listener, config) = listener().await;
    let server = tokio::spawn(serve(listener, bytes));
    let connection = within(Connection::connect(config)).await.unwrap();
    let close = within(server).await.unwrap();
    let event = wait_for_event(&connection, |event| {
        matches!(event, Event::Disconnected { .. })
    })
    .await;
    assert!(
        matches!(&event, Event::Disconnected { error } if error.to_string().contains("protocol violation"))
    );
    assert_eq!(close[..4], [0, 10, 0, 50], "expected connection.close");
    u16::from_be_bytes([close[4], close[5]])
}

#[tokio::test]
async fn each_violation_is_answered_with_its_reply_code() {
    let mut oversized = frame(1, 0, &[]);
    oversized[3..7].copy_from_slice(&1_000_000u32.to_be_bytes());
    let mut without_end = frame(8, 0, &[]);
    without_end[7] = 0;
    for (bytes, expected) in [
        (oversized, 501),
        (without_end, 501),
        (method(0, (99, 99), &[]), 502),
        (method(0, (10, 50), &[1]), 502),
        (method(0, (50, 11), &[0; 9]), 503),
        (frame(1, 7, &[0, 20, 0, 11]), 504),
        (frame(2, 7, &[0; 14]), 504),
        (frame(9, 0, &[]), 505),
    ] {
        let shown = format!("{bytes:?}");
        assert_eq!(reply_code(bytes).await, expected, "{shown}");
    }
}

#[tokio::test]
async fn a_server_of_another_protocol_is_named_as_such() {
    for greeting in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"AMQP\x03\x01\x00\x00",
        b"",
    ] {
        let (listener, config) = listener().await;
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(greeting).await.unwrap();
            socket.shutdown().await.unwrap();
            let _ = socket.read_to_end(&mut Vec::new()).await;
        });
        let error = within(Connection::connect(config)).await.err().unwrap();
        assert!(
            matches!(
                error,
                Error::Connect {
                    failure: ConnectFailure::Protocol,
                    ..
                }
            ),
            "{error}"
        );
        server.abort();
    }
}

#[tokio::test]
async fn random_bytes_end_the_connection_and_nothing_else() {
    let mut seed = 3u64;
    for _ in 0..30 {
        let garbage: Vec<u8> = (0..200)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 56) as u8
            })
            .collect();
        let (listener, config) = listener().await;
        let server = tokio::spawn(serve(listener, [frame(1, 0, &garbage), garbage].concat()));
        let connection = within(Connection::connect(config)).await.unwrap();
        wait_for_event(&connection, |event| {
            matches!(event, Event::Disconnected { .. })
        })
        .await;
        server.abort();
    }
}

#[tokio::test]
async fn a_blocked_connection_says_so_until_it_is_unblocked() {
    let (listener, config) = listener().await;
    let blocked = method(0, (10, 60), b"\x0dlow on memory");
    let server = tokio::spawn(serve(listener, blocked.clone()));
    let connection = within(Connection::connect(config)).await.unwrap();
    let reason = "low on memory".to_owned();
    let event = wait_for_event(&connection, |_| true).await;
    assert_eq!(
        event,
        Event::Blocked {
            reason: reason.clone()
        }
    );
    assert_eq!(connection.status(), Status::Blocked { reason });
    // It must not connect to the next listener, which may have the same port.
    within(connection.close()).await;
    server.abort();

    let (listener, config) = self::listener().await;
    let server = tokio::spawn(serve(
        listener,
        [blocked, method(0, (10, 61), &[])].concat(),
    ));
    let connection = within(Connection::connect(config)).await.unwrap();
    wait_for_event(&connection, |event| *event == Event::Unblocked).await;
    assert_eq!(connection.status(), Status::Connected);
    server.abort();
}

#[tokio::test]
async fn a_connection_closed_by_force_says_why_and_connects_again() {
    let (listener, config) = listener().await;
    let mut close = 320u16.to_be_bytes().to_vec();
    close.extend(b"\x0fclosed by admin");
    close.extend([0; 4]);
    let server = tokio::spawn(async move {
        let (listener, closed) = serve_one(listener, method(0, (10, 50), &close)).await;
        serve_one(listener, Vec::new()).await;
        closed
    });
    let connection = within(Connection::connect(config)).await.unwrap();
    let event = wait_for_event(&connection, |event| {
        matches!(event, Event::Disconnected { .. })
    })
    .await;
    assert!(
        matches!(&event, Event::Disconnected { error } if error.to_string().contains("closed by admin (AMQP 320)"))
    );
    wait_for_event(&connection, |event| {
        matches!(event, Event::Recovered { .. })
    })
    .await;
    server.abort();
}
