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
use super::direct::serve_direct;
use super::dispatch::dispatch;
use super::lingering_close::lingering_close;
use super::proxy_protocol::read_header;
use super::refusal::RefusalReason;
use super::socket::Socket;
use super::websocket::drive;
use crate::net::{LocalExecutor, Stream, TlsAcceptor};

/// The connection preface of HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// hyper's default limit of header fields.
const DEFAULT_HEADERS: usize = 100;
const REQUEST_TIMEOUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\n\
    connection: close\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    content-length: 20\r\n\r\n\
    408 Request Timeout\n";
/// How long a client may take to receive the last bytes of a connection.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_STREAMS: u32 = 256;
/// The connection window of HTTP/2 as a multiple of the stream window.
const WINDOW_FACTOR: u32 = 4;
/// The same where messages may wait for a handler: h2 closes a connection whose unread small frames, counted as 256 bytes each, exceed
/// half of its window. One stream full of messages of five bytes counts as 52 times its own window.
const MESSAGE_WINDOW_FACTOR: u32 = 128;
/// RFC 9113 §6.9.1
const MAX_WINDOW: u32 = (1 << 31) - 1;

/// Serves a connection until it ends or gets a command to end.
pub(super) async fn serve(
    connection: Rc<Connection>,
    stream: Stream,
    tls: Option<Rc<TlsAcceptor>>,
) {
    // Boxed one by one: in one future each connection would be as large as the largest of them, a TLS handshake or a WebSocket.
    let established = Box::pin(establish(&connection, stream, tls));
    let Some((stream, prefix, is_http2)) = established.await else {
        return;
    };
    connection.set_protocol(is_http2);
    let (stream, prefix) = match is_http2 {
        true => (stream, prefix),
        false => match Box::pin(serve_direct(&connection, stream, prefix)).await {
            Some(rest) => rest,
            None => return,
        },
    };
    let socket = Socket::new(stream, prefix, Rc::clone(&connection));
    match is_http2 {
        true => serve_http2(connection, socket).await,
        false => Box::pin(serve_http1(connection, socket)).await,
    }
}

/// Secures the connection and detects the protocol. Returns the socket, the bytes read from it, and whether the client speaks HTTP/2;
/// `None` if the connection ends before.
async fn establish(
    connection: &Connection,
    stream: Stream,
    tls: Option<Rc<TlsAcceptor>>,
) -> Option<(Stream, Bytes, bool)> {
    let mut establishing = pin!(async {
        let stream = read_proxy_header(connection, stream).await?;
        let tls_stream = accept_tls(connection, stream, tls.as_deref()).await;
        let stream = tls_stream.inspect_err(|error| {
            if !is_disconnect(error) {
                connection.refused(RefusalReason::Tls, &error.to_string());
            }
        })?;
        detect_protocol(stream).await
    });
    poll_fn(|context| {
        // A client that has sent nothing gets no response.
        if connection.poll_command(context, || {}).is_ready() || connection.is_finishing() {
            return Poll::Ready(None);
        }
        establishing.as_mut().poll(context).map(Result::ok)
    })
    .await
}

/// Reads the header of the PROXY protocol, where the connection has one.
async fn read_proxy_header(connection: &Connection, mut stream: Stream) -> io::Result<Stream> {
    let has_header = connection
        .peer()
        .proxies
        .as_ref()
        .is_some_and(|proxies| proxies.has_proxy_protocol);
    if has_header {
        let proxied = read_header(&mut stream).await.inspect_err(|error| {
            if !is_disconnect(error) {
                connection.refused(RefusalReason::Protocol, &error.to_string());
            }
        })?;
        connection.set_proxied(proxied);
    }
    Ok(stream)
}

/// The client has disconnected, as a health check does that only connects.
fn is_disconnect(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

async fn accept_tls(
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
        connection.set_certificate(certificate);
    }
    Ok(Stream::tls(stream))
}

