//! The supervisor's end: worker processes, their sockets, signals and file changes.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use serde_json::{Value, json};

use super::channel::Channel;
use super::file_watcher::FileWatcher;
use super::listeners::Listeners;
use super::signals::SignalQueue;
use super::spawn::spawn;

/// The signals that the supervisor handles; all others keep their default action.
const SIGNALS: [i32; 7] = [
    libc::SIGCHLD,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
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
    /// A message of a worker, a JSON object.
    Message {
        pid: u32,
        text: String,
    },
    /// A file in a watched directory was written, created, moved or removed.
    Changed(PathBuf),
    /// More changes than the kernel's queue holds: any file may have changed, and directories may be new.
    ChangesLost,
}

/// The running workers by pid, each with its label in metrics; the metrics server collects from them.
pub(super) type WorkerChannels = Arc<Mutex<HashMap<u32, (String, Arc<Channel>)>>>;

/// A worker process and the slot it fills.
struct Worker {
    index: usize,
    channel: Arc<Channel>,
}

/// Starts workers and waits for what happens to them. Dropping it ends no worker.
pub struct Supervisor {
    signals: SignalQueue,
    listeners: Listeners,
    files: Option<FileWatcher>,
    workers: HashMap<u32, Worker>,
    pub(super) channels: WorkerChannels,
}

impl Supervisor {
    /// A supervisor of that many workers, successors during a reload not counted.
    pub fn new(workers: usize) -> io::Result<Self> {
        Ok(Self {
            signals: SignalQueue::new(&SIGNALS)?,
            listeners: Listeners::new(workers),
            files: None,
            workers: HashMap::new(),
            channels: WorkerChannels::default(),
        })
    }

    /// Starts a process for the slot `index`, counted from 1, which is also its label in metrics, and returns its pid.
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
        self.lock_channels()
            .insert(pid, (name, Arc::clone(&channel)));
        self.workers.insert(pid, Worker { index, channel });
        Ok(pid)
    }

    /// Watches the files of a directory, without its subdirectories.
    pub fn watch(&mut self, directory: &Path) -> io::Result<()> {
        match &mut self.files {
            Some(files) => files.watch(directory),
            none => none.insert(FileWatcher::new()?).watch(directory),
        }
    }

    /// Lets connections queue for a worker that is ready, before it accepts from its sockets itself.
    pub fn start_listening(&self, pid: u32) {
        self.listeners.start(pid);
    }

    /// Closes the listening sockets that none of these workers has asked for: new code may listen elsewhere.
    pub fn close_listeners_except_of(&mut self, pids: &[u32]) {
        self.listeners.close_except_of(pids);
    }

    /// Sends a signal to a process; false if there is no such process or no such signal.
    pub fn kill(&self, pid: i32, signal: i32) -> bool {
        // A pid of 0 or below would address a process group.
        let process = (pid > 0).then(|| Pid::from_raw(pid)).flatten();
        let (Some(process), Some(signal)) = (process, Signal::from_named_raw(signal)) else {
            return false;
        };
        kill_process(process, signal).is_ok()
    }

    /// Waits until something happens, at most for `timeout`. Messages that a worker sent before it ended precede its end.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Vec<Event>> {
        self.park(timeout)?;
        let mut events = Vec::new();
        let pids: Vec<u32> = self.workers.keys().copied().collect();
        for pid in pids {
            self.receive_from(pid, &mut events);
        }
        while let Some(signal) = self.signals.take() {
            if signal != libc::SIGCHLD {
                events.push(Event::Signal(signal));
            }
        }
        self.reap(&mut events);
        if let Some(files) = &self.files {
            let changes = files.changes();
            events.extend(changes.paths.into_iter().map(Event::Changed));
            events.extend(changes.are_incomplete.then_some(Event::ChangesLost));
        }
        Ok(events)
    }

    fn park(&self, timeout: Duration) -> io::Result<()> {
        let channels = self.workers.values().map(|worker| worker.channel.as_fd());
        let mut waited: Vec<PollFd<'_>> = channels
            .chain([self.signals.as_fd()])
            .chain(self.files.as_ref().map(AsFd::as_fd))
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut waited, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what the worker has sent and answers its requests.
    fn receive_from(&mut self, pid: u32, events: &mut Vec<Event>) {
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
                    // The worker has closed its end; its process may still run for a moment.
                    self.workers.remove(&pid);
                    self.lock_channels().remove(&pid);
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
        // The worker may have died meanwhile.
        drop(answer);
    }

    /// Takes the exit status of every child: workers are the only children of this process.
    fn reap(&mut self, events: &mut Vec<Event>) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            self.receive_from(pid, events);
            self.listeners.forget(pid);
            self.workers.remove(&pid);
            self.lock_channels().remove(&pid);
            events.push(Event::Exited {
                pid,
                code: status.exit_status(),
                signal: status.terminating_signal(),
            });
        }
    }

    fn lock_channels(&self) -> std::sync::MutexGuard<'_, HashMap<u32, (String, Arc<Channel>)>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker's request for the listening sockets of an address.
struct Request {
    /// Repeated in the answer, so that the worker can tell a late one from that of its next request.
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
