//! Requests over HTTP/1.1 are answered in the same way with hyper and without it, whatever a client sends and however it arrives.
//!
//! The random exchanges are the same ones every time. After a change of `http/direct.rs`, `http/request_head.rs`, `http/response_head.rs`,
//! or of the version of hyper or httparse, compare others for ten minutes:
//!
//! ```sh
//! WEFT_FUZZ_SECONDS=600 cargo test --locked --package weft-core --test http_direct -- somewhat_wrong any_moment
//! ```
//!
//! A failure names its round: `WEFT_FUZZ_SEED=…` in place of `WEFT_FUZZ_SECONDS` repeats it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/fuzz.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod fuzz;
#[path = "support/local.rs"]
mod local;

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use fuzz::{Random, Rounds};
use hyper::{HeaderMap, Response};
use local::run_for;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{spawn_local, yield_now};
use tokio::time::{Instant, sleep};
use weft_core::http::{
    Body, Call, EncodedFields, Event, Incoming, Limits, Peer, Request, SendableFile, Server,
    Service, ServiceFuture, StatusCode,
};
use weft_core::net::listen;

/// The clock goes on by itself where nothing else happens: a test waits for every timeout without waiting. While a busy kernel delivers what
/// one socket has sent to the other, days pass.
const DAYS: Duration = Duration::from_secs(700 * 24 * 60 * 60);
/// How often exchanges that end at different times are compared.
const ATTEMPTS: usize = 10;
const IDLE: Duration = Duration::from_secs(300);
/// Connections of both servers at a time.
const AT_A_TIME: usize = 100;
const LARGE: usize = 300_000;
/// How long a slow handler takes.
const SLOW: Duration = Duration::from_secs(50);
/// The clock of the server, which need not tick at the same moment as that of the other.
const TICK: Duration = Duration::from_millis(250);

/// Sent in one piece, and in several.
static SMALL_FILE: LazyLock<SendableFile> = LazyLock::new(|| file(5_000).0);
static LARGE_FILE: LazyLock<SendableFile> = LazyLock::new(|| file(LARGE).0);

