//! Metrics, readiness and liveness over HTTP: of a supervisor and its workers, or of a process without supervisor.
//!
//! A thread of its own serves them, so that they are answered while PHP computes. It serves all clients concurrently and each for a few
//! seconds at most, so clients that connect and send nothing do not delay an orchestrator's probe.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::channel::Channel;
use super::loop_watchdog;
use super::supervisor::{Supervisor, WorkerChannels};
use crate::{metrics, panics};

/// From the acceptance of a connection to the last byte of the response.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// Workers that have not sent their metrics by then are left out.
const WORKERS_TIMEOUT: Duration = Duration::from_secs(2);
/// `/live` fails once the loop has not turned for this long.
const LOOP_BLOCKED_AFTER: Duration = Duration::from_secs(10);
/// Bytes of a request line and its headers.
const MAX_REQUEST_BYTES: usize = 8 * 1024;
/// Concurrent connections; one more closes the oldest.
const MAX_CONNECTIONS: usize = 64;
/// Delay after a failure to accept, doubled each time: a lack of descriptors (EMFILE) lasts until one is free.
const MIN_ACCEPT_DELAY: Duration = Duration::from_millis(10);
const MAX_ACCEPT_DELAY: Duration = Duration::from_secs(1);

/// A listening socket and the thread behind it.
pub struct MetricsServer {
    state: Arc<State>,
    address: SocketAddr,
}

struct State {
    /// `None` in a process without supervisor.
    workers: Option<WorkerChannels>,
    started: Instant,
    /// Milliseconds after `started` at which the supervisor's loop last turned.
    turned: AtomicU64,
    ready: AtomicU64,
    wanted: AtomicU64,
    stopping: AtomicBool,
    /// The health checks that fail, a line each.
    failing: Mutex<Vec<String>>,
    history: Mutex<History>,
    /// Why connections cannot be accepted, until it is logged.
    warning: Mutex<Option<String>>,
}

/// What workers have sent, so that a worker's counters go on after its end.
#[derive(Default)]
struct History {
    /// The name and the last metrics of each worker that has not ended, by pid.
    last: HashMap<u32, (String, String)>,
    /// The counters and histograms of the workers that have ended, by name.
    ended: HashMap<String, String>,
}

impl History {
    /// Takes the answers of workers, and returns what is to be shown for them and for those that have ended.
    fn update(
        &mut self,
        answers: Vec<(u32, (String, String))>,
        runs: impl Fn(u32) -> bool,
    ) -> Vec<(String, String)> {
        let mut shown = Vec::with_capacity(answers.len());
        for (pid, answer) in answers {
            if runs(pid) {
                shown.push(answer.clone());
                self.last.insert(pid, answer);
            } else if let Some(last) = self.last.get_mut(&pid) {
                *last = answer;
            }
        }
        for (_, (name, text)) in self.last.extract_if(|pid, _| !runs(*pid)) {
            let ended = self.ended.entry(name).or_default();
            let own = (String::new(), metrics::totals(&text));
            *ended = metrics::merge(&[(String::new(), std::mem::take(ended)), own]);
        }
        let ended = self.ended.iter();
        shown.extend(ended.map(|(name, text)| (name.clone(), text.clone())));
        shown
    }
}

impl MetricsServer {
    /// Listens on `address`, such as `127.0.0.1:9464`, and serves `/metrics`, `/ready` and `/live`.
    pub fn open(address: &str, supervisor: &Supervisor) -> io::Result<Self> {
        Self::serve(address, Some(Arc::clone(&supervisor.channels)))
    }

    /// Serves the same for this process alone. It is ready from the first [`update`](Self::update) that reports a ready worker.
    pub fn of_this_process(address: &str) -> io::Result<Self> {
        loop_watchdog::measure();
        Self::serve(address, None)
    }

