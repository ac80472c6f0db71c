//! Metrics, readiness and liveness of a supervisor, or of a process that has none, over HTTP, answered by a thread of its own.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::channel::Channel;
use super::pulse;
use super::supervisor::{Roster, Supervisor};
use crate::metrics;

/// How long a request may take to arrive, and a worker to send its metrics.
const PATIENCE: Duration = Duration::from_secs(2);
/// A process whose loop has not turned for so long is not alive.
const STALE: Duration = Duration::from_secs(10);
const LONGEST_REQUEST: usize = 8 * 1024;

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
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            roster,
            started: Instant::now(),
            turned: AtomicU64::new(0),
            ready: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        crate::thread::spawn("weft-endpoint", move || {
            for stream in listener.incoming().flatten() {
                let _ = shared.serve(stream);
            }
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
}

impl State {
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let head = read_head(&mut stream)?;
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let path = target.split('?').next().unwrap_or("");
        let (status, kind, body) = match (method, path) {
            ("GET" | "HEAD", "/metrics") => ("200 OK", "text/plain; version=0.0.4", self.metrics()),
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
        stream.write_all(answer.as_bytes())
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

    fn metrics(&self) -> String {
        let Some(roster) = &self.roster else {
            return metrics::render();
        };
        let asked: Vec<(String, io::Result<UnixStream>)> = roster
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .map(|(name, channel)| (name.clone(), ask(channel)))
            .collect();
        let mut texts = vec![(String::new(), metrics::render())];
        for (name, stream) in asked {
            if let Ok(text) = stream.and_then(read_all) {
                texts.push((name, text));
            }
        }
        metrics::merge(&texts)
    }
}

/// Gives the worker a socket to write its metrics to, so that they may be long and nobody has to wait for room.
fn ask(channel: &Channel) -> io::Result<UnixStream> {
    let (own, worker) = UnixStream::pair()?;
    own.set_read_timeout(Some(PATIENCE))?;
    channel.send("{\"type\":\"metrics\"}", &[worker.as_fd()], false)?;
    Ok(own)
}

fn read_all(mut stream: UnixStream) -> io::Result<String> {
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// The request line and whatever came with it; RFC 9112 §3.
fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.read(&mut chunk)?;
        if length == 0 || head.len() > LONGEST_REQUEST || Instant::now() > deadline {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        head.extend_from_slice(&chunk[..length]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
