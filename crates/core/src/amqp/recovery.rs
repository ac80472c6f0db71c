//! The life of a connection: connect, restore, run, and again until it is closed.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::consumer::ConsumerShared;
use super::driver::{Driver, Ended};
use super::handshake::{self, Opened};
use super::link::Link;
use super::publisher::PublisherShared;
use super::registry::DeclaredQueue;
use super::shared::{Phase, Shared};
use super::status::{Event, Status};
use super::topology::Binding;
use super::{Error, declare};
use crate::panics;

/// For the whole of an orderly end: outstanding confirms and the closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Short enough that work goes on within two seconds of the broker's return.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Between two starts of a consumer or publisher on one connection.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// Runs a connection until it is closed; `first` hears how the first attempt went.
pub(super) async fn run(shared: Arc<Shared>, first: oneshot::Sender<Result<(), Error>>) {
    let connection = keep_up(Arc::clone(&shared), first);
    shared.supervised(connection).await;
}

async fn keep_up(shared: Arc<Shared>, first: oneshot::Sender<Result<(), Error>>) {
    let mut opened = match handshake::connect_any(&shared.config).await {
        Ok(opened) => opened,
        Err(error) => {
            end(&shared, &error);
            let _ = first.send(Err(error));
            return;
        }
    };
    let mut first = Some(first);
    loop {
        let error = match serve(&shared, opened, first.take()).await {
            Ended::Closed => break,
            Ended::Lost(error) => error,
        };
        if shared.is_closing() {
            break;
        }
        shared.events.push(Event::Disconnected {
            error: error.clone(),
        });
        match reconnect(&shared, error).await {
            Some(again) => opened = again,
            None => break,
        }
    }
    let error = shared.closed_error();
    end(&shared, &error);
}

/// Tells everyone that the connection will not come back. Only the first reason counts.
fn end(shared: &Shared, error: &Error) {
    if matches!(&*shared.phase.borrow(), Phase::Closed(_)) {
        return;
    }
    let (publishers, consumers) = {
        let registry = shared.registry();
        (registry.publishers.clone(), registry.consumers.clone())
    };
    publishers
        .iter()
        .for_each(|publisher| publisher.close(error));
    consumers
        .iter()
        .for_each(|consumer| consumer.fail(error.clone()));
    shared.set_status(Status::Closed {
        error: error.clone(),
    });
    shared.advance(Phase::Closed(error.clone()));
    shared.events.close();
}

/// Drives one link to its end.
async fn serve(
    shared: &Arc<Shared>,
    opened: Opened,
    first: Option<oneshot::Sender<Result<(), Error>>>,
) -> Ended {
    shared.outbox.lock().frame_max = opened.limits.frame_max;
    shared.set_server(&opened.server);
    let generation = {
        let mut registry = shared.registry();
        registry.generation += 1;
        registry.generation
    };
    let link = Link::new(
        generation,
        opened.limits,
        opened.server.clone(),
        shared.config.target(),
        Arc::clone(&shared.signal),
    );
    let _ended = EndOnDrop(link.clone());
    let mut driver = Driver::new(Arc::clone(shared), link.clone(), opened);
    match first {
        Some(first) => {
            shared.set_status(Status::Connected);
            shared.advance(Phase::Up(link.clone()));
            let _ = first.send(Ok(()));
        }
        None => {
            shared.spawn(restore(Arc::clone(shared), link.clone()));
        }
    }
    let ended = tokio::select! {
        ended = driver.run() => ended,
        () = close(shared, &link) => Ended::Closed,
    };
    // From here on nothing can be committed to this link, so dismantling finds everything that was.
    shared.registry().generation += 1;
    shared.advance(Phase::Connecting);
    driver.dismantle();
    ended
}

/// However a link is left, by a panic too, no call on it waits any longer.
struct EndOnDrop(Link);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Begins an orderly end once it is asked for; finishes only if the broker does not answer in time.
async fn close(shared: &Shared, link: &Link) {
    shared.close_requested().await;
    let publishers = shared.registry().publishers.clone();
    let handshake = async {
        for publisher in publishers {
            let _ = publisher.confirmed().await;
        }
        link.close_connection();
        std::future::pending::<()>().await;
    };
    let _ = timeout(CLOSE_TIMEOUT, handshake).await;
}

