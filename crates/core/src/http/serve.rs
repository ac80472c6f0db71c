use std::error::Error as _;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::connection::Connection;
use super::dispatch::dispatch;
use super::lingering_close::lingering_close;
use super::refusals::Cause;
use super::socket::Socket;
use super::websocket::converse;
use crate::net::{Local, Stream, TlsAcceptor};

/// What an HTTP/2 client sends first (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What hyper refuses more than, unless it is told another number.
const DEFAULT_HEADERS: usize = 100;
const REQUEST_TIMEOUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\n\
    connection: close\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    content-length: 20\r\n\r\n\
    408 Request Timeout\n";
/// How long a client may take to receive that.
const PATIENCE: Duration = Duration::from_secs(1);
const MAX_STREAMS: u32 = 256;
/// What a client may send on all HTTP/2 streams before it is read, as a multiple of what it may on one.
const STREAMS_WORTH: u32 = 4;
/// The same where messages may wait for a handler: h2 closes a connection with more unread small frames than half of its
/// window pays for, at 256 bytes each. One stream full of messages of five bytes takes 52 times its own window of that.
const MESSAGES_WORTH: u32 = 128;
/// RFC 9113 §6.9.1
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// Serves a connection until it ends or is told to.
pub(super) async fn serve(
    connection: Rc<Connection>,
    stream: Stream,
    tls: Option<Rc<TlsAcceptor>>,
) {
    // In boxes of their own: together in one future, each connection would be as large as the largest of them, which is the beginning
    // of TLS or a conversation.
    let beginning = Box::pin(begin(&connection, stream, tls));
    let Some((stream, prefix, is_http2)) = beginning.await else {
        return;
    };
    connection.recognise(is_http2);
    let socket = Socket::new(stream, prefix, Rc::clone(&connection));
    match is_http2 {
        true => serve_http2(connection, socket).await,
        false => Box::pin(serve_http1(connection, socket)).await,
    }
}

/// The socket, what was read from it, and whether the client speaks HTTP/2. None when it does not come to that.
async fn begin(
    connection: &Connection,
    stream: Stream,
    tls: Option<Rc<TlsAcceptor>>,
) -> Option<(Stream, Bytes, bool)> {
    let mut begun = pin!(async {
        let secured = secured(connection, stream, tls.as_deref()).await;
        let stream = secured.inspect_err(|error| {
            if !has_left(error) {
                connection.refused(Cause::Tls, &error.to_string());
            }
        })?;
        recognised(stream).await
    });
    poll_fn(|context| {
        // Whoever has said nothing so far is told nothing.
        if connection.obey(context, || {}).is_ready() || connection.is_finishing() {
            return Poll::Ready(None);
        }
        begun.as_mut().poll(context).map(Result::ok)
    })
    .await
}

