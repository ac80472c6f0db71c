//! A worker's connection to its supervisor.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::channel::{Channel, Received};
use super::pulse::{self, Watch};
use crate::metrics;

/// How long a worker waits for the answer to a request, and for room to send one; the supervisor does nothing that takes long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(250);

static LINK: OnceLock<Option<Link>> = OnceLock::new();
static DONE: AtomicU64 = AtomicU64::new(0);

/// Counts finished units of work, such as requests: workers are recycled by it.
pub fn work_done(units: u64) {
    DONE.fetch_add(units, Ordering::Relaxed);
}

/// The listening sockets that the supervisor holds for `address`; `None` in a process without supervisor.
///
/// The first is this worker's own. The others are those of workers beside it, which it helps where they do not accept what
/// waits in them. A Unix socket is one for all. None of them blocks.
///
/// # Errors
/// Why it could not be opened.
pub fn listeners(address: &str) -> Option<Result<Vec<OwnedFd>, String>> {
    Link::existing().map(|link| link.listeners(address))
}

/// A worker's end. There is one per process.
pub struct Link {
    /// The process it belongs to: a forked child has neither its thread nor a supervisor.
    process: u32,
    channel: Arc<Channel>,
    answers: Mutex<Receiver<Answer>>,
    requests: AtomicU64,
    answer_timeout: Duration,
}

/// The supervisor's answer to a request for listening sockets.
struct Answer {
    message: Value,
    sockets: Vec<OwnedFd>,
    lost_sockets: bool,
}

/// Tells the supervisor, once for each time, that the loop stands still for so long.
struct Alarm {
    after: Duration,
    /// The type of the message.
    name: &'static str,
    raised: bool,
}

/// What the watching thread needs to know.
struct Observer {
    channel: Arc<Channel>,
    answers: Sender<Answer>,
    alarms: Vec<Alarm>,
    trace: Box<dyn Fn() -> Vec<String> + Send>,
}

impl Link {
    /// Connects to the supervisor, where `WEFT_SUPERVISOR` names one that started this very process, and begins to watch
    /// the loop. `trace` says what PHP is doing; it is called on the watching thread.
    pub fn connect(trace: impl Fn() -> Vec<String> + Send + 'static) {
        LINK.get_or_init(|| {
            let number = std::env::var("WEFT_SUPERVISOR").ok()?.parse().ok()?;
            Self::open(number, Box::new(trace)).ok()
        });
    }

