//! Servers that send what no server should: a call ends with a status that says why, and the next call works.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::channel::Channel;
use super::options::Balancing;
use super::tests::{options, request};
use super::{ClientCall, Request};
use crate::grpc::status::{Code, Status};
use crate::local::run;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The most bytes of a flood. The system's buffers take a part of it whatever the client does.
const FLOOD: usize = 64 << 20;
/// The most bytes that a client may take of a flood.
const TAKEN: usize = 24 << 20;
const GENEROUS: Duration = Duration::from_secs(20);

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Fields without compression (RFC 7541 §6.2.2).
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.extend([0, name.len() as u8]);
        block.extend(name.bytes());
        block.push(value.len() as u8);
        block.extend(value.bytes());
    }
    block
}

fn head(more: &[(&str, &str)]) -> Vec<u8> {
    let known = [(":status", "200"), ("content-type", "application/grpc")];
    let block = fields(&[&known[..], more].concat());
    frame(HEADERS, END_HEADERS, 1, &block)
}

fn trailers(more: &[(&str, &str)]) -> Vec<u8> {
    let block = fields(&[&[("grpc-status", "0")][..], more].concat());
    frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)
}

fn settings() -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[])
}

fn good() -> Vec<u8> {
    let data = frame(DATA, 0, 1, b"\0\0\0\0\x05hello");
    [settings(), head(&[]), data, trailers(&[("x-last", "1")])].concat()
}

/// The bytes for a connection whose request has arrived.
enum Script {
    Once(Vec<u8>),
    /// First this, then that for ever.
    Flood(Vec<u8>, Vec<u8>),
}

#[derive(Default)]
struct Hostile {
    scripts: RefCell<VecDeque<Script>>,
    /// Bytes of a flood that the client has taken.
    taken: Cell<usize>,
}

impl Hostile {
    async fn channel(self: &Rc<Self>) -> Channel {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Rc::clone(self);
        tokio::task::spawn_local(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::task::spawn_local(Rc::clone(&server).serve(socket));
            }
        });
        Channel::new(options(Balancing::PickFirst, &[("127.0.0.1", port)])).unwrap()
    }

    async fn serve(self: Rc<Self>, mut socket: TcpStream) {
        let mut read = Vec::new();
        while !read.windows(5).any(|bytes| bytes == b"hello") {
            if socket.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let script = self.scripts.borrow_mut().pop_front();
        match script.unwrap_or_else(|| Script::Once(good())) {
            Script::Once(bytes) => drop(socket.write_all(&bytes).await),
            Script::Flood(first, rest) => self.flood(&mut socket, first, rest).await,
        }
        let _ = socket.shutdown().await;
        let mut rest = Vec::new();
        let _ = timeout(GENEROUS, socket.read_to_end(&mut rest)).await;
    }

    async fn flood(&self, socket: &mut TcpStream, first: Vec<u8>, rest: Vec<u8>) {
        let rest = rest.repeat((64 << 10) / rest.len() + 1);
        let mut sent = socket.write_all(&first).await;
        while sent.is_ok() && self.taken.get() < FLOOD {
            self.taken.set(self.taken.get() + rest.len());
            sent = socket.write_all(&rest).await;
            tokio::task::yield_now().await;
        }
    }
}

async fn call(channel: &Channel, request: Request) -> Result<Bytes, Status> {
    let (call, task) = ClientCall::new(channel, request);
    let task = tokio::task::spawn_local(task);
    let _ = call.write(b"hello");
    call.end();
    let answer = call.read_only().await;
    if let Err(status) = &answer {
        // A server may say nothing to its status, which is then the whole truth.
        let is_said = !call.trailers().is_empty();
        assert!(!status.message.is_empty() || is_said, "{status:?}");
    }
    drop(call);
    task.await.unwrap();
    answer
}

/// The outcome of one call that the server answers like this. The next one gets a good answer.
async fn outcome(script: Script, limit: Duration) -> (Result<Bytes, Status>, usize) {
    let server = Rc::new(Hostile::default());
    let channel = server.channel().await;
    server.scripts.borrow_mut().push_back(script);
    let outcome = call(&channel, request(Some(limit), false)).await;
    let taken = server.taken.get();
    server.scripts.borrow_mut().clear();
    // The first may still find that the connection is gone.
    let mut next = call(&channel, request(Some(limit), false)).await;
    for _ in 0..5 {
        match next {
            Ok(_) => break,
            Err(status) => assert_ne!(status.code, Code::OK),
        }
        next = call(&channel, request(Some(limit), false)).await;
    }
    assert!(next.is_ok(), "{next:?} after {outcome:?}");
    (outcome, taken)
}

async fn refused(answer: &[Vec<u8>]) -> Status {
    let script = Script::Once([vec![settings()], answer.to_vec()].concat().concat());
    let (outcome, _) = outcome(script, GENEROUS).await;
    outcome.unwrap_err()
}

#[test]
fn an_answer_that_is_cut_anywhere_fails_its_call_only() {
    run(async {
        let whole = good();
        for length in 0..whole.len() {
            let script = Script::Once(whole[..length].to_vec());
            let (outcome, _) = outcome(script, GENEROUS).await;
            assert!(outcome.is_err(), "{length} of {} bytes", whole.len());
        }
    });
}