    fn serve(address: &str, workers: Option<WorkerChannels>) -> io::Result<Self> {
        let listener = StdTcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State::new(workers));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = {
            let _context = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let shared = Arc::clone(&state);
        crate::thread::spawn("weft-metrics", move || {
            shared.survive_panics(MAX_ACCEPT_DELAY, || {
                runtime.block_on(accept_all(&listener, &shared));
            });
        })?;
        Ok(Self { state, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reports the state of the workers, and the health checks that fail, by name. Call it in each turn of the supervisor's loop: `/live`
    /// fails when it stops.
    pub fn update(&self, ready: u64, wanted: u64, stopping: bool, failing: Vec<String>) {
        let now = self.state.started.elapsed().as_millis() as u64;
        self.state.turned.store(now, Ordering::Relaxed);
        self.state.ready.store(ready, Ordering::Relaxed);
        self.state.wanted.store(wanted, Ordering::Relaxed);
        self.state.stopping.store(stopping, Ordering::Relaxed);
        *lock(&self.state.failing) = failing;
    }

    /// Why connections could not be accepted since the last call, for the log.
    pub fn take_warning(&self) -> Option<String> {
        lock(&self.state.warning).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Never returns: the listener stays open for the life of the process.
async fn accept_all(listener: &TcpListener, state: &Arc<State>) {
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    let mut delay = MIN_ACCEPT_DELAY;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                delay = MIN_ACCEPT_DELAY;
                admit(&mut open, stream, state);
            }
            Err(error) => {
                state.accept_failed(&error);
                sleep(delay).await;
                delay = (delay * 2).min(MAX_ACCEPT_DELAY);
            }
        }
    }
}

/// Serves one more connection, and closes the oldest if there are too many.
fn admit(open: &mut VecDeque<AbortHandle>, stream: TcpStream, state: &Arc<State>) {
    open.retain(|connection| !connection.is_finished());
    if open.len() >= MAX_CONNECTIONS
        && let Some(oldest) = open.pop_front()
    {
        oldest.abort();
    }
    let state = Arc::clone(state);
    let serving = tokio::spawn(async move {
        let _ = timeout(CONNECTION_TIMEOUT, serve(state, stream)).await;
    });
    open.push_back(serving.abort_handle());
}

impl State {
    fn new(workers: Option<WorkerChannels>) -> Self {
        Self {
            workers,
            started: Instant::now(),
            turned: AtomicU64::new(0),
            ready: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            failing: Mutex::default(),
            history: Mutex::default(),
            warning: Mutex::default(),
        }
    }

    /// Calls `serve` again after each of its panics, which are bugs in Weft: probes that nobody answers would end a healthy process.
    fn survive_panics(&self, pause: Duration, mut serve: impl FnMut()) {
        while let Err(panic) = panics::caught_call(&mut serve) {
            *lock(&self.warning) = Some(format!("internal error: {panic}; trying again"));
            std::thread::sleep(pause);
        }
    }

    /// Counts a failure, most likely a lack of descriptors (EMFILE, ENFILE), and keeps it for the log.
    fn accept_failed(&self, error: &io::Error) {
        let name = "weft_metrics_accept_failures_total";
        let help = "Failures to accept a connection to /metrics, /ready and /live.";
        metrics::counter(name, help, &[]).add(1);
        *lock(&self.warning) = Some(format!("{error}; trying again"));
    }

    async fn respond(&self, request: &Request<Incoming>) -> Response<String> {
        let text = "text/plain; charset=utf-8";
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = response(
                StatusCode::METHOD_NOT_ALLOWED,
                text,
                "Only GET and HEAD.\n".to_owned(),
            );
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match request.uri().path() {
            "/metrics" => {
                let format = "text/plain; version=0.0.4; charset=utf-8";
                response(StatusCode::OK, format, self.metrics().await)
            }
            "/ready" => {
                let (is_ready, body) = self.readiness();
                response(available(is_ready), text, body)
            }
            "/live" => {
                let (is_live, body) = self.liveness();
                response(available(is_live), text, body)
            }
            _ => response(
                StatusCode::NOT_FOUND,
                text,
                "There is /metrics, /ready and /live.\n".to_owned(),
            ),
        }
    }

    fn readiness(&self) -> (bool, String) {
        let ready = self.ready.load(Ordering::Relaxed);
        let wanted = self.wanted.load(Ordering::Relaxed);
        let stopping = self.stopping.load(Ordering::Relaxed);
        let suffix = if stopping { ", stopping" } else { "" };
        let mut body = format!("{ready} of {wanted} workers are ready{suffix}\n");
        for check in lock(&self.failing).iter() {
            body.push_str("failing: ");
            body.push_str(check);
            body.push('\n');
        }
        (ready > 0 && !stopping, body)
    }

    fn liveness(&self) -> (bool, String) {
        let (whose, age) = if self.workers.is_some() {
            let turned = Duration::from_millis(self.turned.load(Ordering::Relaxed));
            let age = self.started.elapsed().saturating_sub(turned);
            ("the supervisor's", age)
        } else {
            ("the event", loop_watchdog::busy_for())
        };
        let body = format!("{whose} loop turned {:.1} s ago\n", age.as_secs_f64());
        (age < LOOP_BLOCKED_AFTER, body)
    }

    /// The metrics of this process and of every worker that answers in time; all workers are asked at once.
    async fn metrics(&self) -> String {
        let Some(workers) = &self.workers else {
            return metrics::render();
        };
        let asked: Vec<(u32, String, io::Result<UnixStream>)> = lock(workers)
            .iter()
            .map(|(pid, (name, channel))| (*pid, name.clone(), ask(channel)))
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        for (pid, name, stream) in asked {
            let Ok(mut stream) = stream else {
                continue;
            };
            answers.push(tokio::spawn(async move {
                let mut text = String::new();
                let read = timeout(WORKERS_TIMEOUT, stream.read_to_string(&mut text));
                matches!(read.await, Ok(Ok(_))).then_some((pid, (name, text)))
            }));
        }
        let mut received = Vec::with_capacity(answers.len());
        for answer in answers {
            received.extend(answer.await.ok().flatten());
        }
        let mut texts = vec![(String::new(), metrics::render())];
        let workers = lock(workers);
        let shown = lock(&self.history).update(received, |pid| workers.contains_key(&pid));
        drop(workers);
        texts.extend(shown);
        metrics::merge(&texts)
    }
}

/// Sends the worker a socket to write its metrics to: however long they are, they do not fill the channel.
fn ask(channel: &Channel) -> io::Result<UnixStream> {
    let (own, worker) = StdUnixStream::pair()?;
    own.set_nonblocking(true)?;
    channel.send("{\"type\":\"metrics\"}", &[worker.as_fd()], false)?;
    UnixStream::from_std(own)
}

/// Answers one request.
async fn serve(state: Arc<State>, stream: TcpStream) -> hyper::Result<()> {
    let service = service_fn(|request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(state.respond(&request).await) }
    });
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_REQUEST_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn available(yes: bool) -> StatusCode {
    if yes {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    async fn get(address: SocketAddr, path: &str) -> String {
        request(address, "GET", path).await
    }

    async fn request(address: SocketAddr, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = timeout(Duration::from_secs(60), stream.read_to_string(&mut answer));
        read.await.unwrap().unwrap();
        answer
    }

    /// Bytes read until the other side has closed.
    async fn closed(stream: &mut TcpStream) -> bool {
        let mut bytes = Vec::new();
        let read = timeout(Duration::from_secs(60), stream.read_to_end(&mut bytes));
        read.await.is_ok()
    }

    #[tokio::test]
    async fn silent_clients_delay_nobody_and_the_oldest_of_too_many_is_closed() {
        let server = MetricsServer::of_this_process("127.0.0.1:0").unwrap();
        server.update(1, 1, false, Vec::new());
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            silent.push(TcpStream::connect(server.address()).await.unwrap());
        }
        // Were they served one after the other, each with its own time limit, this would take minutes.
        assert!(
            get(server.address(), "/live")
                .await
                .starts_with("HTTP/1.1 200 OK")
        );
        assert!(closed(&mut silent[0]).await);
        let newest = silent.last_mut().unwrap();
        newest
            .write_all(b"GET /ready HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        newest.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("1 of 1 workers are ready\n"), "{answer}");
    }

    #[tokio::test]
    async fn a_request_that_is_too_long_is_refused() {
        let server = MetricsServer::of_this_process("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let _ = stream.write_all(&[b'x'; 2 * MAX_REQUEST_BYTES]).await;
        assert!(closed(&mut stream).await);
    }

    #[tokio::test]
    async fn other_paths_and_methods_are_refused_and_head_has_no_body() {
        let server = MetricsServer::of_this_process("127.0.0.1:0").unwrap();
        let missing = get(server.address(), "/").await;
        assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
        let posted = request(server.address(), "POST", "/live").await;
        assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
        assert!(posted.contains("\r\nallow: GET, HEAD\r\n"), "{posted}");
        let head = request(server.address(), "HEAD", "/live").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
    }

    /// Every accept fails immediately, as with EMFILE: the socket does not listen.
    #[tokio::test(start_paused = true)]
    async fn failures_to_accept_are_counted_and_tried_again_after_growing_pauses() {
        let state = Arc::new(State::new(None));
        let counter = metrics::counter(
            "weft_metrics_accept_failures_total",
            "Failures to accept a connection to /metrics, /ready and /live.",
            &[],
        );
        let before = counter.value();
        let listener = not_listening();
        let accepting = accept_all(&listener, &state);
        assert!(timeout(Duration::from_secs(60), accepting).await.is_err());
        // 10 ms to 640 ms, then one a second.
        let failures = counter.value() - before;
        assert!((60..=70).contains(&failures), "{failures}");
        assert!(
            lock(&state.warning)
                .as_ref()
                .unwrap()
                .ends_with("; trying again")
        );
    }

    #[test]
    fn a_panic_is_reported_and_requests_are_served_again() {
        let state = State::new(None);
        let mut calls = 0;
        state.survive_panics(Duration::ZERO, || {
            calls += 1;
            assert!(calls == 3, "on purpose");
        });
        assert_eq!(calls, 3);
        let warning = lock(&state.warning).take();
        assert_eq!(
            warning.as_deref(),
            Some("internal error: on purpose; trying again")
        );
    }

    /// A bound socket that does not listen: accept(2) fails with EINVAL.
    fn not_listening() -> TcpListener {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        socket.bind(&address.into()).unwrap();
        socket.set_nonblocking(true).unwrap();
        TcpListener::from_std(socket.into()).unwrap()
    }

    #[test]
    fn the_end_of_a_worker_is_no_reset_of_its_counters() {
        let text = |count: u32| {
            let head = "# HELP a_total A.\n# TYPE a_total counter\n";
            format!("{head}a_total {count}\n# HELP b B.\n# TYPE b gauge\nb 1\n")
        };
        let answer = |pid, count| (pid, ("1".to_owned(), text(count)));
        let shown = |history: &mut History, answers, living: &[u32]| {
            let texts = history.update(answers, |pid| living.contains(&pid));
            metrics::merge(&texts)
        };
        let mut history = History::default();
        let first = shown(&mut history, vec![answer(10, 200)], &[10]);
        assert!(first.contains("a_total{worker=\"1\"} 200\n"), "{first}");
        let both = shown(
            &mut history,
            vec![answer(10, 201), answer(11, 1)],
            &[10, 11],
        );
        assert!(both.contains("a_total{worker=\"1\"} 202\n"), "{both}");
        assert!(both.contains("b{worker=\"1\"} 2\n"), "{both}");
        for count in [2, 3] {
            let later = shown(&mut history, vec![answer(11, count)], &[11]);
            let line = format!("a_total{{worker=\"1\"}} {}\n", 201 + count);
            assert!(later.contains(&line), "{later}");
            assert!(later.contains("b{worker=\"1\"} 1\n"), "{later}");
        }
        // An answer to a request before the end of the worker.
        let late = shown(&mut history, vec![answer(10, 201), answer(11, 3)], &[11]);
        assert!(late.contains("a_total{worker=\"1\"} 204\n"), "{late}");
    }
}
