//! The shared engine of all `Database`s of one file: the queues of its writer and its readers.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use super::changes::CHANGE_INTERVAL;
use super::config::{Config, Location};
use super::connection::Control;
use super::failure;
use super::jobs::{Command, Job, Read, Watcher};
use super::reply_queue::{Answer, Reply, ReplyQueue};
use super::statement_kind::StatementKind;
use crate::sql::Error;

/// Jobs that the writer takes from the queue at a time; queued jobs can still be withdrawn.
const JOBS_PER_TAKE: usize = 16;
pub(super) struct Engine {
    pub config: Config,
    pub target: String,
    process: u32,
    /// The main function of reader threads.
    reader: fn(&Arc<Self>, &Arc<Control>),
    /// Device and inode, once the writer has opened the file.
    identity: OnceLock<(u64, u64)>,
    queue: Mutex<Queue>,
    writer_wake: Condvar,
    reads: Mutex<Reads>,
    reader_wake: Condvar,
    streams: Mutex<Vec<Weak<Control>>>,
    thread_ended: Condvar,
    /// The connection of the writer may have tables that the file does not have: temporary ones, or those of attached databases.
    has_tables_of_its_own: AtomicBool,
    pub writer_control: Arc<Control>,
    pub reader_controls: Vec<Arc<Control>>,
}

struct Queue {
    jobs: VecDeque<Job>,
    commands: VecDeque<Command>,
    /// The transaction that holds the writer.
    holder: Option<u64>,
    waiting: Waiting,
    watchers: Vec<Watcher>,
    clients: usize,
    closing: bool,
    /// The error of all jobs after the engine has failed.
    dead: Option<Error>,
    threads: usize,
    final_replies: Vec<Reply>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    No,
    ForJobs,
    ForCommands,
}

#[derive(Default)]
struct Reads {
    jobs: VecDeque<Read>,
    idle: usize,
    started: usize,
    closing: bool,
}

pub(super) enum Taken {
    Jobs,
    /// The queue is empty. Returned by a call that may wait only to check for changes.
    Nothing,
    Closing,
}

pub(super) enum NextCommand {
    Command(Command),
    TimedOut,
    Closing,
}

impl Engine {
    pub(super) fn new(config: Config, reader: fn(&Arc<Self>, &Arc<Control>)) -> Self {
        Self {
            target: config.location.to_string(),
            process: std::process::id(),
            reader,
            identity: OnceLock::new(),
            queue: Mutex::new(Queue {
                jobs: VecDeque::new(),
                commands: VecDeque::new(),
                holder: None,
                waiting: Waiting::No,
                watchers: Vec::new(),
                clients: 1,
                closing: false,
                dead: None,
                threads: 0,
                final_replies: Vec::new(),
            }),
            writer_wake: Condvar::new(),
            reads: Mutex::default(),
            reader_wake: Condvar::new(),
            streams: Mutex::default(),
            thread_ended: Condvar::new(),
            has_tables_of_its_own: AtomicBool::new(false),
            writer_control: Arc::new(Control::new()),
            reader_controls: (0..config.readers)
                .map(|_| Arc::new(Control::new()))
                .collect(),
            config,
        }
    }

    pub(super) fn serves(&self, location: &Location) -> bool {
        let Location::File(path) = location else {
            return false;
        };
        let same_file = self
            .identity
            .get()
            .is_none_or(|known| identity(path).as_ref() == Some(known));
        self.config.location == *location && same_file && self.is_of_this_process()
    }

    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    pub(super) fn add_client(&self) -> bool {
        let mut queue = self.queue();
        let usable = !queue.closing && queue.dead.is_none();
        queue.clients += usize::from(usable);
        usable
    }