/// Tries until a host answers; `None` if the connection is to be closed first.
async fn reconnect(shared: &Shared, error: Error) -> Option<Opened> {
    let mut last_error = error;
    let mut attempt = 1;
    loop {
        shared.set_status(Status::Connecting {
            attempt,
            last_error: Some(last_error),
        });
        let connecting = async {
            sleep(pause_before(attempt)).await;
            handshake::connect_any(&shared.config).await
        };
        let connected = tokio::select! {
            connected = connecting => connected,
            () = shared.close_requested() => return None,
        };
        match connected {
            Ok(opened) => {
                shared.attempts.store(attempt, Ordering::Relaxed);
                return Some(opened);
            }
            Err(error) => {
                shared.events.push(Event::ReconnectFailed {
                    attempt,
                    error: error.clone(),
                });
                last_error = error;
                attempt = attempt.saturating_add(1);
            }
        }
    }
}

/// Doubles from attempt to attempt; a random part keeps many clients from coming back at the same moment.
fn pause_before(attempt: u32) -> Duration {
    let longest = FIRST_PAUSE
        .saturating_mul(1 << attempt.saturating_sub(1).min(10))
        .min(LONGEST_PAUSE);
    let random = RandomState::new().hash_one(attempt) as f64 / u64::MAX as f64;
    longest.mul_f64(0.5 + random / 2.0)
}

/// Puts everything back on a new link: channels, topology, consumers, then what was not confirmed.
///
/// A refusal is told and passed over; only the loss of the link ends it early, and then the next link starts over.
async fn restore(shared: Arc<Shared>, link: Link) {
    if try_restore(&shared, &link).await.is_err() {
        return;
    }
    let attempts = shared.attempts.load(Ordering::Relaxed);
    let _ = shared.commit(&link, |_| {
        shared.set_status(Status::Connected);
        shared.advance(Phase::Up(link.clone()));
        shared.events.push(Event::Recovered { attempts });
    });
}

async fn try_restore(shared: &Shared, link: &Link) -> Result<(), Error> {
    let (publishers, consumers, control) = {
        let mut registry = shared.registry();
        let channel_max = link.limits().channel_max;
        let control = registry
            .has_topology()
            .then(|| registry.take_channel(channel_max))
            .transpose();
        (
            registry.publishers.clone(),
            registry.consumers.clone(),
            control,
        )
    };
    let mut open = Vec::with_capacity(publishers.len());
    for publisher in publishers {
        if passed_over(shared, publisher.open(link).await)?.is_some() {
            open.push(publisher);
        }
    }
    if let Some(channel) = passed_over(shared, control)?.flatten() {
        let restored = restore_topology(shared, link, channel).await;
        shared.registry().release_channel(channel);
        restored?;
    }
    for consumer in consumers {
        restore_consumer(shared, link, &consumer).await?;
    }
    shared.commit(link, |_| {
        open.iter().for_each(|publisher| publisher.go_online());
    })
}

/// `None` for a refusal, which is told; the loss of the link goes on to the caller.
fn passed_over<T>(shared: &Shared, result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.ends_link() => Err(error),
        Err(error) => {
            shared.events.push(Event::RestoreFailed { error });
            Ok(None)
        }
    }
}

async fn restore_topology(shared: &Shared, link: &Link, channel: u16) -> Result<(), Error> {
    let (exchanges, queues) = {
        let registry = shared.registry();
        (registry.exchanges.clone(), registry.queues.clone())
    };
    link.open_control(channel).await?;
    for exchange in &exchanges {
        let declared = declare::exchange(link, channel, exchange).await;
        tolerate(shared, link, channel, declared).await?;
    }
    for queue in &queues {
        let declared = restore_queue(shared, link, channel, queue).await;
        tolerate(shared, link, channel, declared).await?;
    }
    // Queues may have got new names, and with them the bindings.
    let bindings: Vec<Binding> = shared.registry().bindings.clone();
    for binding in &bindings {
        let bound = declare::binding(link, channel, binding).await;
        tolerate(shared, link, channel, bound).await?;
    }
    link.close_channel(channel).await
}

async fn restore_queue(
    shared: &Shared,
    link: &Link,
    channel: u16,
    known: &DeclaredQueue,
) -> Result<(), Error> {
    let state = declare::queue(link, channel, &known.queue).await?;
    if state.name != known.name {
        shared.registry().rename_queue(&known.name, &state.name);
    }
    Ok(())
}

/// Opens the channel again that a refusal has closed.
async fn tolerate(
    shared: &Shared,
    link: &Link,
    channel: u16,
    result: Result<(), Error>,
) -> Result<(), Error> {
    match passed_over(shared, result)? {
        Some(()) => Ok(()),
        None => link.open_control(channel).await,
    }
}

async fn restore_consumer(
    shared: &Shared,
    link: &Link,
    consumer: &Arc<ConsumerShared>,
) -> Result<(), Error> {
    if !consumer.is_wanted() {
        return Ok(());
    }
    let started = consumer.start(link).await;
    if let Err(error) = &started
        && !error.ends_link()
    {
        consumer.fail(cancelled(consumer, error));
    }
    passed_over(shared, started).map(drop)
}

