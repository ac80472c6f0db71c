//! A server on a port of its own, under a clock that the tests move.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;

use super::{Body, Event, Limits, Server};
use crate::local::run_for;
use crate::net::listen;

const MINUTE: Duration = Duration::from_secs(60);
/// The limit of a test runs on the clock that the tests move.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn serve(limits: Limits) -> (Server, SocketAddr) {
    let server = Server::new(limits);
    let listener = listen(&"127.0.0.1:0".parse().unwrap(), false).unwrap();
    let address = listener.address().to_string().parse().unwrap();
    tokio::task::spawn_local(server.keep_time());
    tokio::task::spawn_local(server.accept(listener, None));
    (server, address)
}

#[test]
fn a_request_that_is_read_after_the_event_loop_was_blocked_has_its_whole_deadline() {
    run_for(DAY, async {
        let (server, address) = serve(Limits {
            deadline: Some(MINUTE),
            idle_timeout: 60 * MINUTE,
            header_timeout: 60 * MINUTE,
            ..Limits::default()
        });
        let mut client = TcpStream::connect(address).unwrap();
        while server.connections() == 0 {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        // Nothing runs meanwhile, neither the connection nor a tick of the server's clock.
        tokio::time::advance(10 * MINUTE).await;
        server.next().await;
        let Some(Event::Request(call)) = server.take() else {
            panic!("the request was not handed out");
        };
        tokio::time::sleep(MINUTE / 2).await;
        assert!(server.take().is_none(), "it has expired");
        assert!(call.respond(Response::new(Body::from(Bytes::from_static(b"done")))));
    });
}

#[test]
fn a_handler_hears_of_its_deadline_once() {
    run_for(DAY, async {
        let (server, address) = serve(Limits {
            deadline: Some(MINUTE),
            ..Limits::default()
        });
        let mut client = TcpStream::connect(address).unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        server.next().await;
        let Some(Event::Request(call)) = server.take() else {
            panic!("the request was not handed out");
        };
        tokio::time::pause();
        server.next().await;
        assert!(matches!(server.take(), Some(Event::Expired(id)) if id == call.id()));
        assert!(call.is_open(), "its handler answers");
        tokio::time::sleep(10 * MINUTE).await;
        assert!(server.take().is_none());
    });
}