    /// Ends a client's use. The last client ends the threads, which then answer `reply`; otherwise it is answered in order.
    pub(super) fn leave(&self, reply: Option<Reply>) {
        let mut queue = self.queue();
        queue.clients -= 1;
        if queue.clients > 0 {
            drop(queue);
            if let Some(reply) = reply {
                self.push(Job::Marker(reply));
            }
            return;
        }
        if queue.threads > 0 {
            queue.final_replies.extend(reply);
            drop(queue);
            return self.close();
        }
        drop(queue);
        if let Some(reply) = reply {
            reply.answer(Answer::Changes(Ok(0)));
        }
    }

    pub(super) fn close(&self) {
        self.queue().closing = true;
        self.writer_wake.notify_all();
        lock(&self.reads).closing = true;
        self.reader_wake.notify_all();
        for stream in lock(&self.streams).drain(..) {
            if let Some(control) = stream.upgrade() {
                control.stop();
            }
        }
    }

    /// Registers a stream, which ends when the last `Database` is closed.
    pub(super) fn add_stream(&self, control: &Arc<Control>) {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(control));
    }

    /// Runs `serve` on a new thread, for which `shutdown` waits.
    pub(super) fn start_thread(
        self: &Arc<Self>,
        name: &str,
        serve: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) -> Result<(), Error> {
        self.queue().threads += 1;
        let presence = ThreadGuard(Arc::clone(self));
        let started = crate::thread::spawn(name, move || serve(&presence.0));
        started.map_err(|error| Error::Connect {
            target: self.target.clone(),
            failure: crate::sql::ConnectFailure::Refused,
            message: format!("cannot start a thread: {error}"),
        })
    }

    /// Called by the writer after it has opened the file.
    pub(super) fn opened(&self) {
        if let Location::File(path) = &self.config.location
            && let Some(identity) = identity(path)
        {
            let _ = self.identity.set(identity);
        }
    }

    pub(super) fn push(&self, job: Job) {
        let mut queue = self.queue();
        if let Some(error) = queue.dead.clone() {
            drop(queue);
            return job.fail(error);
        }
        queue.jobs.push_back(job);
        self.wake_writer(queue, Waiting::ForJobs);
    }

    /// # Errors
    /// The command itself, when its transaction does not hold the writer.
    pub(super) fn push_command(&self, command: Command) -> Result<(), Command> {
        let mut queue = self.queue();
        if queue.holder != Some(command.session) {
            return Err(command);
        }
        queue.commands.push_back(command);
        self.wake_writer(queue, Waiting::ForCommands);
        Ok(())
    }

    pub(super) fn watch(&self, watcher: Watcher) {
        let mut queue = self.queue();
        if let Some(error) = queue.dead.clone() {
            drop(queue);
            return watcher.reply.fail(error);
        }
        queue.watchers.push(watcher);
        self.wake_writer(queue, Waiting::ForJobs);
    }

    fn wake_writer(&self, mut queue: MutexGuard<'_, Queue>, waiting: Waiting) {
        let wake = queue.waiting == waiting;
        if wake {
            queue.waiting = Waiting::No;
        }
        drop(queue);
        if wake {
            self.writer_wake.notify_one();
        }
    }

    /// Takes jobs for the writer: several units, or one job that needs the writer exclusively.
    pub(super) fn take(&self, jobs: &mut Vec<Job>, may_wait: bool) -> Taken {
        let mut queue = self.queue();
        loop {
            queue.take(jobs);
            if !jobs.is_empty() {
                return Taken::Jobs;
            }
            if !may_wait {
                return Taken::Nothing;
            }
            if queue.closing {
                return Taken::Closing;
            }
            queue.waiting = Waiting::ForJobs;
            if queue.watchers.is_empty() {
                queue = self
                    .writer_wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (woken, timeout) = self
                .writer_wake
                .wait_timeout(queue, CHANGE_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.waiting = Waiting::No;
            if timeout.timed_out() && queue.jobs.is_empty() {
                return Taken::Nothing;
            }
        }
    }

    /// Waits for the next command of the transaction that holds the writer.
    pub(super) fn next_command(&self, deadline: Instant) -> NextCommand {
        let mut queue = self.queue();
        loop {
            if let Some(command) = queue.commands.pop_front() {
                return NextCommand::Command(command);
            }
            if queue.closing {
                return NextCommand::Closing;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return NextCommand::TimedOut;
            }
            queue.waiting = Waiting::ForCommands;
            queue = self
                .writer_wake
                .wait_timeout(queue, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            queue.waiting = Waiting::No;
        }
    }

    /// Releases the writer; late commands fail.
    pub(super) fn release_writer(&self, late: impl Fn() -> Error) {
        let commands = {
            let mut queue = self.queue();
            queue.holder = None;
            std::mem::take(&mut queue.commands)
        };
        for command in commands {
            if let Some(reply) = command.reply {
                reply.fail(late());
            }
        }
    }

    /// After a panic of the writer: fails what is sent to the transaction that held it. The jobs that it had taken have failed.
    pub(super) fn abandon_jobs(&self, error: &Error) {
        self.writer_control.finished();
        self.writer_control.set_deadline(None);
        self.release_writer(|| error.clone());
    }

    pub(super) fn has_watchers(&self) -> bool {
        !self.queue().watchers.is_empty()
    }

    /// Answers the watchers whose known number of commits by others differs from `others`.
    pub(super) fn answer_watchers(&self, others: impl Fn(&ReplyQueue) -> u64) {
        let mut news = Vec::new();
        {
            let mut queue = self.queue();
            for watcher in std::mem::take(&mut queue.watchers) {
                let known = watcher.reply.replies().map_or(0, |replies| others(replies));
                match known == watcher.seen {
                    true => queue.watchers.push(watcher),
                    false => news.push((watcher.reply, known)),
                }
            }
        }
        for (reply, known) in news {
            reply.answer(Answer::Changes(Ok(known)));
        }
    }

    /// Fails all queued and later jobs; the first error remains the reason.
    pub(super) fn fail_all(&self, error: &Error) {
        let (jobs, watchers) = {
            let mut queue = self.queue();
            queue.dead.get_or_insert_with(|| error.clone());
            (
                std::mem::take(&mut queue.jobs),
                std::mem::take(&mut queue.watchers),
            )
        };
        self.release_writer(|| error.clone());
        jobs.into_iter().for_each(|job| job.fail(error.clone()));
        watchers
            .into_iter()
            .for_each(|watcher| watcher.reply.fail(error.clone()));
    }

    pub(super) fn read(self: &Arc<Self>, read: Read) {
        let mut reads = lock(&self.reads);
        if reads.closing {
            drop(reads);
            return read.reply.fail(self.closed());
        }
        if reads.idle == 0 && reads.started < self.config.readers {
            let control = Arc::clone(&self.reader_controls[reads.started]);
            match self.start_thread("weft-sqlite-reader", move |engine| {
                (engine.reader)(engine, &control);
            }) {
                Ok(()) => reads.started += 1,
                Err(error) if reads.started == 0 => {
                    drop(reads);
                    return read.reply.fail(error);
                }
                Err(_) => {}
            }
        }
        reads.jobs.push_back(read);
        let wake = reads.idle > 0;
        drop(reads);
        if wake {
            self.reader_wake.notify_one();
        }
    }

    /// Called by the writer before it runs a statement for the first time.
    pub(super) fn note_tables(&self, sql: &str) {
        if StatementKind::adds_tables_of_its_own(sql) {
            self.has_tables_of_its_own.store(true, Ordering::Release);
        }
    }

    /// Adds where a table may be that a reading connection does not find.
    pub(super) fn with_hint(&self, error: Error) -> Error {
        if self.has_tables_of_its_own.load(Ordering::Acquire) {
            failure::with_hint_for_missing_table(error)
        } else {
            error
        }
    }

    /// Waits for the next read; `None` when the database is closed.
    pub(super) fn next_read(&self) -> Option<Read> {
        let mut reads = lock(&self.reads);
        loop {
            if let Some(read) = reads.jobs.pop_front() {
                return Some(read);
            }
            if reads.closing {
                return None;
            }
            reads.idle += 1;
            reads = self
                .reader_wake
                .wait(reads)
                .unwrap_or_else(PoisonError::into_inner);
            reads.idle -= 1;
        }
    }

    /// Withdraws the job of a dropped future, or interrupts it if it runs. True when it was withdrawn, so that
    /// it never begins.
    pub(super) fn cancel(&self, id: u64) -> bool {
        let is_withdrawn = self.withdraw(id);
        if !is_withdrawn {
            self.writer_control.cancel(id);
            self.reader_controls
                .iter()
                .for_each(|control| control.cancel(id));
        }
        is_withdrawn
    }

    fn withdraw(&self, id: u64) -> bool {
        // Removed jobs answer when they are dropped, after the lock is released.
        let job = {
            let mut queue = self.queue();
            let position = queue.jobs.iter().position(|job| job.id() == Some(id));
            position.and_then(|position| queue.jobs.remove(position))
        };
        let command = {
            let mut queue = self.queue();
            let is_meant =
                |command: &Command| command.reply.as_ref().is_some_and(|reply| reply.id == id);
            let position = queue.commands.iter().position(is_meant);
            position.and_then(|position| queue.commands.remove(position))
        };
        let watcher = {
            let mut queue = self.queue();
            let position = queue
                .watchers
                .iter()
                .position(|watcher| watcher.reply.id == id);
            position.map(|position| queue.watchers.swap_remove(position))
        };
        let read = {
            let mut reads = lock(&self.reads);
            let position = reads.jobs.iter().position(|read| read.reply.id == id);
            position.and_then(|position| reads.jobs.remove(position))
        };
        job.is_some() || command.is_some() || watcher.is_some() || read.is_some()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

impl Queue {
    fn take(&mut self, jobs: &mut Vec<Job>) {
        while jobs.len() < JOBS_PER_TAKE {
            match self.jobs.front() {
                Some(Job::Unit(_)) => jobs.extend(self.jobs.pop_front()),
                Some(Job::Begin(command)) if jobs.is_empty() => {
                    self.holder = Some(command.session);
                    return jobs.extend(self.jobs.pop_front());
                }
                Some(Job::Marker(_)) if jobs.is_empty() => {
                    return jobs.extend(self.jobs.pop_front());
                }
                _ => return,
            }
        }
    }
}

/// Counts a running thread of the engine. The last one to end answers the final replies.
struct ThreadGuard(Arc<Engine>);

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        let engine = &self.0;
        let final_replies = {
            let mut queue = engine.queue();
            queue.threads -= 1;
            if queue.threads > 0 {
                drop(queue);
                return engine.thread_ended.notify_all();
            }
            std::mem::take(&mut queue.final_replies)
        };
        engine.thread_ended.notify_all();
        for reply in final_replies {
            reply.answer(Answer::Changes(Ok(0)));
        }
    }
}

impl Engine {
    /// For the writer, before it closes its connection: the last one of a file moves the log into it and deletes the log, which those of
    /// readers cannot do.
    pub(super) fn wait_for_readers(&self) {
        let others = self
            .thread_ended
            .wait_while(self.queue(), |queue| queue.threads > 1);
        drop(others.unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn has_ended_by(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self
            .thread_ended
            .wait_timeout_while(self.queue(), left, |queue| queue.threads > 0);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    pub(super) fn closed(&self) -> Error {
        Error::PoolClosed {
            pool: self.target.clone(),
        }
    }

    /// The error after a panic of the writer, which is a bug in Weft.
    pub(super) fn crashed(&self, message: String) -> Error {
        Error::ConnectionLost {
            target: self.target.clone(),
            message: format!("internal error in the writing thread: {message}"),
            sqlstate: None,
        }
    }

    /// The error of a command whose transaction has ended.
    pub(super) fn transaction_expired(&self, sql: &str) -> Error {
        let message = format!(
            "the transaction held the writer of {} for more than {:?} and was rolled back",
            self.target, self.config.transaction_timeout
        );
        failure::server("25P04", message, sql)
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path)
        .ok()
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