/// A file without a name, as it is sent and as it is written.
fn file(length: usize) -> (SendableFile, std::fs::File) {
    let path = std::env::temp_dir().join(format!("weft-http-{}-{length}", std::process::id()));
    std::fs::write(&path, vec![b'x'; length]).unwrap();
    let sent = SendableFile::open(&path).unwrap();
    let written = std::fs::File::options().write(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    (sent, written)
}

/// Takes no request, but may: where there is a service all connections are hyper's.
struct NoService;

impl Service for NoService {
    fn takes(&self, _: &Request<Incoming>) -> bool {
        false
    }

    fn write_timeout(&self) -> Option<Duration> {
        None
    }

    fn call(&self, _: Request<Incoming>, _: Rc<Peer>) -> ServiceFuture {
        unreachable!()
    }
}

fn limits() -> Limits {
    Limits {
        client_share: 1.0,
        header_bytes: 8 << 10,
        header_count: 20,
        body_bytes: 1_000,
        header_timeout: IDLE,
        body_timeout: IDLE,
        min_body_rate: None,
        idle_timeout: IDLE,
        write_timeout: 10 * IDLE,
        deadline: None,
        ..Limits::default()
    }
}

/// The requests that the handlers of a server were given, by the port of the client.
type Log = Rc<RefCell<HashMap<u16, Vec<String>>>>;

/// A server whose handlers answer with what they have seen of their request.
struct Served {
    server: Server,
    address: SocketAddr,
    log: Log,
}

fn serve(limits: Limits, with_hyper: bool) -> Served {
    let (server, address) = listening(limits, with_hyper);
    let log = Log::default();
    let (answering, seen) = (server.clone(), Rc::clone(&log));
    spawn_local(async move {
        let mut ports = HashMap::new();
        let note =
            |port: u16, event: String| seen.borrow_mut().entry(port).or_default().push(event);
        loop {
            answering.next().await;
            while let Some(event) = answering.take() {
                match event {
                    Event::Request(call) => {
                        let port = call.peer().address.unwrap().port();
                        ports.insert(call.id(), port);
                        note(port, format!("{} {}", call.method(), call.path()));
                        spawn_local(answer(call));
                    }
                    Event::Gone(id) => note(ports[&id], "gone".to_owned()),
                    Event::Expired(id) => note(ports[&id], "expired".to_owned()),
                }
            }
        }
    });
    Served {
        server,
        address,
        log,
    }
}

fn listening(limits: Limits, with_hyper: bool) -> (Server, SocketAddr) {
    let server = Server::new(limits);
    if with_hyper {
        server.delegate(Rc::new(NoService));
    }
    let listener = listen(&"127.0.0.1:0".parse().unwrap(), false).unwrap();
    let address = listener.address().to_string().parse().unwrap();
    spawn_local(server.keep_time());
    spawn_local(server.accept(listener, None));
    (server, address)
}

async fn answer(call: Rc<Call>) {
    let body = match call.read_body().await {
        Ok(body) => body,
        Err(error) => Bytes::from(error.to_string()),
    };
    let head = call.head();
    let mut seen = format!(
        "{} {} ? {} {:?} {:?}\n",
        call.method(),
        call.path(),
        call.query(),
        head.version,
        head.uri
    );
    let mut fields: Vec<_> = head.headers.iter().collect();
    fields.sort_by_key(|(name, _)| name.as_str());
    for (name, value) in fields {
        seen.push_str(&format!("{name}: {value:?}\n"));
    }
    seen.push_str(&format!("{body:?}\n"));
    let seen = Bytes::from(seen);
    let kind = HeaderMap::from_iter([("x-kind".parse().unwrap(), "echo".parse().unwrap())]);
    // The target of CONNECT has no path.
    let path = call.path().strip_prefix('/').unwrap_or_default();
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let mut response = Response::new(Body::from(seen.clone()));
    match first {
        "status" => {
            *response.status_mut() = StatusCode::from_bytes(rest.as_bytes()).unwrap_or_default()
        }
        "close" => drop(
            response
                .headers_mut()
                .insert("connection", "close".parse().unwrap()),
        ),
        "length" => drop(
            response
                .headers_mut()
                .insert("content-length", "3".parse().unwrap()),
        ),
        "chunked" => drop(
            response
                .headers_mut()
                .insert("transfer-encoding", "chunked".parse().unwrap()),
        ),
        "date" => drop(
            response
                .headers_mut()
                .insert("date", "Thu, 01 Jan 1970 00:00:00 GMT".parse().unwrap()),
        ),
        "cookies" => {
            response
                .headers_mut()
                .append("set-cookie", "a=1".parse().unwrap());
            response
                .headers_mut()
                .append("x-other", "1".parse().unwrap());
            response
                .headers_mut()
                .append("set-cookie", "b=2".parse().unwrap());
        }
        "empty" => *response.body_mut() = Body::from(Bytes::new()),
        "large" => *response.body_mut() = Body::from(Bytes::from(vec![b'x'; LARGE])),
        "file" => response = SMALL_FILE.answer(head, StatusCode::OK, kind),
        "large-file" => response = LARGE_FILE.answer(head, StatusCode::OK, kind),
        "later" => {
            for _ in 0..20 {
                yield_now().await;
            }
        }
        "slow" => sleep(SLOW).await,
        "stream" => {
            let (writer, body) = Body::stream(None);
            *response.body_mut() = body;
            call.respond(response);
            writer.write(seen).unwrap();
            yield_now().await;
            let _ = writer.write(Bytes::from_static(b"more"));
            writer.end(None);
            return;
        }
        "once" | "slow-once" | "large-once" => {
            if first == "slow-once" {
                sleep(SLOW).await;
            }
            if first == "large-once" {
                *response.body_mut() = Body::from(Bytes::from(vec![b'x'; LARGE]));
            }
            *response.headers_mut() = kind.clone();
            let fields = EncodedFields::encode(&kind).unwrap();
            let Body::Full(body) = response.body() else {
                unreachable!()
            };
            if call
                .respond_at_once(StatusCode::OK, &fields, body)
                .is_some()
            {
                assert!(!call.is_open());
                return;
            }
        }
        _ => {}
    }
    call.respond(response);
}

/// A step of a client.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    /// It sends no more.
    ShutDown,
}

/// The result of its steps.
#[derive(Debug)]
struct Outcome {
    received: String,
    /// The requests that the handlers were given.
    handled: Vec<String>,
    /// When the server has closed the connection, if that was after the last step.
    ended: Option<Duration>,
}

/// The bytes that a client receives that takes these steps, one after the other has arrived, and then waits for the end of the connection.
async fn take(served: &Served, steps: &[Step]) -> Outcome {
    let began = Instant::now();
    let mut socket = TcpStream::connect(served.address).await.unwrap();
    let port = socket.local_addr().unwrap().port();
    socket.set_nodelay(true).unwrap();
    let mut has_taken_all = true;
    for step in steps {
        let result = match step {
            Step::Send(piece) => socket.write_all(piece).await,
            Step::Wait(time) => {
                sleep(*time).await;
                Ok(())
            }
            Step::ShutDown => {
                // Time passes only when both servers have done what they can.
                sleep(Duration::from_millis(1)).await;
                socket.shutdown().await
            }
        };
        if result.is_err() {
            has_taken_all = false;
            break;
        }
        for _ in 0..5 {
            yield_now().await;
        }
    }
    let mut received = Vec::new();
    // Where the server has closed before it had read everything, a reset may end this.
    let _ = socket.read_to_end(&mut received).await;
    let ended = has_taken_all.then(|| began.elapsed());
    // The handlers are told of the end after the client.
    for _ in 0..5 {
        yield_now().await;
    }
    Outcome {
        received: without_dates(&received),
        handled: served.log.borrow_mut().remove(&port).unwrap_or_default(),
        ended,
    }
}

