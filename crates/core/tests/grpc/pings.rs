//! Answers to pings beside calls, on the loop that PHP runs on.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use weft_core::grpc::{Call, Calls, Event, Limits, Status};
use weft_core::http::{self, Server};
use weft_core::net::listen;
use weft_core::reactor::Reactor;

use super::support::{self, UNARY};

const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0together";
const PONG: &[u8] = b"\0\0\x08\x06\x01\0\0\0\0together";

struct Process {
    reactor: Reactor<()>,
    calls: Calls,
    client: TcpStream,
}

impl Process {
    fn new() -> Self {
        let reactor = Reactor::new(|panic| panic!("{panic}")).unwrap();
        let calls = support::calls(Limits::default(), []);
        let server = Server::new(http::Limits::default());
        server.delegate(Rc::new(calls.clone()));
        let listener = listen(&"127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address: SocketAddr = listener.address().to_string().parse().unwrap();
        reactor.spawn_background(server.keep_time());
        let accepting = server.accept(listener, None);
        reactor.spawn_background(async move { accepting.await.unwrap() });
        let mut client = TcpStream::connect(address).unwrap();
        client.set_nonblocking(true).unwrap();
        client
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .unwrap();
        let mut process = Self {
            reactor,
            calls,
            client,
        };
        // Its settings, and that it has taken ours.
        process.receive(b"\0\0\0\x04\x01\0\0\0\0");
        process
    }

    /// Turns until these bytes have come; returns everything that has.
    fn receive(&mut self, wanted: &[u8]) -> Vec<u8> {
        let end = Instant::now() + Duration::from_secs(20);
        let mut received = Vec::new();
        while !received.windows(wanted.len()).any(|bytes| bytes == wanted) {
            assert!(Instant::now() < end, "only {received:?} came");
            self.reactor.poll(Some(Duration::from_millis(5)));
            received.extend(self.received());
        }
        received
    }

    fn received(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        match self.client.read(&mut bytes) {
            Ok(length) => bytes.truncate(length),
            Err(error) if error.kind() == ErrorKind::WouldBlock => bytes.clear(),
            Err(error) => panic!("{error}"),
        }
        bytes
    }

    /// Makes a call and pings in one chunk, and turns until the call is there.
    fn call(&mut self) -> Rc<Call> {
        let mut block = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", UNARY),
            ("content-type", "application/grpc"),
        ] {
            block.extend_from_slice(&[0, name.len() as u8]);
            block.extend_from_slice(name.as_bytes());
            block.push(value.len() as u8);
            block.extend_from_slice(value.as_bytes());
        }
        let mut bytes = vec![0, 0, block.len() as u8, 1, 4, 0, 0, 0, 1];
        bytes.extend_from_slice(&block);
        bytes.extend_from_slice(b"\0\0\x05\0\x01\0\0\0\x01\0\0\0\0\0");
        bytes.extend_from_slice(PING);
        self.client.write_all(&bytes).unwrap();
        let (op, announcer) = self.reactor.recurring();
        self.calls.listen(move || announcer.announce());
        assert_eq!(self.reactor.poll(Some(Duration::from_secs(20))), [op]);
        match self.calls.take() {
            Some(Event::Request(call)) => call,
            _ => panic!("no call came"),
        }
    }
}

#[test]
fn the_answers_to_a_ping_and_to_a_call_leave_in_one_write() {
    let mut process = Process::new();
    let call = process.call();
    assert_eq!(
        process.received(),
        b"",
        "written before the call was handled"
    );
    call.write(b"").unwrap();
    call.finish(&Status::OK, HeaderMap::new());
    // The trailers end the stream.
    let received = process.receive(b"\x01\x05\0\0\0\x01");
    assert!(received.starts_with(PONG), "{received:?}");
}

#[test]
fn a_ping_is_answered_although_the_call_beside_it_is_not() {
    let mut process = Process::new();
    let call = process.call();
    assert_eq!(process.receive(PONG), PONG);
    assert!(call.is_open());
    for _ in 0..3 {
        process.client.write_all(PING).unwrap();
        assert_eq!(process.receive(PONG), PONG);
    }
}

#[test]
fn a_ping_is_answered_although_the_loop_never_waits() {
    let mut process = Process::new();
    process.client.write_all(PING).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let mut received = Vec::new();
    while received != PONG {
        assert!(Instant::now() < end, "only {received:?} came");
        let (_, promise) = process.reactor.expect(());
        promise.keep(());
        process.reactor.poll(None);
        received.extend(process.received());
    }
}
