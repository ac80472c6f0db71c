use std::sync::Arc;

use tokio::sync::oneshot;

use super::config::Config;
use super::consumer::Consumer;
use super::consumer_state::{ConsumeOptions, ConsumerShared};
use super::handle::{Handle, joined};
use super::handshake::Server;
use super::message::{check_short, check_table};
use super::publisher::Publisher;
use super::publisher_state::{PublisherOptions, PublisherShared};
use super::session::Session;
use super::shared::{Phase, Shared};
use super::status::{Event, Status};
use super::topology::{Destination, Queue, QueueState, Topology};
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
            Err(_) => Err(handle.shared.end_error()),
        }
    }

    /// Declares exchanges, then queues, then bindings, and remembers them for recovery.
    ///
    /// Returns the queues in their order, with the names the broker chose where none was given.
    ///
    /// # Errors
    /// [`Error::Refused`] naming the object, for instance when it exists with other properties (406). Objects before it
    /// stay declared. [`Error::ClosedByBroker`] if the broker closes the connection on it again and again.
    pub async fn declare(&self, topology: Topology) -> Result<Vec<QueueState>, Error> {
        check_topology(&topology)?;
        let topology = Arc::new(topology);
        self.handle
            .on_control_channel(move |shared, session, channel| {
                let topology = Arc::clone(&topology);
                async move { declare_all(&shared, &session, channel, &topology).await }
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
            let write_buffer = Arc::clone(&shared.write_buffer);
            let publisher = Arc::new(PublisherShared::new(channel, options, write_buffer));
            let started = shared
                .on_session(|session| shared.start_publisher(session, Arc::clone(&publisher)))
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
        check_table(&options.arguments)?;
        let queue = queue.to_owned();
        let handle = Arc::clone(&self.handle);
        let task = self.handle.runtime.spawn(async move {
            let shared = &handle.shared;
            let channel = shared.take_channel().await?;
            let io_waker = Arc::clone(&shared.io_waker);
            let consumer = Arc::new(ConsumerShared::new(channel, queue, options, io_waker));
            let started = shared
                .on_session(|session| shared.start_consumer(session, Arc::clone(&consumer)))
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
            .on_control_channel(move |_, session, channel| {
                let queue = Arc::clone(&queue);
                async move { declare::queue(&session, channel, &queue).await }
            })
            .await
    }

    /// Drops the messages of a queue that are not delivered yet and returns how many.
    pub async fn purge_queue(&self, name: &str) -> Result<u32, Error> {
        check_short("queue", name)?;
        let name: Arc<str> = name.into();
        self.handle
            .on_control_channel(move |_, session, channel| {
                let name = Arc::clone(&name);
                async move { declare::purge_queue(&session, channel, &name).await }
            })
            .await
    }

    /// Deletes a queue and forgets it; returns how many messages went with it. Nothing happens if it does not exist.
    pub async fn delete_queue(&self, name: &str) -> Result<u32, Error> {
        check_short("queue", name)?;
        let name: Arc<str> = name.into();
        self.handle
            .on_control_channel(move |shared, session, channel| {
                let name = Arc::clone(&name);
                async move {
                    let count = declare::delete_queue(&session, channel, &name).await?;
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
            .on_control_channel(move |shared, session, channel| {
                let name = Arc::clone(&name);
                async move {
                    declare::delete_exchange(&session, channel, &name).await?;
                    shared.registry().forget_exchange(&name);
                    Ok(())
                }
            })
            .await
    }

    pub fn status(&self) -> Status {
        self.handle.shared.status()
    }

    /// The broker's properties at the last connection.
    pub fn server(&self) -> Server {
        self.handle.shared.server()
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
        check_table(&exchange.arguments)?;
    }
    for queue in &topology.queues {
        check_short("queue", &queue.name)?;
        check_table(&queue.arguments)?;
    }
    for binding in &topology.bindings {
        check_short("exchange", &binding.source)?;
        match &binding.destination {
            Destination::Queue(queue) => check_short("queue", queue)?,
            Destination::Exchange(exchange) => check_short("exchange", exchange)?,
        }
        check_short("routing key", &binding.routing_key)?;
        check_table(&binding.arguments)?;
    }
    Ok(())
}

async fn declare_all(
    shared: &Shared,
    session: &Session,
    channel: u16,
    topology: &Topology,
) -> Result<Vec<QueueState>, Error> {
    for exchange in &topology.exchanges {
        declare::exchange(session, channel, exchange).await?;
        if !exchange.passive {
            shared.registry().remember_exchange(exchange);
        }
    }
    let mut states = Vec::with_capacity(topology.queues.len());
    for queue in &topology.queues {
        let state = declare::queue(session, channel, queue).await?;
        if !queue.passive {
            shared.registry().remember_queue(queue, &state.name);
        }
        states.push(state);
    }
    for binding in &topology.bindings {
        declare::binding(session, channel, binding).await?;
        shared.registry().remember_binding(binding);
    }
    Ok(states)
}
