//! A worker's end of the connection to its supervisor.

#![allow(unsafe_code, reason = "takes over a descriptor by its number")]

use std::io::{self, Write};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::SocketType;
use rustix::net::sockopt::{socket_peercred, socket_type};
use rustix::process::{Signal, getpid, getppid, kill_process};
use serde_json::{Value, json};

use super::channel::{Channel, Received};
use super::loop_watchdog::{self, LoopWatchdog};
use crate::{metrics, panics, signal};

/// How long a worker waits for the answer to a request, and for room to send one. The supervisor never blocks for long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest interval between two looks at the loop.
const MAX_OBSERVE_INTERVAL: Duration = Duration::from_millis(250);

static CLIENT: OnceLock<Option<SupervisorClient>> = OnceLock::new();
static WORK_DONE: AtomicU64 = AtomicU64::new(0);

/// Counts finished units of work, such as requests, for `--max-requests`.
pub fn work_done(units: u64) {
    WORK_DONE.fetch_add(units, Ordering::Relaxed);
}

/// The listening sockets that the supervisor holds for `address`; `None` in a process without supervisor.
///
/// The first is this worker's own. The others belong to the other workers: this worker accepts connections that wait too long in
/// them. A Unix socket is shared by all. All of them are non-blocking.
///
/// # Errors
/// The reason why the address could not be opened.
pub fn listening_sockets(address: &str) -> Option<Result<Vec<OwnedFd>, String>> {
    SupervisorClient::current().map(|client| client.listeners(address))
}

/// The connection to the supervisor; one per process.
pub struct SupervisorClient {
    /// The process it belongs to: a forked child has neither the thread nor a supervisor.
    process: u32,
    channel: Arc<Channel>,
    answers: Mutex<Receiver<Answer>>,
    requests: AtomicU64,
    request_timeout: Duration,
}

/// The supervisor's answer to a request for listening sockets.
struct Answer {
    message: Value,
    sockets: Vec<OwnedFd>,
    lost_sockets: bool,
}

/// A duration after which the supervisor is told that the loop is blocked, once each time it happens.
struct BlockAlert {
    after: Duration,
    /// The type of the message.
    message_type: &'static str,
    sent: bool,
}

/// The thread that watches the loop and answers the supervisor.
struct Observer {
    channel: Arc<Channel>,
    answers: Sender<Answer>,
    alerts: Vec<BlockAlert>,
    trace: Box<dyn Fn() -> Vec<String> + Send>,
}

impl SupervisorClient {
    /// Connects to the supervisor if `WEFT_SUPERVISOR` names one that started this very process, and starts to watch the
    /// loop. `trace` returns the PHP stack; the watching thread calls it.
    pub fn connect(trace: impl Fn() -> Vec<String> + Send + 'static) {
        CLIENT.get_or_init(|| {
            let number = std::env::var("WEFT_SUPERVISOR").ok()?.parse().ok()?;
            Self::open(number, Box::new(trace)).ok()
        });
    }

    /// The connection of this process; `None` without supervisor and in a forked child.
    pub fn current() -> Option<&'static Self> {
        let client = CLIENT.get().and_then(Option::as_ref);
        client.filter(|client| client.process == std::process::id())
    }

    fn open(number: RawFd, trace: Box<dyn Fn() -> Vec<String> + Send>) -> io::Result<Self> {
        if !is_supervisor(number) {
            return Err(io::Error::other("not the socket of a supervisor"));
        }
        // SAFETY: the supervisor has opened it for this process, and nothing else here owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
        let channel = Channel::from_descriptor(descriptor);
        channel.limit_sends(REQUEST_TIMEOUT)?;
        loop_watchdog::measure();
        let client = Self::over(channel, alerts(), trace, REQUEST_TIMEOUT, stop_this_process)?;
        signal::keep_handlers_after_stop();
        Ok(client)
    }

    fn over(
        channel: Channel,
        alerts: Vec<BlockAlert>,
        trace: Box<dyn Fn() -> Vec<String> + Send>,
        request_timeout: Duration,
        supervisor_ended: fn(),
    ) -> io::Result<Self> {
        let channel = Arc::new(channel);
        let (answers, receiver) = self::channel();
        let observer = Observer {
            channel: Arc::clone(&channel),
            answers,
            alerts,
            trace,
        };
        crate::thread::spawn("weft-worker", move || {
            // After a panic, which is a bug in Weft, nobody answers the supervisor: the worker drains and is replaced.
            let _ = panics::caught_call(|| observer.run());
            supervisor_ended();
        })?;
        Ok(Self {
            process: std::process::id(),
            channel,
            answers: Mutex::new(receiver),
            requests: AtomicU64::new(0),
            request_timeout,
        })
    }

    /// Sends the supervisor a message, a JSON object. Does nothing if the supervisor is gone.
    ///
    /// # Errors
    /// `InvalidInput` for a message that is too long.
    pub fn send(&self, text: &str) -> io::Result<()> {
        match self.channel.send(text, &[], true) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error),
            _ => Ok(()),
        }
    }

    fn listeners(&self, address: &str) -> Result<Vec<OwnedFd>, String> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let id = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let request = json!({"type": "listen", "id": id, "address": address}).to_string();
        self.channel
            .send(&request, &[], true)
            .map_err(|error| format!("the supervisor does not answer: {error}"))?;
        self.answer_to(id, &answers)?.into_sockets()
    }

    /// Skips a late answer to a request that has timed out: its sockets belong to another address.
    fn answer_to(&self, id: u64, answers: &Receiver<Answer>) -> Result<Answer, String> {
        let deadline = Instant::now() + self.request_timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = answers
                .recv_timeout(left)
                .map_err(|_| "the supervisor does not answer".to_owned())?;
            if answer.message.get("id").and_then(Value::as_u64) == Some(id) {
                return Ok(answer);
            }
        }
    }
}

