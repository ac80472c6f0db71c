//! Metrics, readiness and liveness of a supervisor, or of a process that has none, over HTTP, answered by a thread of its own.
//!
//! The thread serves all its clients at the same time and each for a few seconds at most, so clients that connect and say nothing do not
//! keep an orchestrator from its answer.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::channel::Channel;
use super::pulse;
use super::supervisor::{Roster, Supervisor};
use crate::metrics;

/// One connection, from its first byte to the last one of the answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// For all workers together to send their metrics.
const WORKERS_TIMEOUT: Duration = Duration::from_secs(2);
/// A process whose loop has not turned for so long is not alive.
const STALE: Duration = Duration::from_secs(10);
const LONGEST_REQUEST: usize = 8 * 1024;
/// Connections at the same time. One more ends the oldest.
const MOST_CONNECTIONS: usize = 64;
/// After a failure to accept, such as EMFILE, which lasts until a descriptor is free: twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What the thread answers from.
pub struct Endpoint {
    state: Arc<State>,
    address: SocketAddr,
}

struct State {
    /// None in a process that is its own worker.
    roster: Option<Roster>,
    started: Instant,
    /// Milliseconds after `started` at which the supervisor's loop last turned.
    turned: AtomicU64,
    ready: AtomicU64,
    wanted: AtomicU64,
    stopping: AtomicBool,
    /// Why connections cannot be accepted, until somebody logs it.
    warning: Mutex<Option<String>>,
}

impl Endpoint {
    /// Listens on `address`, such as `127.0.0.1:9464`, and serves `/metrics`, `/ready` and `/live`.
    pub fn open(address: &str, supervisor: &Supervisor) -> io::Result<Self> {
        Self::serve(address, Some(Arc::clone(&supervisor.roster)))
    }

    /// The same for this process alone, which is ready from the first [`update`](Self::update) with a worker on.
    pub fn of_this_process(address: &str) -> io::Result<Self> {
        pulse::measure();
        Self::serve(address, None)
    }