/// The bytes that a client receives that sends `pieces`, and then waits for the end of the connection.
async fn exchange(address: SocketAddr, pieces: &[&[u8]]) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let mut received = Vec::new();
    for piece in pieces {
        if socket.write_all(piece).await.is_err() {
            break;
        }
        for _ in 0..5 {
            yield_now().await;
        }
    }
    let _ = socket.read_to_end(&mut received).await;
    without_dates(&received)
}

/// The date is that of the wall clock.
fn without_dates(received: &[u8]) -> String {
    let text = String::from_utf8_lossy(received);
    let lines = text
        .split_inclusive("\r\n")
        .map(|line| match line.strip_prefix("date: ") {
            Some(date) if !date.contains("1970") => "date: now\r\n",
            _ => line,
        });
    lines.collect()
}

/// The bytes that hyper alone would have sent where it knows less, or knows it later:
///
/// - It looks at a head that has not arrived as a whole only once, so it may wait in vain for the end of one that is malformed, until that is
///   late or the client sends no more. What it is handed in one piece it refuses at once.
/// - Where a body has arrived together with other requests, it does not tell how much of it; the beginning of a head behind such a body is not
///   noticed, and the connection is closed as an idle one.
fn decided(direct: &str, hyper: &str, steps: &str) -> String {
    const REFUSED: [&str; 2] = ["400 Bad Request", "431 Request Header Fields Too Large"];
    const WAITED: &str = "HTTP/1.1 408 Request Timeout\r\n";
    let before = REFUSED.iter().find_map(|status| {
        direct.strip_suffix(&*format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n"
        ))
    });
    let waited = hyper.find(WAITED).map_or(hyper, |at| &hyper[..at]);
    let has_body = steps.to_ascii_lowercase().contains("content-length:");
    let is_late = direct.find(WAITED).map(|at| &direct[..at]) == Some(hyper);
    match before == Some(waited) || has_body && is_late {
        true => hyper.to_owned(),
        false => direct.to_owned(),
    }
}

/// Compares what both servers make of each of these.
async fn compare(direct: &Rc<Served>, hyper: &Rc<Served>, exchanges: Vec<Vec<Step>>) {
    let mut left = exchanges;
    for _ in 0..ATTEMPTS {
        left = ended_apart(direct, hyper, left).await;
        if left.is_empty() {
            return;
        }
    }
    panic!("both do not end at the same time: {left:?}");
}

/// The same, but for the time of the end. Returns the exchanges in which that differs: on a busy machine the kernel takes time between two
/// sockets, which the clock of the test does not know. A difference that is one appears each time.
async fn ended_apart(
    direct: &Rc<Served>,
    hyper: &Rc<Served>,
    exchanges: Vec<Vec<Step>>,
) -> Vec<Vec<Step>> {
    let mut apart = Vec::new();
    for some in exchanges.chunks(AT_A_TIME) {
        let running: Vec<_> = some
            .iter()
            .map(|steps| {
                let (steps, direct, hyper) = (steps.clone(), Rc::clone(direct), Rc::clone(hyper));
                spawn_local(
                    async move { tokio::join!(take(&direct, &steps), take(&hyper, &steps)) },
                )
            })
            .collect();
        for (steps, running) in some.iter().zip(running) {
            let (direct, hyper) = running.await.unwrap();
            let shown = shown(steps);
            assert_alike(&direct, &hyper, &shown);
            if !end_alike(&direct, &hyper, &shown) {
                apart.push(steps.clone());
            }
        }
    }
    apart
}

/// Over HTTP/2 both are hyper's, and a service has larger windows.
fn are_http2(direct: &Outcome, hyper: &Outcome) -> bool {
    const SETTINGS: &str = "\0\0\x1e\x04";
    direct.received.starts_with(SETTINGS) && hyper.received.starts_with(SETTINGS)
}

fn assert_alike(direct: &Outcome, hyper: &Outcome, steps: &str) {
    if are_http2(direct, hyper) {
        return;
    }
    let decided = decided(&direct.received, &hyper.received, steps);
    assert_eq!(decided, hyper.received, "{steps}");
    assert_eq!(
        direct.handled, hyper.handled,
        "{steps}: {direct:?} {hyper:?}"
    );
}

fn end_alike(direct: &Outcome, hyper: &Outcome, steps: &str) -> bool {
    let (Some(one), Some(other)) = (direct.ended, hyper.ended) else {
        return true;
    };
    let decided = decided(&direct.received, &hyper.received, steps);
    // One that knows more ends it earlier, or later than a server that stops and takes it for idle.
    decided != direct.received
        || one.abs_diff(other) <= 2 * TICK
        // A server that closes waits until the kernel has sent the answer, which takes no time of the test's clock.
        || decided.contains("connection: close\r\n")
        || are_http2(direct, hyper)
}