    pub fn existing() -> Option<&'static Self> {
        let link = LINK.get().and_then(Option::as_ref);
        link.filter(|link| link.process == std::process::id())
    }

    fn open(number: RawFd, trace: Box<dyn Fn() -> Vec<String> + Send>) -> io::Result<Self> {
        if !is_supervisor(number) {
            return Err(io::Error::other("not the socket of a supervisor"));
        }
        // SAFETY: it is open and was given to this process alone; nobody else here owns it.
        let descriptor = unsafe {
            libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
            OwnedFd::from_raw_fd(number)
        };
        let channel = Channel::from_descriptor(descriptor);
        channel.limit_sends(ANSWER_TIMEOUT)?;
        pulse::measure();
        Self::over(channel, trace, ANSWER_TIMEOUT)
    }

    fn over(
        channel: Channel,
        trace: Box<dyn Fn() -> Vec<String> + Send>,
        answer_timeout: Duration,
    ) -> io::Result<Self> {
        let channel = Arc::new(channel);
        let (answers, receiver) = self::channel();
        let observer = Observer {
            channel: Arc::clone(&channel),
            answers,
            alarms: alarms(),
            trace,
        };
        crate::thread::spawn("weft-worker", move || observer.run())?;
        Ok(Self {
            process: std::process::id(),
            channel,
            answers: Mutex::new(receiver),
            requests: AtomicU64::new(0),
            answer_timeout,
        })
    }

    /// Tells the supervisor something, a JSON object. A supervisor that is gone hears nothing, which is no failure.
    pub fn say(&self, text: &str) {
        let _ = self.channel.send(text, &[], true);
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

    /// An answer to an earlier request, which was given up, is passed over: its sockets are of another address.
    fn answer_to(&self, id: u64, answers: &Receiver<Answer>) -> Result<Answer, String> {
        let deadline = Instant::now() + self.answer_timeout;
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
    /// Ends with the supervisor.
    fn run(mut self) {
        let shortest = self.alarms.iter().map(|alarm| alarm.after).min();
        let pause = shortest.map_or(LOOK, |limit| {
            (limit / 8).clamp(Duration::from_millis(10), LOOK)
        });
        let mut watch = Watch::new();
        let mut done = 0;
        loop {
            match self.wait(pause) {
                Ok(true) => match self.channel.receive(false) {
                    Ok(Some(message)) => self.obey(message),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    _ => return,
                },
                Ok(false) => {}
                Err(_) => return,
            }
            self.tell_progress(&mut done);
            self.look(&mut watch);
        }
    }

    fn wait(&self, pause: Duration) -> io::Result<bool> {
        let mut waited = libc::pollfd {
            fd: self.channel.as_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry that lives until the call returns.
        match unsafe { libc::poll(&mut waited, 1, pause.as_millis() as i32) } {
            -1 => Err(io::Error::last_os_error()),
            ready => Ok(ready > 0),
        }
    }

    fn obey(&self, message: Received) {
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

    fn tell_progress(&self, told: &mut u64) {
        let done = DONE.load(Ordering::Relaxed);
        if done != *told {
            *told = done;
            let _ = self.channel.send(
                &json!({"type": "status", "done": done}).to_string(),
                &[],
                false,
            );
        }
    }

    fn look(&mut self, watch: &mut Watch) {
        let stuck = watch.stuck_for();
        for alarm in &mut self.alarms {
            if stuck < alarm.after {
                alarm.raised = false;
            } else if !alarm.raised {
                alarm.raised = true;
                let report = json!({"type": alarm.name, "seconds": stuck.as_secs_f64(), "trace": (self.trace)()});
                let _ = self.channel.send(&report.to_string(), &[], false);
            }
        }
    }
}

fn alarms() -> Vec<Alarm> {
    [
        ("blocked", "WEFT_BLOCK_WARNING"),
        ("hang", "WEFT_HANG_TIMEOUT"),
    ]
    .into_iter()
    .filter_map(|(name, variable)| {
        let seconds: f64 = std::env::var(variable).ok()?.parse().ok()?;
        let after = Duration::try_from_secs_f64(seconds).ok()?;
        (!after.is_zero()).then_some(Alarm {
            after,
            name,
            raised: false,
        })
    })
    .collect()
}

/// The variable may have been inherited by a grandchild that has another file, or none, under this number.
fn is_supervisor(number: RawFd) -> bool {
    // SAFETY: the kernel writes at most as many bytes as the values have, and refuses a number that is no socket.
    unsafe {
        let mut peer: libc::ucred = std::mem::zeroed();
        let mut kind: i32 = 0;
        let mut size = size_of::<libc::ucred>() as libc::socklen_t;
        let mut kind_size = size_of::<i32>() as libc::socklen_t;
        let peer_pointer = (&raw mut peer).cast();
        let kind_pointer = (&raw mut kind).cast();
        libc::getsockopt(
            number,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            peer_pointer,
            &mut size,
        ) == 0
            && libc::getsockopt(
                number,
                libc::SOL_SOCKET,
                libc::SO_TYPE,
                kind_pointer,
                &mut kind_size,
            ) == 0
            && kind == libc::SOCK_SEQPACKET
            && peer.pid == libc::getppid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(answer_timeout: Duration) -> (Link, Channel) {
        let (worker, supervisor) = Channel::pair().unwrap();
        let link = Link::over(worker, Box::new(Vec::new), answer_timeout).unwrap();
        (link, supervisor)
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
        let (link, supervisor) = link(Duration::from_millis(20));
        assert_eq!(
            link.listeners("first").unwrap_err(),
            "the supervisor does not answer"
        );
        let link = Link {
            answer_timeout: Duration::from_secs(30),
            ..link
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
        let socket = link.listeners("second").unwrap().remove(0);
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
        let (link, supervisor) = link(Duration::from_secs(30));
        let supervising = std::thread::spawn(move || {
            let id = request(&supervisor);
            let text = json!({"type": "listener", "id": id, "error": "in use"}).to_string();
            supervisor.send(&text, &[], true).unwrap();
            supervisor
        });
        assert_eq!(link.listeners("taken").unwrap_err(), "in use");
        drop(supervising.join());
    }
}
