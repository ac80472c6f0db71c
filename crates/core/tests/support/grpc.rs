//! A gRPC server on a port of its own, and a client that writes frames by itself.
//!
//! Test files include this file with `#[path]`.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::SendRequest;
use hyper::Request;
use tokio::net::TcpStream;
use weft_core::grpc::{Calls, Lane, Limits, Method};
use weft_core::http::{self, Server};
use weft_core::net::listen;

pub const UNARY: &str = "/test.Echo/Unary";
pub const STREAM: &str = "/test.Echo/Stream";

/// A method that is subject to all of `limits.concurrency`.
pub fn method(path: &str, client_streams: bool, lane: Lane, limits: &Limits) -> Method {
    Method {
        path: path.to_owned(),
        client_streams,
        lane,
        message_bytes: None,
        timeout: None,
        concurrency: (0..limits.concurrency.len()).collect(),
    }
}

/// [`UNARY`] and [`STREAM`], then `more`.
pub fn calls(limits: Limits, more: impl IntoIterator<Item = Method>) -> Calls {
    let mut methods = vec![
        method(UNARY, false, Lane::Unary, &limits),
        method(STREAM, true, Lane::Stream, &limits),
    ];
    methods.extend(more);
    Calls::new(methods, Vec::new(), limits).unwrap()
}

/// Serves the calls on the `LocalSet` of the caller.
pub fn serve(calls: &Calls) -> SocketAddr {
    let server = Server::new(http::Limits::default());
    server.delegate(Rc::new(calls.clone()));
    let listener = listen(&"127.0.0.1:0".parse().unwrap(), false).unwrap();
    let address = listener.address().to_string().parse().unwrap();
    tokio::task::spawn_local(server.keep_time());
    tokio::task::spawn_local(calls.keep_time());
    tokio::task::spawn_local(server.accept(listener, None));
    address
}

pub async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    let socket = TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::task::spawn_local(async move {
        let _ = connection.await;
    });
    client
}

/// The head of a call.
pub fn head(path: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::post(format!("http://test{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// A message as it is on the wire.
pub fn frame(flags: u8, message: &[u8]) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_u8(flags);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame
}