fn shown(steps: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Send(piece) => format!("{:?}", String::from_utf8_lossy(piece)),
        step => format!("{step:?}"),
    };
    steps.iter().map(step).collect::<Vec<_>>().join(", ")
}

fn sends<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Step> {
    let pieces = pieces.into_iter();
    pieces.map(|piece| Step::Send(piece.to_vec())).collect()
}

fn test(work: impl AsyncFnOnce(Rc<Served>, Rc<Served>)) {
    test_with(limits(), work);
}

fn test_with(limits: Limits, work: impl AsyncFnOnce(Rc<Served>, Rc<Served>)) {
    run_for(DAYS, async {
        tokio::time::pause();
        let direct = Rc::new(serve(limits.clone(), false));
        let hyper = Rc::new(serve(limits, true));
        work(Rc::clone(&direct), Rc::clone(&hyper)).await;
        for served in [direct, hyper] {
            served.server.stop();
            served.server.drained().await;
            assert_eq!(served.server.in_flight(), 0);
        }
    });
}

const NEXT: &str = "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// Requests as clients send them, and as attackers do.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = Vec::new();
    let mut add = |request: &str| {
        corpus.push(request.as_bytes().to_vec());
        corpus.push(format!("{request}{NEXT}").into_bytes());
    };
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
    for target in [
        "/",
        "/a/b%20c?d=1?e&f",
        "/?",
        "/a?",
        "/%",
        "/%zz",
        "//a",
        "/a//b/../c;d=e",
        "/later",
        "/empty",
        "/once",
        "/file",
        "/stream",
        "/close",
        "/length",
        "/chunked",
        "/date",
        "/cookies",
        "/status/201",
        "/status/204",
        "/status/205",
        "/status/299",
        "/status/304",
        "/status/404",
        "/status/500",
        "/status/999",
        "*",
        "a",
        "http://y/a?b",
        "http://y",
        "http://u@y/",
        "/a#b",
        "/\"",
        "/{}",
        "/|",
        "/\\",
        "/^`",
        "/<>",
        "/a b",
        "/\u{e4}",
        "/\t",
        "",
        "?a",
        "https://y:443/",
        "x:80",
    ] {
        add(&get(target));
    }
    for method in [
        "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", "G", "G@T", "",
    ] {
        add(&format!("{method} /once HTTP/1.1\r\nHost: x\r\n\r\n"));
    }
    for line in [
        "GET / HTTP/1.0",
        "GET / HTTP/1.2",
        "GET / HTTP/2.0",
        "GET / HTTP/0.9",
        "GET /",
        "GET / ",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        " GET / HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1.1 ",
        "GET\t/\tHTTP/1.1",
        "\r\nGET / HTTP/1.1",
        "\nGET / HTTP/1.1",
        "\r\n\r\nGET / HTTP/1.1",
        "GET / HTTP/11",
        "GET / HTTP/1.1\0",
    ] {
        add(&format!("{line}\r\nHost: x\r\n\r\n"));
    }
    for field in [
        "Accept: */*",
        "A:b",
        "A:",
        "A: ",
        "A:  b  ",
        "A:\tb\t",
        "A : b",
        " A: b",
        "\tA: b",
        ": b",
        "A",
        "A\u{e4}: b",
        "A: \u{e4}",
        "A: b\0c",
        "A: b\rc",
        "A: b\x7f",
        "A: b\x01",
        "A: b\r\n c",
        "A: b\r\n\tc",
        "a: 1\r\nA: 2\r\na: 3",
        "Host: y",
        "host: x",
        "Connection: close",
        "Connection: Close",
        "Connection: keep-alive",
        "Connection: Keep-Alive ",
        "Connection: keep-alive, close",
        "Connection: upgrade",
        "Connection: x",
        "Connection: close\r\nConnection: keep-alive",
        "Proxy-Connection: keep-alive",
        "Keep-Alive: timeout=5",
        "Content-Length: 0",
        "Content-Length: 0\r\nContent-Length: 0",
        "Content-Length: 0, 0",
        "Content-Length: +0",
        "Content-Length: -1",
        "Content-Length: 1x",
        "Content-Length:",
        "Content-Length : 5",
        "Content-Length: 0\r\nContent-Length: 5",
        "Content-Length: 18446744073709551616",
        "Content-Length: 5000",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\x0bchunked",
        "Transfer_Encoding: chunked",
        "Upgrade: websocket",
        "Upgrade: h2c\r\nConnection: upgrade, http2-settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
        "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Expect: 100-continue",
        "Expect: x",
        "TE: trailers",
        "Trailer: a",
        "Range: bytes=0-1",
        "If-None-Match: *",
        "Cookie: a=b; c=d",
        "Authorization: Basic eA==",
        "Content-Type: text/plain",
    ] {
        add(&format!(
            "GET /once?q HTTP/1.1\r\nHost: x\r\n{field}\r\n\r\n"
        ));
    }
    for field in [
        "Range: bytes=5-",
        "Range: bytes=0-0",
        "Range: bytes=5000-",
        "If-None-Match: *",
        "If-Match: \"other\"",
    ] {
        add(&format!("GET /file HTTP/1.1\r\nHost: x\r\n{field}\r\n\r\n"));
    }
    for host in [
        "", " ", "a/b", "u@a", "a b", "a,b", "[::1]:80", "x:1", "a%20", "a\u{e4}", "a\tb",
    ] {
        add(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    }
    for behind in ["\r\n", "\n", "\r", "\r\n\r\n", "\r\r\n", " \r\n"] {
        add(&format!("GET /once HTTP/1.1\r\nHost: x\r\n\r\n{behind}"));
    }
    add("GET / HTTP/1.1\r\n\r\n");
    add("GET / HTTP/1.0\r\n\r\n");
    add("GET / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n");
    add("GET / HTTP/1.1\nHost: x\n\n");
    add("GET / HTTP/1.1\r\nHost: x\n\r\n");
    add("GET / HTTP/1.1\r\nHost: x\r\n\n");
    add("GET / HTTP/1.1\rHost: x\r\r");
    add("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    add("GET /once HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    add("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    add(
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    add(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n",
    );
    add("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n0\r\n\r\n");
    add("\x16\x03\x01\x02\0\x01\0\x01\x3c\x03\x03");
    add("PRI * HTTP/2.0\r\n\r\nSM\r\n");
    for count in [18, 19, 20, 21, 101] {
        let fields: String = (0..count)
            .map(|number| format!("x-{number}: y\r\n"))
            .collect();
        add(&format!("GET /once HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
    }
    for length in [
        3_000, 4_000, 4_096, 5_000, 8_000, 8_150, 8_160, 8_192, 9_000, 70_000,
    ] {
        let long = "y".repeat(length);
        add(&format!(
            "GET /once HTTP/1.1\r\nHost: x\r\nLong: {long}\r\n\r\n"
        ));
        add(&get(&format!("/once?{long}")));
    }
    add(&[get("/once"), get("/file"), get("/later"), get("/file")].concat());
    // Not so much that the answers would wait in the kernel for the client.
    let many = [get("/once"), get("/later"), get("/a?b"), get("/status/404")].concat();
    add(&many);
    add(&many.repeat(30));
    for odd in [
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc".to_owned(),
        get("/stream"),
        get("/close"),
        get("/status/204"),
        get("/later").replace("GET", "HEAD"),
        get("/").replace("1.1", "1.0"),
        "GET nonsense\r\n\r\n".to_owned(),
    ] {
        add(&format!("{many}{odd}{many}"));
    }
    corpus
}

#[test]
fn both_answer_alike_to_what_arrives_at_once() {
    test(async |direct, hyper| {
        let exchanges = corpus().iter().map(|input| sends([&**input])).collect();
        compare(&direct, &hyper, exchanges).await;
    });
}

#[test]
fn both_answer_alike_whatever_the_limits_of_a_header_are() {
    for (header_count, header_bytes) in [
        (0, 8 << 10),
        (1, 8 << 10),
        (3, 100),
        (100, 16 << 10),
        (101, 4 << 10),
        (200, 1 << 20),
    ] {
        let limits = Limits {
            header_count,
            header_bytes,
            ..limits()
        };
        test_with(limits, async |direct, hyper| {
            let exchanges = corpus().iter().map(|input| sends([&**input])).collect();
            compare(&direct, &hyper, exchanges).await;
        });
    }
}

#[test]
fn both_answer_alike_to_a_client_that_sends_no_more() {
    test(async |direct, hyper| {
        let ends = |input: &Vec<u8>| [sends([&**input]), vec![Step::ShutDown]].concat();
        let exchanges = corpus().iter().map(ends).collect();
        compare(&direct, &hyper, exchanges).await;
    });
}

#[test]
fn both_answer_alike_to_what_arrives_in_two_pieces_wherever_they_part() {
    test(async |direct, hyper| {
        let mut exchanges = Vec::new();
        for input in corpus().into_iter().filter(|input| input.len() < 120) {
            for at in 1..input.len() {
                exchanges.push(sends([&input[..at], &input[at..]]));
            }
        }
        compare(&direct, &hyper, exchanges).await;
    });
}

#[test]
fn both_answer_alike_to_what_arrives_in_small_pieces() {
    test(async |direct, hyper| {
        let mut exchanges = Vec::new();
        for input in corpus().into_iter().filter(|input| input.len() < 600) {
            for length in [1, 7, 24, 25] {
                exchanges.push(sends(input.chunks(length)));
            }
        }
        compare(&direct, &hyper, exchanges).await;
    });
}

#[test]
fn both_answer_alike_to_input_that_is_somewhat_wrong() {
    let corpus = corpus();
    for mut random in Rounds::new(10) {
        test(async |direct, hyper| {
            let exchanges = (0..AT_A_TIME)
                .map(|_| sends(mutated(&corpus, &mut random).iter().map(Vec::as_slice)))
                .collect();
            compare(&direct, &hyper, exchanges).await;
        });
    }
}

/// Requests, handled fast and slowly, that arrive in pieces with pauses up to and beyond each timeout, from clients that go away or stay,
/// to servers that go on or stop.
#[test]
fn both_answer_alike_at_any_moment() {
    let corpus = corpus();
    let slow: Vec<_> = ["/slow", "/slow-once", "/once", "/stream"]
        .iter()
        .map(|path| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes())
        .collect();
    for random in Rounds::new(10) {
        let is_alike = || {
            let (mut random, mut is_alike) = (random.clone(), false);
            test(async |direct, hyper| {
                let exchanges: Vec<_> = (0..AT_A_TIME)
                    .map(|_| {
                        let mut pieces = Vec::new();
                        for _ in 0..random.below(3) {
                            pieces.push(slow[random.below(slow.len() as u64) as usize].clone());
                        }
                        pieces.extend(mutated(&corpus, &mut random));
                        with_pauses(pieces, &mut random)
                    })
                    .collect();
                let stops = random.below(2) == 0;
                let after = Duration::from_millis(random.below(400_000));
                let servers = [direct.server.clone(), hyper.server.clone()];
                let stopping = spawn_local(async move {
                    sleep(after).await;
                    if stops {
                        servers.iter().for_each(Server::stop);
                    }
                });
                is_alike = ended_apart(&direct, &hyper, exchanges).await.is_empty();
                stopping.abort();
            });
            is_alike
        };
        assert!(
            (0..ATTEMPTS).any(|_| is_alike()),
            "both do not end at the same time"
        );
    }
}

fn with_pauses(pieces: Vec<Vec<u8>>, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for piece in pieces {
        if random.below(3) == 0 {
            let pauses = [1, 20, 150, 298, 302].map(Duration::from_secs);
            steps.push(Step::Wait(pauses[random.below(5) as usize]));
        }
        steps.push(Step::Send(piece));
    }
    if random.below(4) == 0 {
        steps.push(Step::ShutDown);
    }
    steps
}

/// A few requests of the corpus with a few changes, in a few pieces.
fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<Vec<u8>> {
    let mut input = Vec::new();
    for _ in 0..=random.below(2) {
        let chosen = &corpus[random.below(corpus.len() as u64) as usize];
        input.extend_from_slice(&chosen[..chosen.len().min(2_000)]);
    }
    for _ in 0..random.below(4) {
        let at = random.below(input.len() as u64) as usize;
        match random.below(5) {
            0 => drop(input.remove(at)),
            1 => input.insert(at, random.next() as u8),
            2 => input[at] = random.next() as u8,
            3 => input[at] = *b"\r\n :,\0;/?".get(random.below(9) as usize).unwrap(),
            _ => {
                let end = (at + random.below(40) as usize).min(input.len());
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
        }
        if input.is_empty() {
            input.push(b'G');
        }
    }
    let mut pieces = vec![input];
    for _ in 0..random.below(4) {
        let last = pieces.pop().unwrap();
        let at = random.below(last.len() as u64 + 1) as usize;
        let (one, other) = last.split_at(at);
        pieces.extend([one.to_vec(), other.to_vec()]);
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[test]
fn a_large_answer_reaches_a_client_that_takes_it_slowly_and_the_next_request_is_answered() {
    test(async |direct, hyper| {
        let addresses = [direct.address, hyper.address];
        let paths = ["/large", "/large-once", "/large-file"];
        for (address, path) in addresses
            .into_iter()
            .flat_map(|address| paths.map(|path| (address, path)))
        {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(16 << 10).unwrap();
            let mut socket = socket.connect(address).await.unwrap();
            let requests = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n{NEXT}");
            socket.write_all(requests.as_bytes()).await.unwrap();
            for _ in 0..50 {
                yield_now().await;
            }
            let mut received = Vec::new();
            let mut room = [0; 5_000];
            loop {
                match socket.read(&mut room).await.unwrap() {
                    0 => break,
                    length => received.extend_from_slice(&room[..length]),
                }
                yield_now().await;
            }
            let text = String::from_utf8(received).unwrap();
            assert!(text.contains(&format!("content-length: {LARGE}\r\n")));
            let (_, rest) = text.split_once("\r\n\r\n").unwrap();
            let (body, next) = rest.split_at(LARGE);
            assert!(body.bytes().all(|byte| byte == b'x'));
            assert!(next.starts_with("HTTP/1.1 200 OK\r\n"), "{next}");
            assert!(next.contains("GET /end"), "{next}");
        }
    });
}

#[test]
fn a_connection_that_has_sent_files_is_still_served_without_hyper() {
    run_for(DAYS, async {
        let (server, address) = listening(limits(), false);
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let fields = EncodedFields::encode(&HeaderMap::new()).unwrap();
        let mut room = vec![0; LARGE + 1_000];
        for file in [&*SMALL_FILE, &*LARGE_FILE] {
            socket.write_all(request).await.unwrap();
            let call = handed(&server).await;
            assert!(call.respond(file.answer(call.head(), StatusCode::OK, HeaderMap::new())));
            let mut received = 0;
            while received < file.size() as usize {
                received += socket.read(&mut room).await.unwrap();
            }
            socket.write_all(request).await.unwrap();
            let call = handed(&server).await;
            let answered = call.respond_at_once(StatusCode::OK, &fields, b"x");
            assert_eq!(answered, Some(true));
            assert!(socket.read(&mut room).await.unwrap() > 0);
        }
    });
}

#[test]
fn a_response_is_queued_until_the_socket_has_all_of_it() {
    run_for(DAYS, async {
        let (server, address) = listening(limits(), false);
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let mut room = vec![0; LARGE + 1_000];
        for (file, is_queued) in [(&*SMALL_FILE, false), (&*LARGE_FILE, true)] {
            socket.write_all(request).await.unwrap();
            let call = handed(&server).await;
            call.respond(file.answer(call.head(), StatusCode::OK, HeaderMap::new()));
            assert_eq!(call.is_queued(), is_queued, "{} bytes", file.size());
            let mut received = 0;
            while received < file.size() as usize {
                received += socket.read(&mut room).await.unwrap();
            }
        }
        socket.write_all(request).await.unwrap();
        let call = handed(&server).await;
        let (writer, body) = Body::stream(None);
        call.respond(Response::new(body));
        assert!(socket.read(&mut room).await.unwrap() > 0);
        writer.write("the end".into()).unwrap();
        writer.end(None);
        assert!(call.is_queued(), "the connection has taken the head only");
    });
}

#[test]
fn a_file_that_becomes_shorter_while_it_is_sent_ends_the_connection() {
    run_for(DAYS, async {
        for with_hyper in [false, true] {
            let (server, address) = listening(limits(), with_hyper);
            let (file, written) = file(20 << 20);
            let mut socket = TcpStream::connect(address).await.unwrap();
            let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
            socket.write_all(request).await.unwrap();
            let call = handed(&server).await;
            call.respond(file.answer(call.head(), StatusCode::OK, HeaderMap::new()));
            drop(call);
            written.set_len(100_000).unwrap();
            let mut received = Vec::new();
            let _ = socket.read_to_end(&mut received).await;
            // hyper may not have sent what it has read before the end.
            assert!(with_hyper || received.starts_with(b"HTTP/1.1 200 OK\r\n"));
            assert!(received.len() < 20 << 20, "{}", received.len());
            while server.connections() > 0 {
                sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(server.in_flight(), 0);
        }
    });
}

/// The requests that a server hands out, and what becomes of them.
async fn handed(server: &Server) -> Rc<Call> {
    loop {
        server.next().await;
        if let Some(Event::Request(call)) = server.take() {
            return call;
        }
    }
}

#[test]
fn a_client_that_goes_away_is_noticed_while_its_request_is_handled() {
    run_for(DAYS, async {
        for with_hyper in [false, true] {
            for how in [Shutdown::Both, Shutdown::Write] {
                let (server, address) = listening(limits(), with_hyper);
                let client = std::net::TcpStream::connect(address).unwrap();
                std::io::Write::write_all(&mut &client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    .unwrap();
                let call = handed(&server).await;
                assert!(call.is_open());
                client.shutdown(how).unwrap();
                server.next().await;
                assert!(matches!(server.take(), Some(Event::Gone(id)) if id == call.id()));
                assert!(!call.is_open());
                assert!(!call.respond(Response::new(Body::from(Bytes::from_static(b"late")))));
                call.handled();
                assert_eq!(server.in_flight(), 0);
            }
        }
    });
}

#[test]
fn a_request_is_answered_that_is_handled_when_the_server_stops() {
    run_for(DAYS, async {
        for with_hyper in [false, true] {
            let (server, address) = listening(limits(), with_hyper);
            let mut socket = TcpStream::connect(address).await.unwrap();
            let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
            socket.write_all(&request.repeat(2)).await.unwrap();
            let call = handed(&server).await;
            server.stop();
            let fields = EncodedFields::encode(&HeaderMap::new()).unwrap();
            assert_eq!(call.respond_at_once(StatusCode::OK, &fields, b"x"), None);
            assert!(call.respond(Response::new(Body::from(Bytes::from_static(b"done")))));
            let mut received = String::new();
            socket.read_to_string(&mut received).await.unwrap();
            assert!(received.contains("connection: close\r\n"), "{received}");
            assert!(received.ends_with("done"), "{received}");
            server.drained().await;
        }
    });
}

#[test]
fn both_answer_a_connection_that_is_too_old_for_the_last_time() {
    let limits = Limits {
        max_age: Some(Duration::from_secs(100)),
        age_grace: Some(Duration::from_secs(30)),
        ..limits()
    };
    test_with(limits, async |direct, hyper| {
        let get =
            |path: &str| Step::Send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes());
        let wait = |seconds| Step::Wait(Duration::from_secs(seconds));
        let exchanges = vec![
            vec![get("/once"), wait(85), get("/once"), wait(30), get("/once")],
            vec![get("/once"), wait(115), get("/once"), get("/once")],
            vec![wait(85), get("/slow-once"), get("/once")],
            vec![wait(85), get("/slow"), get("/once")],
            vec![
                Step::Send(b"GET / HT".to_vec()),
                wait(115),
                Step::Send(b"TP".to_vec()),
            ],
        ];
        compare(&direct, &hyper, exchanges).await;
    });
}

#[test]
fn a_request_past_its_deadline_is_refused_before_its_handler_runs() {
    run_for(DAYS, async {
        tokio::time::pause();
        let mut answers = Vec::new();
        for with_hyper in [false, true] {
            let (server, address) = listening(
                Limits {
                    in_flight: 1,
                    deadline: Some(IDLE / 10),
                    ..limits()
                },
                with_hyper,
            );
            let request: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
            let _held = TcpStream::connect(address).await.unwrap();
            let first = spawn_local(async move { exchange(address, &[request]).await });
            let held = handed(&server).await;
            answers.push(exchange(address, &[request]).await);
            assert!(answers[0].starts_with("HTTP/1.1 503 "), "{answers:?}");
            held.respond(Response::new(Body::from(Bytes::from_static(b"held"))));
            assert!(first.await.unwrap().ends_with("held"));
        }
        assert_eq!(answers[0], answers[1]);
    });
}

#[test]
fn requests_beyond_the_queue_are_refused_and_the_connection_goes_on() {
    run_for(DAYS, async {
        tokio::time::pause();
        let mut answers = Vec::new();
        for with_hyper in [false, true] {
            let (server, address) = listening(
                Limits {
                    in_flight: 1,
                    queue: 1,
                    ..limits()
                },
                with_hyper,
            );
            let request: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
            let one = spawn_local(async move { exchange(address, &[request]).await });
            let call = handed(&server).await;
            let other = spawn_local(async move { exchange(address, &[request]).await });
            while server.in_flight() < 2 {
                yield_now().await;
            }
            answers.push(exchange(address, &[&request.repeat(3)]).await);
            assert_eq!(
                answers[0].matches("HTTP/1.1 503 ").count(),
                3,
                "{answers:?}"
            );
            call.respond(Response::new(Body::from(Bytes::from_static(b"one"))));
            call.handled();
            let call = handed(&server).await;
            call.respond(Response::new(Body::from(Bytes::from_static(b"other"))));
            assert!(one.await.unwrap().ends_with("one"));
            assert!(other.await.unwrap().ends_with("other"));
        }
        assert_eq!(answers[0], answers[1]);
    });
}

#[test]
fn a_slow_client_that_takes_nothing_is_cut_off() {
    run_for(DAYS, async {
        tokio::time::pause();
        for with_hyper in [false, true] {
            let (server, address) = listening(
                Limits {
                    write_timeout: IDLE / 10,
                    ..limits()
                },
                with_hyper,
            );
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(4 << 10).unwrap();
            let mut socket = socket.connect(address).await.unwrap();
            socket
                .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                .await
                .unwrap();
            let call = handed(&server).await;
            call.respond(Response::new(Body::from(Bytes::from(vec![b'x'; 20 << 20]))));
            while server.connections() > 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    });
}

#[test]
fn the_requests_of_a_connection_are_handled_one_after_the_other() {
    run_for(DAYS, async {
        for with_hyper in [false, true] {
            let (server, address) = listening(limits(), with_hyper);
            let paths = Rc::new(RefCell::new(Vec::new()));
            let mut socket = TcpStream::connect(address).await.unwrap();
            let requests: String = (0..50)
                .map(|number| format!("GET /{number} HTTP/1.1\r\nHost: x\r\n\r\n"))
                .collect();
            socket.write_all(requests.as_bytes()).await.unwrap();
            for number in 0..50 {
                let call = handed(&server).await;
                assert_eq!(server.in_flight(), 1);
                paths.borrow_mut().push(call.path().to_owned());
                call.respond(Response::new(Body::from(Bytes::from(format!(
                    "<{number}>"
                )))));
            }
            let expected: Vec<_> = (0..50).map(|number| format!("/{number}")).collect();
            assert_eq!(*paths.borrow(), expected);
            server.stop();
            let mut received = String::new();
            socket.read_to_string(&mut received).await.unwrap();
            let at: Vec<_> = (0..50)
                .map(|number| received.find(&format!("<{number}>")).unwrap())
                .collect();
            assert!(at.is_sorted());
        }
    });
}
