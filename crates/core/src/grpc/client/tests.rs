//! Names that are looked up slowly, in vain or not to the end, and calls that are dropped anywhere.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::HeaderMap;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::channel::Channel;
use super::names::Resolve;
use super::options::{Balancing, ChannelOptions};
use super::{ClientCall, Request};
use crate::cancellation_tests::{Ended, drop_at_every_poll};
use crate::grpc::status::Code;
use crate::local::run;

const HELLO: &[u8] = b"\0\0\0\0\x05hello";

/// With a clock that jumps to the next timer when nothing else can happen.
fn run_paused(future: impl Future<Output = ()>) {
    run(async {
        tokio::time::pause();
        future.await;
    });
}

pub(super) fn options(balancing: Balancing, servers: &[(&str, u16)]) -> ChannelOptions {
    let server = |(name, port): &(&str, u16)| ((*name).to_owned(), *port);
    ChannelOptions {
        servers: servers.iter().map(server).collect(),
        balancing,
        tls: None,
        connect_timeout: Duration::from_secs(20),
        message_bytes: 1_000,
        encoding: None,
        ping_interval: None,
        ping_timeout: Duration::from_secs(20),
        stream_window: 65_535,
    }
}

pub(super) fn request(timeout: Option<Duration>, waits: bool) -> Request {
    Request {
        path: "/test.Echo/Unary".to_owned(),
        metadata: HeaderMap::new(),
        timeout,
        attempts: 0,
        waits,
    }
}

/// Answers every call with what it was sent; counts the streams that are open.
#[derive(Default)]
struct Server {
    accepted: Cell<usize>,
    open: Cell<usize>,
    served: Cell<usize>,
    /// The largest header list that it accepts, if it names one.
    header_list: Option<u32>,
}