/// The client went away by itself, as health checks do that only connect.
fn has_left(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

async fn secured(
    connection: &Connection,
    stream: Stream,
    tls: Option<&TlsAcceptor>,
) -> io::Result<Stream> {
    let Some(tls) = tls else {
        return Ok(stream);
    };
    let Stream::Tcp(socket) = stream else {
        return Err(io::Error::other("TLS needs TCP"));
    };
    let stream = tls.accept(socket).await?;
    let shown = stream.get_ref().1.peer_certificates();
    if let Some(certificate) = shown.and_then(<[_]>::first) {
        connection.identify(certificate);
    }
    Ok(Stream::tls(stream))
}

/// Reads until it is clear which protocol the client speaks, and returns what was read.
async fn recognised(mut stream: Stream) -> io::Result<(Stream, Bytes, bool)> {
    let mut prefix = Vec::with_capacity(PREFACE.len());
    loop {
        let mut byte = [0; PREFACE.len()];
        let missing = PREFACE.len() - prefix.len();
        let length = stream.read(&mut byte[..missing]).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        prefix.extend_from_slice(&byte[..length]);
        if !PREFACE.starts_with(&prefix) {
            return Ok((stream, prefix.into(), false));
        }
        if prefix.len() == PREFACE.len() {
            return Ok((stream, prefix.into(), true));
        }
    }
}

async fn serve_http1(connection: Rc<Connection>, socket: Socket) {
    let limits = &connection.shared.limits;
    let mut builder = http1::Builder::new();
    // With a number of its own, hyper allocates its table of fields for every request.
    if limits.header_count != DEFAULT_HEADERS {
        builder.max_headers(limits.header_count);
    }
    builder
        .max_header_size(limits.header_bytes)
        .header_read_timeout(None)
        // With it hyper buffers a streamed body without bound for a client that does not read.
        .pipeline_flush(false);
    let server = Rc::clone(&connection);
    let service =
        service_fn(move |request: hyper::Request<Incoming>| dispatch(Rc::clone(&server), request));
    let mut protocol = builder.serve_connection(socket, service);
    let ended = poll_fn(|context| {
        let finish = || Pin::new(&mut protocol).graceful_shutdown();
        if connection.obey(context, finish).is_ready() {
            return Poll::Ready(None);
        }
        // Without the conversation that may follow, hyper shuts the socket down by itself.
        Pin::new(&mut protocol).poll(context).map(Some)
    })
    .await;
    if let Some(conversation) = connection.conversation() {
        let parts = protocol.into_parts();
        Box::pin(converse(connection, parts.io, parts.read_buf, conversation)).await;
    } else if connection.is_timed_out() {
        connection.refused(Cause::HeaderTimeout, "");
        Box::pin(time_out(connection, protocol.into_parts().io)).await;
    } else if let Some(is_sending) = ended.and_then(|ended| may_send(&connection, ended)) {
        let socket = protocol.into_parts().io;
        Box::pin(lingering_close(connection, socket.stream(), is_sending)).await;
    }
}

/// Whether the client is likely to send more to a connection of HTTP/1 that is closed; None when it has no answer to lose by that.
fn may_send(connection: &Connection, ended: hyper::Result<()>) -> Option<bool> {
    match ended {
        Ok(()) => Some(connection.is_sent_to()),
        Err(error) if error.is_parse() => {
            let cause = match error.is_parse_too_large() {
                true => Cause::HeaderTooLarge,
                false => Cause::Protocol,
            };
            connection.refused(cause, &error.to_string());
            Some(true)
        }
        Err(_) => None,
    }
}

/// An error of HTTP/2 that the client has made: not one that it reports, nor a connection that is lost.
fn violation(error: &hyper::Error) -> Option<(Cause, String)> {
    let error: &h2::Error = error.source()?.downcast_ref()?;
    if !error.is_library() && (error.is_remote() || !error.is_go_away()) {
        return None;
    }
    let cause = match error.reason() {
        Some(h2::Reason::ENHANCE_YOUR_CALM) => Cause::Flood,
        _ => Cause::Protocol,
    };
    Some((cause, error.to_string()))
}

/// RFC 9110 §15.5.9. There is no request, so hyper has no answer.
async fn time_out(connection: Rc<Connection>, mut socket: Socket) {
    let answering = async {
        socket.write_all(REQUEST_TIMEOUT).await?;
        socket.shutdown().await
    };
    if let Ok(Ok(())) = timeout(PATIENCE, answering).await {
        // It has had its time: no more than a look at what it has sent by now.
        lingering_close(connection, socket.stream(), false).await;
    }
}

fn connection_window(stream_window: u32, has_messages: bool) -> u32 {
    let worth = match has_messages {
        true => MESSAGES_WORTH,
        false => STREAMS_WORTH,
    };
    stream_window.saturating_mul(worth).min(LARGEST_WINDOW)
}

fn http2_builder(connection: &Connection) -> http2::Builder<Local> {
    let limits = &connection.shared.limits;
    let mut builder = http2::Builder::new(Local);
    builder
        .enable_connect_protocol()
        .max_concurrent_streams(MAX_STREAMS)
        // `Date` puts it where it belongs.
        .auto_date_header(false)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(limits.stream_window)
        .initial_connection_window_size(connection_window(
            limits.stream_window,
            connection.shared.has_service(),
        ));
    builder
}

/// Neither the builder nor a second place for the socket is a part of what is kept: this is what an idle connection consists of.
#[expect(
    clippy::manual_async_fn,
    reason = "a function keeps its parameters twice"
)]
fn serve_http2(connection: Rc<Connection>, mut socket: Socket) -> impl Future<Output = ()> {
    async move {
        let mut protocol = {
            let server = Rc::clone(&connection);
            let service = service_fn(move |request: hyper::Request<Incoming>| {
                dispatch(Rc::clone(&server), request)
            });
            Box::pin(http2_builder(&connection).serve_connection(&mut socket, service))
        };
        poll_fn(|context| {
            let finish = || protocol.as_mut().graceful_shutdown();
            if connection.obey(context, finish).is_ready() {
                return Poll::Ready(());
            }
            protocol.as_mut().poll(context).map(|ended| {
                if let Some((cause, detail)) = ended.err().as_ref().and_then(violation) {
                    connection.refused(cause, &detail);
                }
            })
        })
        .await;
        drop(protocol);
        if connection.may_linger() {
            Box::pin(leave_http2(connection, &mut socket)).await;
        }
    }
}

/// The client has a goodbye to read and answers to take, which it acknowledges to the last: to a closed socket it must not do so.
async fn leave_http2(connection: Rc<Connection>, socket: &mut Socket) {
    if let Ok(Ok(())) = timeout(PATIENCE, socket.shutdown()).await {
        lingering_close(connection, socket.stream(), true).await;
    }
}