fn cancelled(consumer: &ConsumerShared, error: &Error) -> Error {
    let reason = match error {
        Error::Refused { text, .. } => text.clone(),
        other => other.to_string(),
    };
    Error::ConsumerCancelled {
        queue: consumer.queue(),
        reason,
    }
}

impl Shared {
    /// Runs a part of the connection. Its panic closes the connection: everybody who waits gets an error that names it.
    async fn supervised(&self, part: impl Future<Output = ()>) {
        if let Err(message) = panics::caught(part).await {
            let target = self.config.target();
            end(self, &Error::Crashed { target, message });
            self.request_close();
        }
    }

    /// Runs a part of the connection in the background.
    fn spawn(self: &Arc<Self>, part: impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::clone(self);
        tokio::spawn(async move { shared.supervised(part).await });
    }

    /// Opens a new publisher and enters it for recovery.
    pub(super) async fn start_publisher(
        self: &Arc<Self>,
        link: Link,
        publisher: Arc<PublisherShared>,
    ) -> Result<(), Error> {
        publisher.open(&link).await?;
        self.commit(&link, |registry| {
            registry.publishers.push(Arc::clone(&publisher));
            publisher.go_online();
        })
    }

    /// Starts a new consumer and enters it for recovery.
    pub(super) async fn start_consumer(
        self: &Arc<Self>,
        link: Link,
        consumer: Arc<ConsumerShared>,
    ) -> Result<(), Error> {
        consumer.start(&link).await?;
        self.commit(&link, |registry| {
            registry.consumers.push(Arc::clone(&consumer));
        })
    }

    /// The broker closed a publisher's channel; opens it again on the same link.
    pub(super) fn restart_publisher(
        self: &Arc<Self>,
        link: &Link,
        publisher: Arc<PublisherShared>,
        error: Error,
    ) {
        self.events.push(Event::ChannelClosed { error });
        let (shared, link) = (Arc::clone(self), link.clone());
        self.spawn(async move {
            match publisher.open(&link).await {
                Ok(()) => {
                    let _ = shared.commit(&link, |_| publisher.go_online());
                }
                // The next link opens it.
                Err(error) if error.ends_link() => {}
                Err(error) => publisher.close(&error),
            }
        });
    }

    /// The broker closed a consumer's channel; starts it again on the same link.
    pub(super) fn restart_consumer(
        self: &Arc<Self>,
        link: &Link,
        consumer: Arc<ConsumerShared>,
        error: Error,
    ) {
        self.events.push(Event::ChannelClosed { error });
        let link = link.clone();
        self.spawn(async move {
            // A channel that is refused again and again must not keep both sides busy.
            sleep(RESTART_PAUSE).await;
            if !consumer.is_wanted() {
                return;
            }
            match consumer.start(&link).await {
                Ok(()) => {}
                Err(error) if error.ends_link() => {}
                Err(error) => consumer.fail(cancelled(&consumer, &error)),
            }
        });
    }

    /// The broker cancelled a consumer. Its channel and its deliveries stay; if the queue is gone for good, the attempt to
    /// consume again closes the channel, and the restart above tells the user.
    pub(super) fn resume_cancelled_consumer(
        self: &Arc<Self>,
        link: &Link,
        consumer: Arc<ConsumerShared>,
    ) {
        if !consumer.begin_resuming() {
            return;
        }
        self.events.push(Event::ConsumerCancelled {
            queue: consumer.queue(),
        });
        let link = link.clone();
        self.spawn(async move {
            sleep(RESTART_PAUSE / 5).await;
            consumer.end_resuming();
            if consumer.is_wanted() {
                let _ = consumer.consume(&link).await;
            }
        });
    }

    pub(super) async fn end_publisher(self: Arc<Self>, publisher: Arc<PublisherShared>) {
        let _ = publisher.confirmed().await;
        let number = publisher.channel;
        let _ = self
            .on_link(|link| async move { link.close_channel(number).await })
            .await;
        self.registry().forget_publisher(&publisher);
    }

    pub(super) async fn end_consumer(self: Arc<Self>, consumer: &Arc<ConsumerShared>) {
        let number = consumer.channel;
        let _ = self
            .on_link(|link| async move { link.close_channel(number).await })
            .await;
        self.registry().forget_consumer(consumer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_below_two_seconds() {
        for attempt in 1..40 {
            let pause = pause_before(attempt);
            assert!(
                pause >= FIRST_PAUSE / 2 && pause <= LONGEST_PAUSE,
                "{pause:?}"
            );
        }
        assert!(pause_before(10) >= LONGEST_PAUSE / 2);
    }
}
