use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Notify, oneshot, watch};

use super::config::Config;
use super::consumer::{ConsumeOptions, Consumer, ConsumerShared};
use super::handshake::Server;
use super::link::Link;
use super::lock::lock;
use super::message::check_short;
use super::outbox::Outbox;
use super::publisher::{Publisher, PublisherOptions, PublisherShared};
use super::registry::Registry;
use super::signal::Signal;
use super::status::{Event, Events, Status};
use super::topology::{Queue, QueueState, Topology};
use super::{ConnectFailure, Error, declare, io_thread, recovery};

/// A connection to a broker that comes back by itself.
///
/// All methods may be called from any thread and runtime; the work is done on the thread `weft-amqp`. When the last
/// handle (connection, publishers, consumers) is dropped, the connection is closed in the background: call
/// [`close`](Self::close) before the process ends. Use one connection for publishing and one for consuming: a broker
/// that takes no more messages stops reading everything else on that connection too.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
}

impl Connection {
    /// Connects to the first host that answers, each within the connect time-out.
    ///
    /// # Errors
    /// [`Error::Connect`] of the first host if none could be used; it says why.
    pub async fn connect(config: Config) -> Result<Self, Error> {
        if config.hosts.is_empty() {
            return Err(Error::usage("the AMQP configuration names no host"));
        }
        let runtime = io_thread::handle().map_err(|error| Error::Connect {
            target: config.target(),
            failure: ConnectFailure::Protocol,
            message: format!("the AMQP thread cannot be started: {error}"),
        })?;
        let shared = Arc::new(Shared::new(config));
        let handle = Arc::new(Handle {
            shared: Arc::clone(&shared),
            runtime,
        });
        let (first, connected) = oneshot::channel();
        handle.runtime.spawn(recovery::run(shared, first));
        match connected.await {
            Ok(Ok(())) => Ok(Self { handle }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(handle.shared.closed_error()),
        }
    }

    /// Declares exchanges, then queues, then bindings, and remembers them for recovery.
    ///
    /// Returns the queues in their order, with the names the broker chose where none was given.
    ///
    /// # Errors
    /// [`Error::Refused`] naming the object, for instance when it exists with other properties (406). What came before it
    /// stays declared.
    pub async fn declare(&self, topology: Topology) -> Result<Vec<QueueState>, Error> {
        check_topology(&topology)?;
        let topology = Arc::new(topology);
        self.handle
            .on_control_channel(move |shared, link, channel| {
                let topology = Arc::clone(&topology);
                async move { declare_all(&shared, &link, channel, &topology).await }
            })
            .await
    }

    /// A publisher with a channel of its own.
    pub async fn publisher(&self, options: PublisherOptions) -> Result<Publisher, Error> {
        let handle = Arc::clone(&self.handle);
        // A task owns the publisher until it is ready: dropping this future leaves nothing behind.
        let task = self.handle.runtime.spawn(async move {
            let shared = &handle.shared;
            let channel = shared.take_channel().await?;
            let outbox = Arc::clone(&shared.outbox);
            let publisher = Arc::new(PublisherShared::new(channel, options, outbox));
            let started = shared
                .on_link(|link| shared.start_publisher(link, Arc::clone(&publisher)))
                .await;
            if let Err(error) = started {
                shared.registry().release_channel(channel);
                return Err(error);
            }
            Ok(Publisher::new(publisher, handle))
        });
        joined(task).await
    }

    /// Starts consuming a queue on a channel of its own.
    ///
    /// # Errors
    /// [`Error::Refused`] if the queue does not exist or is in exclusive use.
    pub async fn consume(&self, queue: &str, options: ConsumeOptions) -> Result<Consumer, Error> {
        check_short("queue", queue)?;
        let tag = options.consumer_tag.as_deref().unwrap_or_default();
        check_short("consumer tag", tag)?;
        let queue = queue.to_owned();
        let handle = Arc::clone(&self.handle);
        let task = self.handle.runtime.spawn(async move {
            let shared = &handle.shared;
            let channel = shared.take_channel().await?;
            let signal = Arc::clone(&shared.signal);
            let consumer = Arc::new(ConsumerShared::new(channel, queue, options, signal));
            let started = shared
                .on_link(|link| shared.start_consumer(link, Arc::clone(&consumer)))
                .await;
            if let Err(error) = started {
                shared.registry().release_channel(channel);
                return Err(error);
            }
            Ok(Consumer::new(consumer, handle))
        });
        joined(task).await
    }

    /// How many messages and consumers a queue has.
    ///
    /// # Errors
    /// [`Error::Refused`] with code 404 if it does not exist.
    pub async fn queue_state(&self, name: &str) -> Result<QueueState, Error> {
        check_short("queue", name)?;
        let queue = Arc::new(Queue {
            passive: true,
            ..Queue::new(name)
        });
        self.handle
            .on_control_channel(move |_, link, channel| {
                let queue = Arc::clone(&queue);
                async move { declare::queue(&link, channel, &queue).await }
            })
            .await
    }

    /// Drops the messages of a queue that are not delivered yet and returns how many.
    pub async fn purge_queue(&self, name: &str) -> Result<u32, Error> {
        check_short("queue", name)?;
        let name: Arc<str> = name.into();
        self.handle
            .on_control_channel(move |_, link, channel| {
                let name = Arc::clone(&name);
                async move { declare::purge_queue(&link, channel, &name).await }
            })
            .await
    }

    /// Deletes a queue and forgets it; returns how many messages went with it. Nothing happens if it does not exist.
    pub async fn delete_queue(&self, name: &str) -> Result<u32, Error> {
        check_short("queue", name)?;
        let name: Arc<str> = name.into();
        self.handle
            .on_control_channel(move |shared, link, channel| {
                let name = Arc::clone(&name);
                async move {
                    let count = declare::delete_queue(&link, channel, &name).await?;
                    shared.registry().forget_queue(&name);
                    Ok(count)
                }
            })
            .await
    }

    /// Deletes an exchange and forgets it. Nothing happens if it does not exist.
    pub async fn delete_exchange(&self, name: &str) -> Result<(), Error> {
        check_short("exchange", name)?;
        let name: Arc<str> = name.into();
        self.handle
            .on_control_channel(move |shared, link, channel| {
                let name = Arc::clone(&name);
                async move {
                    declare::delete_exchange(&link, channel, &name).await?;
                    shared.registry().forget_exchange(&name);
                    Ok(())
                }
            })
            .await
    }

    pub fn status(&self) -> Status {
        lock(&self.handle.shared.status).clone()
    }

    /// What the broker said of itself, last time it was connected.
    pub fn server(&self) -> Server {
        lock(&self.handle.shared.server).clone()
    }

    /// The next thing to log; `None` once the connection is closed. The last 256 unread events are kept.
    pub async fn next_event(&self) -> Option<Event> {
        self.handle.shared.events.next().await
    }

    /// Sends what is buffered, waits for outstanding confirms, and closes; five seconds at most.
    ///
    /// Deliveries that are not acknowledged return to their queues. All other handles answer [`Error::Closed`] afterwards.
    /// Closing twice is harmless. Dropping the future leaves the closing to the background.
    pub async fn close(&self) {
        let mut phase = self.handle.shared.phase.subscribe();
        self.handle.shared.request_close();
        let _ = phase
            .wait_for(|phase| matches!(phase, Phase::Closed(_)))
            .await;
    }
}

fn check_topology(topology: &Topology) -> Result<(), Error> {
    for exchange in &topology.exchanges {
        check_short("exchange", &exchange.name)?;
        check_short("exchange type", &exchange.kind)?;
    }
    for queue in &topology.queues {
        check_short("queue", &queue.name)?;
    }
    topology
        .bindings
        .iter()
        .try_for_each(|binding| check_short("routing key", &binding.routing_key))
}

async fn declare_all(
    shared: &Shared,
    link: &Link,
    channel: u16,
    topology: &Topology,
) -> Result<Vec<QueueState>, Error> {
    for exchange in &topology.exchanges {
        declare::exchange(link, channel, exchange).await?;
        if !exchange.passive {
            shared.registry().remember_exchange(exchange);
        }
    }
    let mut states = Vec::with_capacity(topology.queues.len());
    for queue in &topology.queues {
        let state = declare::queue(link, channel, queue).await?;
        if !queue.passive {
            shared.registry().remember_queue(queue, &state.name);
        }
        states.push(state);
    }
    for binding in &topology.bindings {
        declare::binding(link, channel, binding).await?;
        shared.registry().remember_binding(binding);
    }
    Ok(states)
}

async fn joined<T>(task: tokio::task::JoinHandle<Result<T, Error>>) -> Result<T, Error> {
    match task.await {
        Ok(result) => result,
        Err(error) => Err(Error::usage(format!("an AMQP task ended early: {error}"))),
    }
}

/// What users hold; the connection closes when the last of them is gone.
pub(super) struct Handle {
    shared: Arc<Shared>,
    runtime: tokio::runtime::Handle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.request_close();
    }
}

