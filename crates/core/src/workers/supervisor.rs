use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::channel::Channel;
use super::files::Files;
use super::listeners::Listeners;
use super::signals::SignalQueue;
use super::spawn::spawn;

/// Of these the supervisor hears; all others act as ever.
const SIGNALS: [i32; 6] = [
    libc::SIGCHLD,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGQUIT,
    libc::SIGUSR1,
];

/// Something that a supervisor has to act on.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    Signal(i32),
    /// A worker has ended, with an exit code or by a signal.
    Exited {
        pid: u32,
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// What a worker says, a JSON object.
    Message {
        pid: u32,
        text: String,
    },
    /// A file in a watched folder was written, made, moved or removed.
    Changed(PathBuf),
}

/// The workers that run, by name, for the thread that collects metrics.
pub(super) type Roster = Arc<Mutex<HashMap<u32, (String, Arc<Channel>)>>>;

/// A process that runs, and whose place it has.
struct Worker {
    index: usize,
    channel: Arc<Channel>,
}

/// Starts workers and waits for what happens to them. Dropping it ends nobody.
pub struct Supervisor {
    signals: SignalQueue,
    listeners: Listeners,
    files: Option<Files>,
    workers: HashMap<u32, Worker>,
    pub(super) roster: Roster,
}

impl Supervisor {
    /// For that many workers, not counting those that take over from others.
    pub fn new(workers: usize) -> io::Result<Self> {
        Ok(Self {
            signals: SignalQueue::new(&SIGNALS)?,
            listeners: Listeners::new(workers),
            files: None,
            workers: HashMap::new(),
            roster: Roster::default(),
        })
    }

    /// Starts a process for the place `index`, from 1, which is its label in metrics as well, and returns its pid.
    pub fn spawn(
        &mut self,
        index: usize,
        command: &[String],
        environment: &[(String, String)],
    ) -> io::Result<u32> {
        let (own, worker) = Channel::pair()?;
        let pid = spawn(command, environment, &worker)?;
        let channel = Arc::new(own);
        let name = index.to_string();
        self.lock_roster().insert(pid, (name, Arc::clone(&channel)));
        self.workers.insert(pid, Worker { index, channel });
        Ok(pid)
    }

    /// Adds a folder whose files are watched, without the folders in it.
    pub fn watch(&mut self, folder: &Path) -> io::Result<()> {
        match &mut self.files {
            Some(files) => files.watch(folder),
            none => none.insert(Files::new()?).watch(folder),
        }
    }

    /// Waits until something happens, or for `timeout`. What a worker said before it ended comes before its end.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Vec<Event>> {
        self.park(timeout)?;
        let mut events = Vec::new();
        let pids: Vec<u32> = self.workers.keys().copied().collect();
        for pid in pids {
            self.hear(pid, &mut events);
        }
        while let Some(signal) = self.signals.take() {
            if signal != libc::SIGCHLD {
                events.push(Event::Signal(signal));
            }
        }
        self.reap(&mut events);
        if let Some(files) = &self.files {
            events.extend(files.changed().into_iter().map(Event::Changed));
        }
        Ok(events)
    }

    fn park(&self, timeout: Duration) -> io::Result<()> {
        let channels = self.workers.values().map(|worker| worker.channel.as_fd());
        let mut waited: Vec<libc::pollfd> = channels
            .chain([self.signals.as_fd()])
            .chain(self.files.as_ref().map(AsFd::as_fd))
            .map(|fd| libc::pollfd {
                fd: fd.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            })
            .collect();
        let milliseconds = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: the array lives until the call returns, and the descriptors are open as long as `self` is borrowed.
        let ready = unsafe { libc::poll(waited.as_mut_ptr(), waited.len() as _, milliseconds) };
        match ready {
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
            _ => Ok(()),
        }
    }

    /// Reads everything the worker has said and answers what it asked for.
    fn hear(&mut self, pid: u32, events: &mut Vec<Event>) {
        let Some(worker) = self.workers.get(&pid) else {
            return;
        };
        let (index, channel) = (worker.index, Arc::clone(&worker.channel));
        loop {
            match channel.receive(false) {
                Ok(Some(message)) => {
                    let text = String::from_utf8_lossy(&message.text).into_owned();
                    match asked_for(&text) {
                        Some(request) => self.answer(pid, index, &channel, &request),
                        None => events.push(Event::Message { pid, text }),
                    }
                }
                Ok(None) => {
                    // It has closed its end; its process may still run for a moment.
                    self.workers.remove(&pid);
                    self.lock_roster().remove(&pid);
                    return;
                }
                Err(_) => return,
            }
        }
    }

    fn answer(&mut self, pid: u32, index: usize, channel: &Channel, request: &Request) {
        let id = request.id;
        let answer = match self.listeners.get(pid, index, &request.address) {
            Ok(sockets) => {
                let text = json!({"type": "listener", "id": id}).to_string();
                channel.send(&text, &sockets, false)
            }
            Err(reason) => {
                let text = json!({"type": "listener", "id": id, "error": reason}).to_string();
                channel.send(&text, &[], false)
            }
        };
        // A worker that has died meanwhile needs no answer.
        drop(answer);
    }

    fn reap(&mut self, events: &mut Vec<Event>) {
        loop {
            let mut status = 0;
            // SAFETY: the kernel writes the status; as the only one who waits for children we take them all.
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
            let Ok(pid @ 1..) = u32::try_from(pid) else {
                return;
            };
            self.hear(pid, events);
            self.listeners.forget(pid);
            self.workers.remove(&pid);
            self.lock_roster().remove(&pid);
            let signalled = libc::WIFSIGNALED(status);
            events.push(Event::Exited {
                pid,
                code: (!signalled).then(|| libc::WEXITSTATUS(status)),
                signal: signalled.then(|| libc::WTERMSIG(status)),
            });
        }
    }

    fn lock_roster(&self) -> std::sync::MutexGuard<'_, HashMap<u32, (String, Arc<Channel>)>> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker's request for the listening sockets of an address.
struct Request {
    /// Comes back in the answer, so that a late one is told from that of the next request.
    id: Option<u64>,
    address: String,
}

fn asked_for(text: &str) -> Option<Request> {
    let message: Value = serde_json::from_str(text).ok()?;
    let is_request = message.get("type")?.as_str()? == "listen";
    let address = message.get("address")?.as_str()?;
    is_request.then(|| Request {
        id: message.get("id").and_then(Value::as_u64),
        address: address.to_owned(),
    })
}