impl Server {
    async fn start(self: &Rc<Self>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Rc::clone(self);
        tokio::task::spawn_local(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                server.accepted.set(server.accepted.get() + 1);
                let server = Rc::clone(&server);
                tokio::task::spawn_local(async move {
                    let mut builder = h2::server::Builder::new();
                    if let Some(bytes) = server.header_list {
                        builder.max_header_list_size(bytes);
                    }
                    let mut connection = builder.handshake(socket).await.unwrap();
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        tokio::task::spawn_local(Rc::clone(&server).answer(request, respond));
                    }
                });
            }
        });
        port
    }

    async fn answer(
        self: Rc<Self>,
        request: hyper::Request<h2::RecvStream>,
        mut respond: h2::server::SendResponse<Bytes>,
    ) {
        self.open.set(self.open.get() + 1);
        let _ = self.echo(request.into_body(), &mut respond).await;
        self.open.set(self.open.get() - 1);
    }

    async fn echo(
        &self,
        mut body: h2::RecvStream,
        respond: &mut h2::server::SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let mut message = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            message.extend_from_slice(&data);
        }
        // A moment later, so that a call can be dropped while it waits.
        tokio::task::yield_now().await;
        let head = hyper::Response::builder().header("content-type", "application/grpc");
        let mut stream = respond.send_response(head.body(()).unwrap(), false)?;
        stream.send_data(message.into(), false)?;
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        stream.send_trailers(trailers)?;
        self.served.set(self.served.get() + 1);
        Ok(())
    }

    async fn assert_no_stream_is_open(&self) {
        while self.open.get() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn call(channel: &Channel, request: Request) -> Result<Bytes, crate::grpc::Status> {
    let (call, task) = ClientCall::new(channel, request);
    let task = tokio::task::spawn_local(task);
    call.write(b"hello").unwrap();
    call.end();
    let answer = call.read_only().await;
    drop(call);
    task.await.unwrap();
    answer
}

/// Says how many look-ups were begun, and ends each by what `answer` makes of its number.
fn resolver<F>(begun: &Rc<Cell<usize>>, answer: impl Fn(usize) -> F + 'static) -> Resolve
where
    F: Future<Output = io::Result<Vec<SocketAddr>>> + 'static,
{
    let begun = Rc::clone(begun);
    Rc::new(move |_, _| {
        begun.set(begun.get() + 1);
        Box::pin(answer(begun.get()))
    })
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

#[test]
fn a_call_that_is_cancelled_during_the_look_up_leaves_a_channel_that_works() {
    run(async {
        let server = Rc::new(Server::default());
        let port = server.start().await;
        let begun = Rc::new(Cell::new(0));
        let resolve = resolver(&begun, move |_| async move {
            sleep(Duration::from_millis(30)).await;
            Ok(vec![local(port)])
        });
        let options = options(Balancing::RoundRobin, &[("name", port)]);
        let channel = Channel::resolved_by(options, resolve).unwrap();
        let cancelled = call(&channel, request(Some(Duration::from_millis(1)), false)).await;
        assert_eq!(cancelled.unwrap_err().code, Code::DEADLINE_EXCEEDED);
        assert_eq!(call(&channel, request(None, false)).await.unwrap(), "hello");
        assert_eq!(begun.get(), 1, "both calls share one look-up");
    });
}

#[test]
fn every_call_after_a_failed_look_up_says_why() {
    run_paused(async {
        let begun = Rc::new(Cell::new(0));
        let resolve = resolver(&begun, |_| async { Err(io::Error::other("no such name")) });
        let options = options(Balancing::RoundRobin, &[("name", 1)]);
        let channel = Channel::resolved_by(options, resolve).unwrap();
        for _ in 0..3 {
            let status = call(&channel, request(None, false)).await.unwrap_err();
            assert_eq!(status.code, Code::UNAVAILABLE);
            assert_eq!(status.message, "cannot find name: no such name");
        }
        assert_eq!(begun.get(), 1);
        sleep(Duration::from_secs(5)).await;
        call(&channel, request(None, false)).await.unwrap_err();
        assert_eq!(
            begun.get(),
            2,
            "the names are looked up again after the pause"
        );
    });
}

#[test]
fn names_without_an_address_are_reported() {
    run_paused(async {
        let begun = Rc::new(Cell::new(0));
        let resolve = resolver(&begun, |_| async { Ok(Vec::new()) });
        let options = options(Balancing::RoundRobin, &[("name", 1)]);
        let channel = Channel::resolved_by(options, resolve).unwrap();
        let status = call(&channel, request(None, false)).await.unwrap_err();
        assert_eq!(status.message, "the names of the servers have no address");
    });
}

#[test]
fn a_channel_without_servers_says_so() {
    run_paused(async {
        let channel = Channel::new(options(Balancing::PickFirst, &[])).unwrap();
        let status = call(&channel, request(None, false)).await.unwrap_err();
        assert_eq!(status.message, "the channel knows no server to call");
    });
}

#[test]
fn a_look_up_that_never_ends_fails_after_the_connect_timeout() {
    run_paused(async {
        let begun = Rc::new(Cell::new(0));
        let resolve = resolver(&begun, |_| std::future::pending());
        let options = options(Balancing::RoundRobin, &[("name", 1)]);
        let channel = Channel::resolved_by(options, resolve).unwrap();
        let status = call(&channel, request(None, false)).await.unwrap_err();
        assert_eq!(
            status.message,
            "cannot find name: the look-up took more than 20s"
        );
    });
}

#[test]
fn a_call_that_waits_for_a_server_outlives_failed_look_ups() {
    run(async {
        let server = Rc::new(Server::default());
        let port = server.start().await;
        let begun = Rc::new(Cell::new(0));
        let resolve = resolver(&begun, move |number| async move {
            match number {
                1 => Err(io::Error::other("not yet")),
                _ => Ok(vec![local(port)]),
            }
        });
        tokio::time::pause();
        let options = options(Balancing::RoundRobin, &[("name", port)]);
        let channel = Channel::resolved_by(options, resolve).unwrap();
        let waiting = channel.connection(true).await;
        tokio::time::resume();
        assert!(waiting.is_ok());
        assert_eq!(begun.get(), 2);
        assert_eq!(call(&channel, request(None, false)).await.unwrap(), "hello");
    });
}

#[test]
fn a_slow_look_up_holds_up_no_call_that_has_a_server() {
    run(async {
        let server = Rc::new(Server::default());
        let port = server.start().await;
        let begun = Rc::new(Cell::new(0));
        let resolve = resolver(&begun, move |number| async move {
            match number {
                1 => Ok(vec![local(port), local(1)]),
                _ => std::future::pending().await,
            }
        });
        let options = options(Balancing::RoundRobin, &[("name", port)]);
        let channel = Channel::resolved_by(options, resolve).unwrap();
        call(&channel, request(None, false)).await.unwrap();
        channel.expire_names();
        tokio::time::pause();
        sleep(Duration::from_secs(6)).await;
        tokio::time::resume();
        assert_eq!(call(&channel, request(None, false)).await.unwrap(), "hello");
        assert_eq!(begun.get(), 2);
    });
}

#[test]
fn a_name_that_failed_beside_others_is_looked_up_again() {
    run(async {
        let server = Rc::new(Server::default());
        let port = server.start().await;
        let begun = Rc::new(Cell::new(0));
        let resolve = resolver(&begun, move |number| async move {
            match number {
                2 => Err(io::Error::other("not yet")),
                _ => Ok(vec![local(port)]),
            }
        });
        let options = options(Balancing::RoundRobin, &[("one", port), ("two", port)]);
        let channel = Channel::resolved_by(options, resolve).unwrap();
        call(&channel, request(None, false)).await.unwrap();
        assert_eq!(begun.get(), 2);
        tokio::time::pause();
        sleep(Duration::from_secs(6)).await;
        tokio::time::resume();
        call(&channel, request(None, false)).await.unwrap();
        while begun.get() < 4 {
            tokio::task::yield_now().await;
        }
    });
}

fn request_with_metadata(bytes: usize) -> Request {
    let mut request = request(None, false);
    let value = "a".repeat(bytes).parse().unwrap();
    request.metadata.insert("x-large", value);
    request
}

#[test]
fn metadata_above_the_limit_of_the_server_ends_its_call_and_no_other() {
    run(async {
        let server = Rc::new(Server {
            header_list: Some(16 << 10),
            ..Server::default()
        });
        let port = server.start().await;
        let channel = Channel::new(options(Balancing::PickFirst, &[("127.0.0.1", port)])).unwrap();
        // The first call of the connection, which the settings of the server have not reached.
        let refused = call(&channel, request_with_metadata(100_000)).await;
        let status = refused.unwrap_err();
        assert_eq!(status.code, Code::RESOURCE_EXHAUSTED);
        let text = &status.message;
        assert!(
            text.starts_with("the metadata of /test.Echo/Unary has 100"),
            "{text}"
        );
        let server_text = format!(
            " bytes with the fields of the protocol, the server 127.0.0.1:{port} accepts 16384 "
        );
        assert!(text.contains(&server_text), "{text}");

        let (open, task) = ClientCall::new(&channel, request(None, false));
        tokio::task::spawn_local(task);
        open.write(b"hello").unwrap();
        for bytes in [16_384, 100_000, 10_000_000] {
            let refused = call(&channel, request_with_metadata(bytes)).await;
            assert_eq!(refused.unwrap_err().code, Code::RESOURCE_EXHAUSTED);
        }
        let large = call(&channel, request_with_metadata(15_000)).await;
        assert_eq!(large.unwrap(), "hello");
        open.end();
        assert_eq!(open.read_only().await.unwrap(), "hello");
        assert_eq!((server.accepted.get(), server.served.get()), (1, 2));
    });
}

#[test]
fn metadata_has_no_limit_where_the_server_names_none() {
    run(async {
        let server = Rc::new(Server::default());
        let port = server.start().await;
        let channel = Channel::new(options(Balancing::PickFirst, &[("127.0.0.1", port)])).unwrap();
        let large = call(&channel, request_with_metadata(1_000_000)).await;
        assert_eq!(large.unwrap(), "hello");
    });
}

#[test]
fn a_call_that_waits_for_settings_ends_at_its_deadline() {
    run(async {
        // Accepts connections and says nothing.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let channel = Channel::new(options(Balancing::PickFirst, &[("127.0.0.1", port)])).unwrap();
        let mut request = request_with_metadata(100_000);
        request.timeout = Some(Duration::from_millis(50));
        let status = call(&channel, request).await.unwrap_err();
        assert_eq!(status.code, Code::DEADLINE_EXCEEDED);
    });
}

/// A channel that has looked its server up slowly, and that server.
async fn slow_channel() -> (Channel, Rc<Server>) {
    let server = Rc::new(Server::default());
    let port = server.start().await;
    let resolve = resolver(&Rc::default(), move |_| async move {
        tokio::task::yield_now().await;
        Ok(vec![local(port)])
    });
    let options = options(Balancing::RoundRobin, &[("name", port)]);
    (Channel::resolved_by(options, resolve).unwrap(), server)
}

async fn assert_works(channel: &Channel, server: &Server) {
    assert_eq!(call(channel, request(None, false)).await.unwrap(), "hello");
    server.assert_no_stream_is_open().await;
}

#[test]
fn a_connection_that_is_asked_for_may_be_dropped_at_every_poll() {
    run(async {
        for waits in [false, true] {
            let polls = drop_at_every_poll(
                slow_channel,
                async |(channel, _)| channel.connection(waits).await.map(|_| ()),
                async |(channel, server), ended| {
                    if let Ended::Completed(outcome) = ended {
                        outcome.unwrap();
                    }
                    assert_works(&channel, &server).await;
                },
            )
            .await;
            assert!(polls > 2, "it completed after {polls} polls");
        }
    });
}

#[test]
fn the_task_of_a_call_may_be_dropped_at_every_poll() {
    run(async {
        let polls = drop_at_every_poll(
            slow_channel,
            async |(channel, _)| {
                let (call, task) = ClientCall::new(channel, request(None, false));
                call.write(b"hello").unwrap();
                call.end();
                let reading = async {
                    let answer = call.read_only().await;
                    call.cancel();
                    answer
                };
                tokio::join!(task, reading).1
            },
            async |(channel, server), ended| {
                if let Ended::Completed(answer) = ended {
                    assert_eq!(answer.unwrap(), "hello");
                }
                assert_works(&channel, &server).await;
            },
        )
        .await;
        assert!(polls > 3, "it completed after {polls} polls");
    });
}

#[test]
fn reading_and_waiting_for_room_may_be_dropped_at_every_poll() {
    struct Begun {
        channel: Channel,
        server: Rc<Server>,
        call: ClientCall,
    }
    run(async {
        let begin = async || {
            let (channel, server) = slow_channel().await;
            let (call, task) = ClientCall::new(&channel, request(None, false));
            tokio::task::spawn_local(task);
            Begun {
                channel,
                server,
                call,
            }
        };
        let polls = drop_at_every_poll(
            begin,
            async |begun| {
                let call = &begun.call;
                // More than the window of the server.
                for _ in 0..200 {
                    if !call.write(&[b'x'; 900]).unwrap() {
                        call.room().await.unwrap();
                    }
                }
                call.end();
                while call.read().await.unwrap().is_some() {}
            },
            async |begun, _| {
                // Only a wait was dropped, not the call: it ends with its owner.
                drop(begun.call);
                assert_works(&begun.channel, &begun.server).await;
            },
        )
        .await;
        assert!(polls > 3, "it completed after {polls} polls");
    });
}

#[test]
fn a_wait_that_is_dropped_is_not_a_call_that_is_cancelled() {
    run(async {
        let (channel, _server) = slow_channel().await;
        let (call, task) = ClientCall::new(&channel, request(None, false));
        tokio::task::spawn_local(task);
        // Nothing comes before the request has ended.
        timeout(Duration::from_millis(5), call.read())
            .await
            .unwrap_err();
        call.write(&HELLO[5..]).unwrap();
        call.end();
        assert_eq!(call.read().await.unwrap().unwrap(), "hello");
        assert_eq!(call.read().await.unwrap(), None);
    });
}