impl Handle {
    /// Runs `attempt` on the current link, and again on the next one if that link was lost meanwhile.
    pub(super) async fn on_link<T, F, Fut>(&self, attempt: F) -> Result<T, Error>
    where
        F: Fn(Link) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        self.shared.on_link(attempt).await
    }

    /// Runs `attempt` with a channel for this one purpose; it ends even if the caller stops waiting.
    async fn on_control_channel<T, F, Fut>(&self, attempt: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(Arc<Shared>, Link, u16) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Error>> + Send,
    {
        let shared = Arc::clone(&self.shared);
        let task = self.runtime.spawn(async move {
            let channel = shared.take_channel().await?;
            let result = shared
                .on_link(|link| control(&shared, link, channel, &attempt))
                .await;
            shared.registry().release_channel(channel);
            result
        });
        joined(task).await
    }

    pub(super) fn retire_publisher(&self, publisher: &Arc<PublisherShared>) {
        let shared = Arc::clone(&self.shared);
        let publisher = Arc::clone(publisher);
        self.runtime
            .spawn(async move { shared.end_publisher(publisher).await });
    }

    pub(super) fn retire_consumer(&self, consumer: &Arc<ConsumerShared>) {
        consumer.retire();
        let shared = Arc::clone(&self.shared);
        let consumer = Arc::clone(consumer);
        self.runtime
            .spawn(async move { shared.end_consumer(&consumer).await });
    }

    /// The link, unless the connection is being restored or closed.
    pub(super) fn current_link(&self) -> Option<Link> {
        match &*self.shared.phase.borrow() {
            Phase::Up(link) => Some(link.clone()),
            _ => None,
        }
    }

    pub(super) fn disconnected(&self) -> Error {
        Error::ConnectionLost {
            target: self.shared.config.target(),
            message: "it is being restored".into(),
        }
    }
}

