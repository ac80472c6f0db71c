//! gRPC over real connections, by a client that may cut a call anywhere.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "grpc/damage.rs"]
mod damage;
#[path = "support/fuzz.rs"]
mod fuzz;
#[path = "support/local.rs"]
mod local;
#[path = "grpc/pings.rs"]
mod pings;
#[path = "support/grpc.rs"]
mod support;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use hyper::{HeaderMap, Request, Response};
use support::{STREAM, UNARY, connect, frame, head};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use weft_core::grpc::{Call, Calls, Event, Lane, Limits, Rule, Status};

/// Bytes of a message.
const MAX: usize = 1_000;

fn run<T>(future: impl Future<Output = T>) -> T {
    local::run_for(local::LIMIT + fuzz::long().unwrap_or_default(), future)
}

/// A server whose methods send back what they get.
fn serve() -> SocketAddr {
    let limits = Limits {
        message_bytes: MAX,
        ..Limits::default()
    };
    let calls = support::calls(limits, []);
    let address = support::serve(&calls);
    tokio::task::spawn_local(async move {
        loop {
            calls.next().await;
            while let Some(event) = calls.take() {
                if let Event::Request(call) = event {
                    tokio::task::spawn_local(echo(call));
                }
            }
        }
    });
    address
}

async fn echo(call: Rc<Call>) {
    if call.method() == 0 {
        match call.take_message() {
            Ok(message) => drop(call.write(&message)),
            Err(status) => {
                call.finish(&status, HeaderMap::new());
                return;
            }
        }
    } else {
        loop {
            match call.read().await {
                Ok(Some(message)) => match call.write(&message) {
                    Ok(true) => {}
                    Ok(false) if call.room().await.is_ok() => {}
                    _ => return,
                },
                Ok(None) => break,
                Err(status) => {
                    call.finish(&status, HeaderMap::new());
                    return;
                }
            }
        }
    }
    call.finish(&Status::OK, HeaderMap::new());
}

/// Messages and status of an answer.
#[derive(Debug, PartialEq)]
struct Outcome {
    body: Vec<u8>,
    status: Option<String>,
}

/// Sends each chunk as a DATA frame of its own.
async fn call(
    client: &SendRequest<Bytes>,
    request: Request<()>,
    chunks: impl IntoIterator<Item = Bytes>,
) -> Result<Outcome, h2::Error> {
    let mut client = client.clone().ready().await?;
    let (response, mut body) = client.send_request(request, false)?;
    for chunk in chunks {
        // The server may have answered and closed the stream already.
        if body.send_data(chunk, false).is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let _ = body.send_data(Bytes::new(), true);
    outcome(response.await?).await
}

async fn outcome(response: Response<h2::RecvStream>) -> Result<Outcome, h2::Error> {
    let status_of = |fields: &HeaderMap| {
        let status = fields.get("grpc-status")?.to_str().ok()?;
        Some(status.to_owned())
    };
    let mut status = status_of(response.headers());
    let mut stream = response.into_body();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    if let Some(trailers) = stream.trailers().await? {
        status = status_of(&trailers);
    }
    Ok(Outcome { body, status })
}

async fn assert_alive(client: &SendRequest<Bytes>) {
    let answer = call(client, head(UNARY, &[]), [frame(0, b"alive").freeze()]).await;
    let expected = Outcome {
        body: frame(0, b"alive").to_vec(),
        status: Some("0".to_owned()),
    };
    assert_eq!(answer.unwrap(), expected);
}

#[test]
fn messages_in_frames_of_one_byte_are_the_same_messages() {
    run(async {
        let client = connect(serve()).await;
        let wire: Vec<u8> = [&b"first"[..], b"", &[7; 300], b"last"]
            .iter()
            .flat_map(|message| frame(0, message))
            .collect();
        let bytes = wire.iter().map(|byte| Bytes::copy_from_slice(&[*byte]));
        let answer = call(&client, head(STREAM, &[]), bytes).await.unwrap();
        assert_eq!((answer.body, answer.status.as_deref()), (wire, Some("0")));
    });
}

#[test]
fn messages_that_share_a_frame_and_empty_frames_are_the_same_messages() {
    run(async {
        let client = connect(serve()).await;
        let wire: Vec<u8> = (0..200_u8).flat_map(|number| frame(0, &[number])).collect();
        let (start, end) = wire.split_at(503);
        let chunks = [&b""[..], start, b"", end].map(Bytes::copy_from_slice);
        let answer = call(&client, head(STREAM, &[]), chunks).await.unwrap();
        assert_eq!((answer.body, answer.status.as_deref()), (wire, Some("0")));
    });
}

#[test]
fn a_flood_of_fields_ends_its_call_and_the_connection_goes_on() {
    run(async {
        let client = connect(serve()).await;
        let value = "v".repeat(1_000);
        let names: Vec<String> = (0..20).map(|number| format!("x-{number}")).collect();
        let fields: Vec<(&str, &str)> = names
            .iter()
            .map(|name| (name.as_str(), value.as_str()))
            .collect();
        let mut sender = client.clone().ready().await.unwrap();
        let (response, _) = sender.send_request(head(UNARY, &fields), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 431);
        assert_alive(&client).await;
    });
}

#[test]
fn a_client_that_resets_its_calls_takes_nothing_from_the_others() {
    run(async {
        let client = connect(serve()).await;
        for _ in 0..50 {
            let mut sender = client.clone().ready().await.unwrap();
            let (_, mut body) = sender.send_request(head(STREAM, &[]), false).unwrap();
            // Those that the server has not even seen are an attack to it.
            tokio::time::sleep(Duration::from_millis(5)).await;
            body.send_reset(h2::Reason::CANCEL);
        }
        assert_alive(&client).await;
    });
}

/// The answer to a request of HTTP/1.1 without a body.
async fn ask(address: SocketAddr, verb: &str, fields: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request =
        format!("{verb} /any HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{fields}\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Fetch §3.2.2: a browser asks before it calls for a page of another origin, and the question calls nothing.
#[test]
fn a_preflight_for_a_path_of_every_http_method_calls_nothing() {
    run(async {
        let limits = Limits::default();
        let methods = vec![support::method(UNARY, false, Lane::Unary, &limits)];
        let rule = Rule {
            verb: "*".to_owned(),
            template: "/any".to_owned(),
            method: 0,
            server_streams: false,
        };
        let calls = Calls::new(methods, vec![rule], limits).unwrap();
        let address = support::serve(&calls);
        let origin = "origin: https://evil.example\r\n";
        let asks = format!("{origin}access-control-request-method: PUT\r\n");
        let answer = ask(address, "OPTIONS", &asks).await;
        assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
        for verb in ["GET", "HEAD", "POST"] {
            let answer = ask(address, verb, origin).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{verb}: {answer}");
        }
        while let Some(event) = calls.take() {
            assert!(!matches!(event, Event::Request(_)));
        }
    });
}