#[test]
fn an_answer_with_any_byte_replaced_ends_its_call() {
    run(async {
        let whole = good();
        for index in 0..whole.len() {
            for replaced in [0, 0xff, whole[index] ^ 1] {
                let mut script = whole.clone();
                script[index] = replaced;
                let (outcome, _) = outcome(Script::Once(script), GENEROUS).await;
                if let Err(status) = outcome {
                    assert_ne!(status.code, Code::DEADLINE_EXCEEDED, "byte {index}");
                }
            }
        }
    });
}

#[test]
fn an_answer_with_a_frame_more_ends_its_call() {
    run(async {
        let extra = [
            frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff]),
            frame(SETTINGS, 0, 1, &[]),
            frame(PING, 0, 0, b"short"),
            frame(DATA, 0, 3, b"of no stream"),
            frame(DATA, 8, 1, &[200, 1]),
            frame(CONTINUATION, END_HEADERS, 1, &[]),
            frame(GO_AWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11]),
            frame(GO_AWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]),
            frame(RESET, 0, 1, &[0, 0, 0, 8]),
            frame(RESET, 0, 1, &[0]),
            frame(0xee, 0, 0, b"unknown"),
            vec![0xff; 50],
        ];
        for frame in extra {
            for position in [0, settings().len(), settings().len() + head(&[]).len()] {
                let mut script = good();
                script.splice(position..position, frame.clone());
                let (outcome, _) = outcome(Script::Once(script), GENEROUS).await;
                if let Err(status) = outcome {
                    assert_ne!(status.code, Code::DEADLINE_EXCEEDED, "{frame:?}");
                }
            }
        }
    });
}

#[test]
fn wrong_flags_lengths_encodings_and_counts_of_messages_are_named() {
    run(async {
        let message = |bytes: &[u8]| frame(DATA, 0, 1, bytes);
        let end = || trailers(&[]);
        let status = refused(&[head(&[]), message(b"\x01\0\0\0\x02hi"), end()]).await;
        assert_eq!(status.code, Code::INTERNAL, "{status:?}");
        let status = refused(&[head(&[]), message(b"\x40\0\0\0\x02hi"), end()]).await;
        assert_eq!(status.code, Code::INTERNAL, "{status:?}");
        let status = refused(&[head(&[]), message(b"\0\xff\xff\xff\xffhi"), end()]).await;
        assert_eq!(status.code, Code::RESOURCE_EXHAUSTED, "{status:?}");
        let status = refused(&[head(&[]), message(b"\0\0\0\0\x09hi"), end()]).await;
        assert_eq!(status.code, Code::INTERNAL, "{status:?}");
        let status = refused(&[
            head(&[("grpc-encoding", "br")]),
            message(b"\x01\0\0\0\0"),
            end(),
        ])
        .await;
        assert_eq!(status.code, Code::INTERNAL, "{status:?}");
        let gzip = head(&[("grpc-encoding", "gzip")]);
        let status = refused(&[gzip, message(b"\x01\0\0\0\x02hi"), end()]).await;
        assert_eq!(status.code, Code::INTERNAL, "{status:?}");
        let status = refused(&[head(&[]), end()]).await;
        assert_eq!(status.code, Code::UNIMPLEMENTED, "{status:?}");
        let two = message(b"\0\0\0\0\0\0\0\0\0\0");
        let status = refused(&[head(&[]), two, end()]).await;
        assert_eq!(status.code, Code::UNIMPLEMENTED, "{status:?}");
    });
}

#[test]
fn a_flood_of_frames_holds_no_call_beyond_its_deadline() {
    run(async {
        for flooded in [
            settings(),
            frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]),
            frame(PING, 0, 0, b"together"),
            frame(DATA, 0, 1, &[]),
            frame(8, 0, 0, &[0, 0, 0, 1]),
            frame(0xee, 0, 0, b"unknown"),
        ] {
            let server = Rc::new(Hostile::default());
            let channel = server.channel().await;
            let script = Script::Flood([settings(), head(&[])].concat(), flooded);
            server.scripts.borrow_mut().push_back(script);
            let limit = Some(Duration::from_millis(50));
            // The second may be made on the connection that is being flooded.
            for _ in 0..2 {
                let status = call(&channel, request(limit, false)).await;
                if let Err(status) = status {
                    assert_ne!(status.code, Code::OK);
                }
            }
        }
    });
}

#[test]
fn metadata_without_an_end_is_refused() {
    run(async {
        let field = fields(&[("x-name", &"v".repeat(100))]).repeat(100);
        let open = frame(HEADERS, 0, 1, &fields(&[(":status", "200")]));
        let floods = [
            (open.clone(), frame(CONTINUATION, 0, 1, &field)),
            (open, frame(CONTINUATION, 0, 1, &[])),
            (Vec::new(), frame(HEADERS, 0, 1, &field)),
        ];
        for (first, rest) in floods {
            let script = Script::Flood([settings(), first].concat(), rest);
            let (outcome, taken) = outcome(script, GENEROUS).await;
            let status = outcome.unwrap_err();
            assert_ne!(status.code, Code::DEADLINE_EXCEEDED, "{status:?}");
            assert!(taken < TAKEN, "{taken} bytes were taken");
        }
    });
}

#[test]
fn a_server_that_says_nothing_costs_a_call_its_deadline_and_no_more() {
    run(async {
        let server = Rc::new(Hostile::default());
        let channel = server.channel().await;
        let silent = Script::Flood(Vec::new(), frame(0xee, 0, 0, b""));
        server.scripts.borrow_mut().push_back(silent);
        let status = call(&channel, request(Some(Duration::from_millis(50)), false)).await;
        assert_eq!(status.unwrap_err().code, Code::DEADLINE_EXCEEDED);
    });
}
