//! Every wait of a handler over HTTP is dropped at every poll: nothing that has arrived is lost, and no place is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../src/cancellation_tests.rs"]
mod cancellation_tests;
#[path = "support/local.rs"]
mod local;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use cancellation_tests::{Ended, drop_at_every_poll};
use hyper::Response;
use local::run;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;
use weft_core::http::{Body, Call, Event, Field, Limits, MultipartLimits, Server};
use weft_core::net::listen;

/// So long a client pauses after each chunk that it sends.
const PAUSE: Duration = Duration::from_millis(2);
const CHUNKS: [&str; 3] = ["first ", "second ", "third"];
const BODY: &str = "first second third";
const FORM: [&str; 3] = [
    "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\nfirst ",
    "second\r\n--b\r\nContent-Disposition: form-data; name=\"v\"\r\n\r\nva",
    "lue\r\n--b--\r\n",
];

/// A server that handles one request at a time.
fn serve() -> (Server, SocketAddr) {
    let server = Server::new(Limits {
        in_flight: 1,
        queue: 1,
        client_share: 1.0,
        ..Limits::default()
    });
    let listener = listen(&"127.0.0.1:0".parse().unwrap(), false).unwrap();
    let address = listener.address().to_string().parse().unwrap();
    tokio::task::spawn_local(server.keep_time());
    tokio::task::spawn_local(server.accept(listener, None));
    (server, address)
}

async fn handed(server: &Server) -> Rc<Call> {
    loop {
        server.next().await;
        if let Some(Event::Request(call)) = server.take() {
            return call;
        }
    }
}

/// Sends a request whose body has no declared length, chunk by chunk, and reads its answer to the end of the connection.
fn post(address: SocketAddr, fields: &'static str, chunks: [&'static str; 3]) {
    tokio::task::spawn_local(async move {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n{fields}\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        for chunk in chunks {
            sleep(PAUSE).await;
            let chunk = format!("{:x}\r\n{chunk}\r\n", chunk.len());
            if socket.write_all(chunk.as_bytes()).await.is_err() {
                return;
            }
        }
        let _ = socket.write_all(b"0\r\n\r\n").await;
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
}

/// Its handler ends, and the next request gets its place.
async fn next_one_is_handled(server: &Server, address: SocketAddr, call: Rc<Call>) {
    call.respond(Response::new(Body::from(Bytes::from_static(b"done"))));
    call.handled();
    drop(call);
    post(address, "", CHUNKS);
    let next = handed(server).await;
    assert_eq!(next.read_body().await.unwrap(), BODY);
}

#[test]
fn a_cancelled_read_of_the_next_chunk_loses_nothing() {
    run(async {
        let polls = drop_at_every_poll(
            async || {
                let (server, address) = serve();
                post(address, "", CHUNKS);
                let call = handed(&server).await;
                (server, address, call, Vec::new())
            },
            async |(_, _, call, read)| loop {
                match call.next_chunk().await.unwrap() {
                    chunk if chunk.is_empty() => return,
                    chunk => read.extend_from_slice(&chunk),
                }
            },
            async |(server, address, call, mut read), _| {
                while let chunk = call.next_chunk().await.unwrap()
                    && !chunk.is_empty()
                {
                    read.extend_from_slice(&chunk);
                }
                assert_eq!(read, BODY.as_bytes());
                next_one_is_handled(&server, address, call).await;
            },
        )
        .await;
        assert!(polls > 2, "{polls} polls");
    });
}

#[test]
fn a_cancelled_read_of_the_whole_body_is_continued_by_the_next() {
    run(async {
        let polls = drop_at_every_poll(
            async || {
                let (server, address) = serve();
                post(address, "", CHUNKS);
                let call = handed(&server).await;
                (server, address, call)
            },
            async |(_, _, call)| call.read_body().await.unwrap(),
            async |(server, address, call), _| {
                assert_eq!(call.read_body().await.unwrap(), BODY);
                next_one_is_handled(&server, address, call).await;
            },
        )
        .await;
        assert!(polls > 2, "{polls} polls");
    });
}

#[test]
fn a_cancelled_read_of_a_form_leaves_no_file_behind() {
    let directory = std::env::temp_dir().join(format!("weft-http-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let limits = MultipartLimits {
        parts: 10,
        files: 10,
        header_bytes: 1_000,
        field_bytes: 1_000,
        file_bytes: 1_000,
    };
    let read = |call: &Call, directory: &PathBuf| call.read_form(limits.clone(), directory.clone());
    run(async {
        drop_at_every_poll(
            async || {
                let (server, address) = serve();
                post(
                    address,
                    "Content-Type: multipart/form-data; boundary=b\r\n",
                    FORM,
                );
                let call = handed(&server).await;
                (server, address, call)
            },
            async |(_, _, call)| read(call, &directory).await.unwrap(),
            async |(server, address, call), ended: Ended<Vec<Field>>| {
                match ended {
                    Ended::Completed(fields) => assert_eq!(fields.len(), 2),
                    Ended::Dropped(point) => {
                        let again = read(&call, &directory).await;
                        assert_eq!(again.is_ok(), point.polls == 0, "{point:?}");
                    }
                }
                until_empty(&directory).await;
                next_one_is_handled(&server, address, call).await;
            },
        )
        .await;
    });
    std::fs::remove_dir(&directory).unwrap();
}

/// A thread that writes a file is not cancelled: it ends by itself.
async fn until_empty(directory: &PathBuf) {
    while std::fs::read_dir(directory).unwrap().next().is_some() {
        sleep(PAUSE).await;
    }
}

#[test]
fn a_cancelled_wait_for_the_next_request_loses_no_request() {
    run(async {
        drop_at_every_poll(
            async || {
                let (server, address) = serve();
                post(address, "", CHUNKS);
                (server, address)
            },
            async |(server, _)| handed(server).await,
            async |(server, address), ended| {
                let call = match ended {
                    Ended::Completed(call) => call,
                    Ended::Dropped(_) => handed(&server).await,
                };
                next_one_is_handled(&server, address, call).await;
            },
        )
        .await;
    });
}

#[test]
fn a_cancelled_wait_for_room_is_not_waited_for_in_vain_by_the_next() {
    run(async {
        drop_at_every_poll(
            async || {
                let (server, address) = serve();
                post(address, "", CHUNKS);
                let call = handed(&server).await;
                let (writer, body) = Body::stream(None);
                // More than the socket takes at once: the client reads only once it has sent its body.
                while writer.write(Bytes::from(vec![b'x'; 1 << 20])).unwrap() {}
                call.respond(Response::new(body));
                (server, address, call, writer)
            },
            async |(_, _, _, writer)| writer.room().await.unwrap(),
            async |(server, address, call, writer), _| {
                writer.room().await.unwrap();
                writer.end(None);
                drop(writer);
                next_one_is_handled(&server, address, call).await;
            },
        )
        .await;
    });
}

#[test]
fn two_tasks_wait_for_the_room_of_one_answer() {
    run(async {
        let (server, address) = serve();
        post(address, "", CHUNKS);
        let call = handed(&server).await;
        let (writer, body) = Body::stream(None);
        assert!(!writer.write(Bytes::from(vec![b'x'; 1 << 20])).unwrap());
        let (first, second) = (writer.room(), writer.room());
        let both = tokio::task::spawn_local(async move { tokio::join!(first, second) });
        tokio::task::yield_now().await;
        call.respond(Response::new(body));
        let (first, second) = both.await.unwrap();
        assert!(first.is_ok() && second.is_ok());
    });
}
