//! Connections that are there, or on their way, when an HTTP server stops.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream as Blocking};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::{Request, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use weft_core::http::{Body, Event, Limits, Server};
use weft_core::net::listen;

const LIMIT: Duration = Duration::from_secs(60);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/// The first bytes of a client of HTTP/2, with windows of a gigabyte.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\
    \0\0\x06\x04\0\0\0\0\0\0\x04\x40\0\0\0\
    \0\0\x04\x08\0\0\0\0\0\x40\0\0\0";
const HTTP2_PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\x0012345678";

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let limited = async { timeout(LIMIT, future).await.expect("it took too long") };
    LocalSet::new().block_on(&runtime, limited)
}

/// A server that answers `/5` with five bytes, and so on; it has accepted nothing before the caller waits for something.
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
                    let length = call.head().uri.path()[1..].parse().unwrap_or(5);
                    call.respond(Response::new(Body::from(Bytes::from(vec![b'x'; length]))));
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
fn every_connected_client_is_answered_when_the_server_stops() {
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
            from.elapsed() < Duration::from_secs(20),
            "{:?}",
            from.elapsed()
        );
    });
}

#[test]
fn an_answer_over_http2_that_is_taken_slowly_is_sent_to_its_end() {
    const LENGTH: usize = 2 << 20;
    run(async {
        let (server, address) = serve();
        let socket = TcpStream::connect(address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
        spawn_local(connection);
        let request = Request::get(format!("http://a/{LENGTH}")).body(());
        let (response, _) = client.send_request(request.unwrap(), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        server.stop();
        let drained = spawn_local(server.drained());
        let (mut received, mut asleep) = (0, 0);
        while let Some(data) = body.data().await {
            let data = data.unwrap_or_else(|error| panic!("{error} after {received} bytes"));
            received += data.len();
            body.flow_control().release_capacity(data.len()).unwrap();
            if received / 65_536 > asleep {
                asleep += 1;
                sleep(Duration::from_millis(100)).await;
            }
        }
        assert_eq!(received, LENGTH);
        drop(client);
        drained.await.unwrap();
    });
}

#[test]
fn an_answer_over_http2_that_lies_in_the_kernel_is_not_taken_back() {
    const LENGTH: usize = 400_000;
    run(async {
        let (server, address) = serve();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 << 10).unwrap();
        let mut socket = socket.connect(address).await.unwrap();
        let path = format!("/{LENGTH}");
        // HPACK: :method GET, :scheme http, :authority a, :path
        let mut head = b"\x82\x86\x41\x01a\x44".to_vec();
        head.push(path.len() as u8);
        head.extend(path.as_bytes());
        let mut request = HTTP2.to_vec();
        request.extend([0, 0, head.len() as u8, 1, 5, 0, 0, 0, 1]);
        request.extend(head);
        socket.write_all(&request).await.unwrap();
        sleep(Duration::from_millis(300)).await;
        server.stop();
        sleep(Duration::from_secs(2)).await;
        socket.write_all(HTTP2_PING).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        let mut received = Vec::new();
        let read = socket.read_to_end(&mut received).await;
        assert!(received.len() > LENGTH, "{read:?} after {}", received.len());
        drop(socket);
        server.drained().await;
    });
}