async fn control<T, F, Fut>(
    shared: &Arc<Shared>,
    link: Link,
    channel: u16,
    attempt: &F,
) -> Result<T, Error>
where
    F: Fn(Arc<Shared>, Link, u16) -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    link.open_control(channel).await?;
    let result = attempt(Arc::clone(shared), link.clone(), channel).await;
    link.close_channel(channel).await?;
    result
}

/// Where a connection is in its life.
#[derive(Clone)]
pub(super) enum Phase {
    Connecting,
    Up(Link),
    Closed(Error),
}

/// What the I/O thread and all handles of one connection share.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) signal: Arc<Signal>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) events: Events,
    status: Mutex<Status>,
    server: Mutex<Server>,
    registry: Mutex<Registry>,
    /// Attempts the last reconnect took.
    pub(super) attempts: AtomicU32,
    closing: AtomicBool,
    close_requested: Notify,
}

impl Shared {
    fn new(config: Config) -> Self {
        let signal = Arc::new(Signal::default());
        Self {
            config,
            outbox: Arc::new(Outbox::new(Arc::clone(&signal))),
            signal,
            phase: watch::Sender::new(Phase::Connecting),
            events: Events::default(),
            status: Mutex::new(Status::Connecting {
                attempt: 1,
                last_error: None,
            }),
            server: Mutex::default(),
            registry: Mutex::default(),
            attempts: AtomicU32::new(0),
            closing: AtomicBool::new(false),
            close_requested: Notify::new(),
        }
    }

    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    pub(super) fn set_status(&self, status: Status) {
        *lock(&self.status) = status;
    }

    pub(super) fn set_server(&self, server: &Server) {
        server.clone_into(&mut lock(&self.server));
    }

    pub(super) fn closed_error(&self) -> Error {
        Error::Closed {
            target: self.config.target(),
        }
    }

    fn request_close(&self) {
        self.closing.store(true, Ordering::Release);
        self.close_requested.notify_one();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub(super) async fn close_requested(&self) {
        while !self.is_closing() {
            self.close_requested.notified().await;
        }
    }

    /// A link younger than `generation`, as soon as there is one.
    async fn link_after(&self, generation: u64) -> Result<Link, Error> {
        let mut phase = self.phase.subscribe();
        let usable = |phase: &Phase| match phase {
            Phase::Connecting => false,
            Phase::Up(link) => link.generation() > generation,
            Phase::Closed(_) => true,
        };
        match phase.wait_for(usable).await.as_deref() {
            Ok(Phase::Up(link)) => Ok(link.clone()),
            Ok(Phase::Closed(error)) => Err(error.clone()),
            _ => Err(self.closed_error()),
        }
    }

    pub(super) async fn on_link<T, F, Fut>(&self, attempt: F) -> Result<T, Error>
    where
        F: Fn(Link) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let mut generation = 0;
        loop {
            let link = self.link_after(generation).await?;
            generation = link.generation();
            match attempt(link).await {
                Err(Error::ConnectionLost { .. }) => {}
                other => return other,
            }
        }
    }

    pub(super) async fn take_channel(&self) -> Result<u16, Error> {
        let link = self.link_after(0).await?;
        self.registry().take_channel(link.limits().channel_max)
    }

    /// Enters `register` into the registry if `link` is still the newest; otherwise the next link has to be used.
    pub(super) fn commit(
        &self,
        link: &Link,
        register: impl FnOnce(&mut Registry),
    ) -> Result<(), Error> {
        let mut registry = self.registry();
        if registry.generation == link.generation() {
            register(&mut registry);
            return Ok(());
        }
        Err(Error::ConnectionLost {
            target: self.config.target(),
            message: "it ended while a channel was opened".into(),
        })
    }
}