/// Reads until the protocol of the client is known. Returns the bytes that were read, and whether they are the preface of HTTP/2.
async fn detect_protocol(mut stream: Stream) -> io::Result<(Stream, Bytes, bool)> {
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
    let limits = &connection.server.limits;
    let mut builder = http1::Builder::new();
    // With an explicit limit hyper allocates its header table for every request.
    if limits.header_count != DEFAULT_HEADERS {
        builder.max_headers(limits.header_count);
    }
    builder
        .max_header_size(limits.header_bytes)
        .header_read_timeout(None)
        // hyper would find the end of the input by reading into a new buffer during every request: `Socket` watches for it.
        .half_close(socket.watches_end())
        // It would make hyper buffer a streamed body without bound for a client that does not read.
        .pipeline_flush(false);
    let server = Rc::clone(&connection);
    let service =
        service_fn(move |request: hyper::Request<Incoming>| dispatch(Rc::clone(&server), request));
    let mut protocol = builder.serve_connection(socket, service);
    let ended = poll_fn(|context| {
        let finish = || Pin::new(&mut protocol).graceful_shutdown();
        if connection.poll_command(context, finish).is_ready() {
            return Poll::Ready(None);
        }
        // Without upgrades: hyper shuts the socket down at the end, unless a WebSocket follows.
        Pin::new(&mut protocol).poll(context).map(Some)
    })
    .await;
    if let Some(websocket) = connection.websocket() {
        let parts = protocol.into_parts();
        Box::pin(drive(connection, parts.io, parts.read_buf, websocket)).await;
    } else if connection.is_timed_out() {
        connection.refused(RefusalReason::HeaderTimeout, "");
        Box::pin(respond_timeout(connection, protocol.into_parts().io)).await;
    } else if let Some(is_sending) = ended.and_then(|ended| may_send(&connection, ended)) {
        let socket = protocol.into_parts().io;
        Box::pin(lingering_close(connection, socket.stream(), is_sending)).await;
    }
}

/// Whether the client of an HTTP/1 connection that has ended is likely to send more. `None` if it has no response to lose by a reset.
fn may_send(connection: &Connection, ended: hyper::Result<()>) -> Option<bool> {
    match ended {
        Ok(()) => Some(connection.is_sent_to()),
        Err(error) if error.is_parse() => {
            let reason = match error.is_parse_too_large() {
                true => RefusalReason::HeaderTooLarge,
                false => RefusalReason::Protocol,
            };
            connection.refused(reason, &error.to_string());
            Some(true)
        }
        Err(_) => None,
    }
}

/// A protocol error of an HTTP/2 client. Errors that the client reports and lost connections are not.
fn violation(error: &hyper::Error) -> Option<(RefusalReason, String)> {
    let error: &h2::Error = error.source()?.downcast_ref()?;
    if !error.is_library() && (error.is_remote() || !error.is_go_away()) {
        return None;
    }
    let reason = match error.reason() {
        Some(h2::Reason::ENHANCE_YOUR_CALM) => RefusalReason::Flood,
        _ => RefusalReason::Protocol,
    };
    Some((reason, error.to_string()))
}

/// Responds 408 (RFC 9110 §15.5.9). hyper cannot, because there is no request yet.
async fn respond_timeout(connection: Rc<Connection>, mut socket: Socket) {
    let answering = async {
        socket.write_all(REQUEST_TIMEOUT).await?;
        socket.shutdown().await
    };
    if let Ok(Ok(())) = timeout(FINAL_WRITE_TIMEOUT, answering).await {
        // The client has used its time: only what it has sent by now is discarded.
        lingering_close(connection, socket.stream(), false).await;
    }
}

fn connection_window(stream_window: u32, has_messages: bool) -> u32 {
    let factor = match has_messages {
        true => MESSAGE_WINDOW_FACTOR,
        false => WINDOW_FACTOR,
    };
    stream_window.saturating_mul(factor).min(MAX_WINDOW)
}

fn http2_builder(connection: &Connection) -> http2::Builder<LocalExecutor> {
    let limits = &connection.server.limits;
    let mut builder = http2::Builder::new(LocalExecutor);
    builder
        .enable_connect_protocol()
        .max_concurrent_streams(MAX_STREAMS)
        // `Date` sets it where it is useful.
        .auto_date_header(false)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(limits.stream_window)
        .initial_connection_window_size(connection_window(
            limits.stream_window,
            connection.server.has_service(),
        ));
    builder
}

/// This future is what an idle connection consists of, so it holds neither the builder nor a second copy of the socket.
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
            if connection.poll_command(context, finish).is_ready() {
                return Poll::Ready(());
            }
            protocol.as_mut().poll(context).map(|ended| {
                if let Some((reason, detail)) = ended.err().as_ref().and_then(violation) {
                    connection.refused(reason, &detail);
                }
            })
        })
        .await;
        drop(protocol);
        if connection.may_linger() {
            Box::pin(close_http2(connection, &mut socket)).await;
        }
    }
}

/// Shuts the connection down and waits for the client: it still sends acknowledgements and window updates for GOAWAY and responses, which
/// must not arrive at a closed socket.
async fn close_http2(connection: Rc<Connection>, socket: &mut Socket) {
    if let Ok(Ok(())) = timeout(FINAL_WRITE_TIMEOUT, socket.shutdown()).await {
        lingering_close(connection, socket.stream(), true).await;
    }
}