    fn serve(address: &str, roster: Option<Roster>) -> io::Result<Self> {
        let listener = StdTcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            roster,
            started: Instant::now(),
            turned: AtomicU64::new(0),
            ready: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            warning: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = {
            let _context = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let shared = Arc::clone(&state);
        crate::thread::spawn("weft-endpoint", move || {
            runtime.block_on(accept_all(&listener, &shared));
        })?;
        Ok(Self { state, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// To be called with each turn of the supervisor's loop.
    pub fn update(&self, ready: u64, wanted: u64, stopping: bool) {
        let now = self.state.started.elapsed().as_millis() as u64;
        self.state.turned.store(now, Ordering::Relaxed);
        self.state.ready.store(ready, Ordering::Relaxed);
        self.state.wanted.store(wanted, Ordering::Relaxed);
        self.state.stopping.store(stopping, Ordering::Relaxed);
    }

    /// Why connections could not be accepted since the last call, for the log.
    pub fn take_warning(&self) -> Option<String> {
        lock(&self.state.warning).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Never ends: the listener stays open for the life of the process.
async fn accept_all(listener: &TcpListener, state: &Arc<State>) {
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    let mut pause = FIRST_PAUSE;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                pause = FIRST_PAUSE;
                admit(&mut open, stream, state);
            }
            Err(error) => {
                state.accept_failed(&error);
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Serves one more connection, in the place of the oldest if there are too many.
fn admit(open: &mut VecDeque<AbortHandle>, stream: TcpStream, state: &Arc<State>) {
    open.retain(|connection| !connection.is_finished());
    if open.len() >= MOST_CONNECTIONS
        && let Some(oldest) = open.pop_front()
    {
        oldest.abort();
    }
    let state = Arc::clone(state);
    let serving = tokio::spawn(async move {
        let _ = timeout(CONNECTION_TIMEOUT, state.serve(stream)).await;
    });
    open.push_back(serving.abort_handle());
}

impl State {
    /// Counts and keeps for the log what most likely is a lack of descriptors (EMFILE, ENFILE).
    fn accept_failed(&self, error: &io::Error) {
        let name = "weft_endpoint_accept_failures_total";
        let help = "Failures to accept a connection to /metrics, /ready and /live.";
        metrics::counter(name, help, &[]).add(1);
        *lock(&self.warning) = Some(format!("{error}; trying again"));
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let head = read_head(&mut stream).await?;
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let path = target.split('?').next().unwrap_or("");
        let (status, kind, body) = match (method, path) {
            ("GET" | "HEAD", "/metrics") => {
                ("200 OK", "text/plain; version=0.0.4", self.metrics().await)
            }
            ("GET" | "HEAD", "/ready") => self.readiness(),
            ("GET" | "HEAD", "/live") => self.liveness(),
            ("GET" | "HEAD", _) => (
                "404 Not Found",
                "text/plain",
                "There is /metrics, /ready and /live.\n".to_owned(),
            ),
            _ => (
                "405 Method Not Allowed",
                "text/plain",
                "Only GET and HEAD.\n".to_owned(),
            ),
        };
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        if method != "HEAD" {
            answer.push_str(&body);
        }
        stream.write_all(answer.as_bytes()).await
    }

    fn readiness(&self) -> (&'static str, &'static str, String) {
        let ready = self.ready.load(Ordering::Relaxed);
        let mut body = String::new();
        let wanted = self.wanted.load(Ordering::Relaxed);
        let _ = write!(body, "{ready} of {wanted} workers are ready");
        let stopping = self.stopping.load(Ordering::Relaxed);
        body.push_str(if stopping { ", stopping\n" } else { "\n" });
        let status = if ready > 0 && !stopping {
            "200 OK"
        } else {
            "503 Service Unavailable"
        };
        (status, "text/plain", body)
    }

    fn liveness(&self) -> (&'static str, &'static str, String) {
        let (whose, age) = if self.roster.is_some() {
            let turned = Duration::from_millis(self.turned.load(Ordering::Relaxed));
            let age = self.started.elapsed().saturating_sub(turned);
            ("the supervisor's", age)
        } else {
            ("the event", pulse::running_for())
        };
        let status = if age < STALE {
            "200 OK"
        } else {
            "503 Service Unavailable"
        };
        let body = format!("{whose} loop turned {:.1} s ago\n", age.as_secs_f64());
        (status, "text/plain", body)
    }

    /// Those of this process and of every worker that answers in time, all asked at once.
    async fn metrics(&self) -> String {
        let Some(roster) = &self.roster else {
            return metrics::render();
        };
        let asked: Vec<(String, io::Result<UnixStream>)> = lock(roster)
            .values()
            .map(|(name, channel)| (name.clone(), ask(channel)))
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        for (name, stream) in asked {
            let Ok(mut stream) = stream else {
                continue;
            };
            answers.push(tokio::spawn(async move {
                let mut text = String::new();
                let read = timeout(WORKERS_TIMEOUT, stream.read_to_string(&mut text));
                matches!(read.await, Ok(Ok(_))).then_some((name, text))
            }));
        }
        let mut texts = vec![(String::new(), metrics::render())];
        for answer in answers {
            texts.extend(answer.await.ok().flatten());
        }
        metrics::merge(&texts)
    }
}

/// Gives the worker a socket to write its metrics to, so that they may be long and nobody has to wait for room.
fn ask(channel: &Channel) -> io::Result<UnixStream> {
    let (own, worker) = StdUnixStream::pair()?;
    own.set_nonblocking(true)?;
    channel.send("{\"type\":\"metrics\"}", &[worker.as_fd()], false)?;
    UnixStream::from_std(own)
}

/// The request line and whatever came with it; RFC 9112 §3.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 || head.len() > LONGEST_REQUEST {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = timeout(Duration::from_secs(30), stream.read_to_string(&mut answer));
        read.await.unwrap().unwrap();
        answer
    }

    /// Bytes read until the other side has closed.
    async fn closed(stream: &mut TcpStream) -> bool {
        let mut bytes = Vec::new();
        let read = timeout(Duration::from_secs(30), stream.read_to_end(&mut bytes));
        read.await.is_ok()
    }

    #[tokio::test]
    async fn silent_clients_delay_nobody_and_the_oldest_of_too_many_is_closed() {
        let endpoint = Endpoint::of_this_process("127.0.0.1:0").unwrap();
        endpoint.update(1, 1, false);
        let mut silent = Vec::new();
        for _ in 0..MOST_CONNECTIONS {
            silent.push(TcpStream::connect(endpoint.address()).await.unwrap());
        }
        // Were they served one after the other, each with its own time limit, this would take minutes.
        assert!(
            get(endpoint.address(), "/live")
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
    async fn a_request_that_is_too_long_is_cut_off() {
        let endpoint = Endpoint::of_this_process("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(endpoint.address()).await.unwrap();
        let _ = stream.write_all(&[b'x'; 2 * LONGEST_REQUEST]).await;
        assert!(closed(&mut stream).await);
    }

    /// A listening socket whose accept fails at once and always, as with EMFILE: it is none.
    #[tokio::test(start_paused = true)]
    async fn failures_to_accept_are_counted_and_tried_again_after_growing_pauses() {
        let state = Arc::new(State {
            roster: None,
            started: Instant::now(),
            turned: AtomicU64::new(0),
            ready: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            warning: Mutex::default(),
        });
        let counter = metrics::counter(
            "weft_endpoint_accept_failures_total",
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

    /// A bound socket that does not listen: accept(2) fails with EINVAL.
    fn not_listening() -> TcpListener {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        socket.bind(&address.into()).unwrap();
        socket.set_nonblocking(true).unwrap();
        TcpListener::from_std(socket.into()).unwrap()
    }
}