impl Answer {
    fn into_sockets(self) -> Result<Vec<OwnedFd>, String> {
        if !self.sockets.is_empty() {
            return Ok(self.sockets);
        }
        if self.lost_sockets {
            let reason = "this process has no room for the supervisor's sockets: too many open files (EMFILE)";
            return Err(reason.to_owned());
        }
        let reason = self.message.get("error").and_then(Value::as_str);
        Err(reason.unwrap_or("the supervisor sent no socket").to_owned())
    }
}

impl Observer {
    /// Returns when the supervisor ends.
    fn run(mut self) {
        let shortest = self.alerts.iter().map(|alert| alert.after).min();
        let interval = shortest.map_or(MAX_OBSERVE_INTERVAL, |limit| {
            (limit / 8).clamp(Duration::from_millis(10), MAX_OBSERVE_INTERVAL)
        });
        let mut watchdog = LoopWatchdog::new();
        let mut done = 0;
        loop {
            match self.wait(interval) {
                Ok(true) => match self.channel.receive(false) {
                    Ok(Some(message)) => self.handle(message),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    _ => return,
                },
                Ok(false) => {}
                Err(_) => return,
            }
            self.report_progress(&mut done);
            self.check_loop(&mut watchdog);
        }
    }

    /// Whether there is a message, or the supervisor has ended.
    fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec::try_from(timeout).ok();
        let mut waited = [PollFd::new(&*self.channel, PollFlags::IN)];
        match poll(&mut waited, timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn handle(&self, message: Received) {
        let Ok(value) = serde_json::from_slice::<Value>(&message.text) else {
            return;
        };
        let mut descriptors = message.descriptors;
        match value.get("type").and_then(Value::as_str) {
            Some("listener") => {
                let answer = Answer {
                    message: value,
                    sockets: descriptors,
                    lost_sockets: message.lost_descriptors,
                };
                drop(self.answers.send(answer));
            }
            Some("metrics") => {
                let Some(socket) = descriptors.pop() else {
                    return;
                };
                let mut stream = UnixStream::from(socket);
                let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
                let _ = stream.write_all(metrics::render().as_bytes());
            }
            _ => {}
        }
    }

    fn report_progress(&self, reported: &mut u64) {
        let done = WORK_DONE.load(Ordering::Relaxed);
        if done != *reported {
            *reported = done;
            let _ = self.channel.send(
                &json!({"type": "status", "done": done}).to_string(),
                &[],
                false,
            );
        }
    }

    fn check_loop(&mut self, watchdog: &mut LoopWatchdog) {
        let blocked = watchdog.blocked_for();
        for alert in &mut self.alerts {
            if blocked < alert.after {
                alert.sent = false;
            } else if !alert.sent {
                alert.sent = true;
                let report = json!({"type": alert.message_type, "seconds": blocked.as_secs_f64(), "trace": (self.trace)()});
                let _ = self.channel.send(&report.to_string(), &[], false);
            }
        }
    }
}

/// The supervisor has ended: so does its worker, after it has drained.
///
/// The kernel sends the same signal at the supervisor's death, but not where executing PHP has changed the credentials: a binary with
/// file capabilities or set-user-ID clears the parent-death signal (prctl(2), PR_SET_PDEATHSIG).
fn stop_this_process() {
    if !signal::stop_requested() {
        let _ = kill_process(getpid(), Signal::TERM);
    }
}

fn alerts() -> Vec<BlockAlert> {
    [
        ("blocked", "WEFT_BLOCK_WARNING"),
        ("hang", "WEFT_HANG_TIMEOUT"),
    ]
    .into_iter()
    .filter_map(|(message_type, variable)| {
        let seconds: f64 = std::env::var(variable).ok()?.parse().ok()?;
        let after = Duration::try_from_secs_f64(seconds).ok()?;
        (!after.is_zero()).then_some(BlockAlert {
            after,
            message_type,
            sent: false,
        })
    })
    .collect()
}

/// Whether the descriptor is a socket whose other end belongs to the parent process. A grandchild may have inherited the variable while
/// it has another file, or none, under this number.
fn is_supervisor(number: RawFd) -> bool {
    // SAFETY: the number is only handed to system calls, which refuse one that is no open socket.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    socket_type(socket).is_ok_and(|kind| kind == SocketType::SEQPACKET)
        && socket_peercred(socket).is_ok_and(|peer| Some(peer.pid) == getppid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::atomic::AtomicBool;

    fn client(request_timeout: Duration) -> (SupervisorClient, Channel) {
        let (worker, supervisor) = Channel::pair().unwrap();
        let trace = Box::new(Vec::<String>::new);
        let client = SupervisorClient::over(worker, Vec::new(), trace, request_timeout, || {});
        (client.unwrap(), supervisor)
    }

    #[test]
    fn a_panic_of_the_observing_thread_ends_the_worker_as_the_end_of_its_supervisor_does() {
        static HAS_ENDED: AtomicBool = AtomicBool::new(false);
        let (worker, _supervisor) = Channel::pair().unwrap();
        // It is sent at once, with a stack.
        let alert = BlockAlert {
            after: Duration::ZERO,
            message_type: "blocked",
            sent: false,
        };
        let trace = Box::new(|| -> Vec<String> { panic!("on purpose") });
        let ended = || HAS_ENDED.store(true, Ordering::SeqCst);
        let client = SupervisorClient::over(worker, vec![alert], trace, REQUEST_TIMEOUT, ended);
        let deadline = Instant::now() + Duration::from_secs(60);
        while !HAS_ENDED.load(Ordering::SeqCst) {
            assert!(Instant::now() < deadline, "the panic went unnoticed");
            std::thread::sleep(Duration::from_millis(1));
        }
        // The thread has ended, so no answer comes.
        assert_eq!(
            client.unwrap().listeners("any").unwrap_err(),
            "the supervisor does not answer"
        );
    }

    fn request(supervisor: &Channel) -> u64 {
        let message = supervisor.receive(true).unwrap().unwrap();
        let request: Value = serde_json::from_slice(&message.text).unwrap();
        request["id"].as_u64().unwrap()
    }

    fn answer(supervisor: &Channel, id: u64, socket: &UnixStream) {
        let text = json!({"type": "listener", "id": id}).to_string();
        supervisor.send(&text, &[socket.as_fd()], true).unwrap();
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_taken_for_that_of_the_next_request() {
        let (client, supervisor) = client(Duration::from_millis(20));
        assert_eq!(
            client.listeners("first").unwrap_err(),
            "the supervisor does not answer"
        );
        let client = SupervisorClient {
            request_timeout: Duration::from_secs(30),
            ..client
        };
        let ((first, mut of_first), (second, mut of_second)) =
            (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let late = request(&supervisor);
        let supervising = std::thread::spawn(move || {
            answer(&supervisor, late, &first);
            let next = request(&supervisor);
            answer(&supervisor, next, &second);
            supervisor
        });
        let socket = client.listeners("second").unwrap().remove(0);
        UnixStream::from(socket).write_all(b"mine").unwrap();
        drop(supervising.join());
        let mut heard = String::new();
        std::io::Read::read_to_string(&mut of_second, &mut heard).unwrap();
        assert_eq!(heard, "mine");
        // The socket that came too late was closed.
        assert_eq!(std::io::Read::read(&mut of_first, &mut [0]).unwrap(), 0);
    }

    #[test]
    fn an_answer_says_why_there_is_no_socket() {
        let (client, supervisor) = client(Duration::from_secs(30));
        let supervising = std::thread::spawn(move || {
            let id = request(&supervisor);
            let text = json!({"type": "listener", "id": id, "error": "in use"}).to_string();
            supervisor.send(&text, &[], true).unwrap();
            supervisor
        });
        assert_eq!(client.listeners("taken").unwrap_err(), "in use");
        drop(supervising.join());
    }
}
