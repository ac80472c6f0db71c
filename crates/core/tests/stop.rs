//! Connections that are there, or on their way, when an HTTP server stops.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream as Blocking};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::{Request, Response};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use weft_core::http::{Body, Event, Limits, Server};
use weft_core::net::listen;

const LIMIT: Duration = Duration::from_secs(60);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let limited = async { timeout(LIMIT, future).await.expect("it took too long") };
    LocalSet::new().block_on(&runtime, limited)
}

/// A server that answers everything; it has accepted nothing before the caller waits for something.
fn serve() -> (Server, SocketAddr) {
    let server = Server::new(Limits::default());
    let listener = listen(&"127.0.0.1:0".parse().unwrap(), false).unwrap();
    let address = listener.address().to_string().parse().unwrap();
    spawn_local(server.keep_time());
    spawn_local(server.accept(listener, None));
    let answering = server.clone();
    spawn_local(async move {
        loop {
            answering.next().await;
            while let Some(event) = answering.take() {
                if let Event::Request(call) = event {
                    call.respond(Response::new(Body::from(Bytes::from_static(b"hello"))));
                }
            }
        }
    });
    (server, address)
}

async fn connected(server: &Server, address: SocketAddr) -> TcpStream {
    let before = server.connections();
    let socket = TcpStream::connect(address).await.unwrap();
    while server.connections() == before {
        sleep(Duration::from_millis(1)).await;
    }
    socket
}

/// Asks as often as it is answered, at most twenty times within two seconds.
async fn answers_over_http2(socket: TcpStream) -> u32 {
    let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
    spawn_local(connection);
    for answered in 0..20 {
        let request = Request::get("http://a/").body(()).unwrap();
        let Ok(mut ready) = client.ready().await else {
            return answered;
        };
        let Ok((response, _)) = ready.send_request(request, true) else {
            return answered;
        };
        match response.await {
            Ok(response) => assert_eq!(response.status(), 200),
            Err(_) => return answered,
        }
        client = ready;
        sleep(Duration::from_millis(100)).await;
    }
    20
}

#[test]
fn a_client_that_has_said_nothing_yet_hears_over_http2_that_the_server_stops() {
    run(async {
        let (server, address) = serve();
        let socket = connected(&server, address).await;
        server.stop();
        let answered = answers_over_http2(socket).await;
        assert!((1..=2).contains(&answered), "{answered} answers");
        server.drained().await;
    });
}

#[test]
fn a_client_that_connects_in_the_moment_of_the_stop_hears_of_it_over_http2() {
    run(async {
        let (server, address) = serve();
        let socket = Blocking::connect(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        server.stop();
        let answered = answers_over_http2(TcpStream::from_std(socket).unwrap()).await;
        assert!((1..=2).contains(&answered), "{answered} answers");
        server.drained().await;
    });
}

#[test]
fn whoever_was_connected_when_the_server_stops_is_answered_however_many_they_are() {
    run(async {
        let (server, address) = serve();
        let sockets: Vec<_> = (0..400)
            .map(|_| {
                let mut socket = Blocking::connect(address).unwrap();
                socket.write_all(GET).unwrap();
                socket
            })
            .collect();
        server.stop();
        let drained = spawn_local(server.drained());
        for (index, socket) in sockets.into_iter().enumerate() {
            socket.set_nonblocking(true).unwrap();
            let mut socket = TcpStream::from_std(socket).unwrap();
            let mut answer = String::new();
            let read = socket.read_to_string(&mut answer).await;
            assert!(read.is_ok(), "connection {index}: {read:?}");
            assert!(
                answer.starts_with("HTTP/1.1 200 OK\r\n"),
                "{index}: {answer}"
            );
            assert!(
                answer.contains("connection: close\r\n"),
                "{index}: {answer}"
            );
        }
        drained.await.unwrap();
    });
}

#[test]
fn a_server_is_not_drained_before_it_has_accepted_what_the_kernel_had() {
    run(async {
        let (server, address) = serve();
        let _socket = Blocking::connect(address).unwrap();
        server.stop();
        let drained = timeout(Duration::from_millis(200), server.drained()).await;
        assert!(drained.is_err());
        assert_eq!(server.connections(), 1);
    });
}

#[test]
fn a_client_that_says_nothing_keeps_a_stopping_server_for_little_more_than_a_second() {
    run(async {
        let (server, address) = serve();
        let _known = connected(&server, address).await;
        let _unknown = Blocking::connect(address).unwrap();
        server.stop();
        let from = Instant::now();
        server.drained().await;
        assert!(
            from.elapsed() < Duration::from_secs(3),
            "{:?}",
            from.elapsed()
        );
    });
}
