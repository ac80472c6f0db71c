//! Opens, starts again and ends the channels of publishers and consumers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, sleep_until};

use super::Error;
use super::codec::method;
use super::consumer_state::{ConsumeOptions, ConsumerShared};
use super::publisher_state::PublisherShared;
use super::session::{Role, Session};
use super::shared::Shared;
use super::status::Event;

/// Between two starts of a publisher on one connection, and between the end of a consumer's channel and the start of the next.
const CHANNEL_RESTART_DELAY: Duration = Duration::from_millis(500);

/// Opens a publisher's channel on a new session, or again on the same one; nothing is sent on it yet.
///
/// Changes nothing once `session` has been replaced: the publisher then belongs to the next one.
pub(super) async fn open_publisher(
    shared: &Shared,
    session: &Session,
    publisher: &Arc<PublisherShared>,
) -> Result<(), Error> {
    let channel = publisher.channel;
    let object = || format!("open publisher channel {channel}");
    shared.commit(session, |_| publisher.renew())?;
    let role = Role::Publisher(Arc::clone(publisher));
    session.open(channel, role, object).await?;
    if publisher.confirm {
        let frame = method::bare(channel, method::CONFIRM_SELECT);
        session
            .call(channel, frame, method::CONFIRM_SELECT_OK, object)
            .await?;
    }
    Ok(())
}

/// Opens a consumer's channel and starts consuming, on a new session or again on the same one.
///
/// Changes nothing once `session` has been replaced: the consumer then belongs to the next one.
pub(super) async fn open_consumer(
    shared: &Shared,
    session: &Session,
    consumer: &Arc<ConsumerShared>,
) -> Result<(), Error> {
    let queue = shared.commit(session, |_| consumer.renew())?;
    let object = || format!("consume queue \"{queue}\"");
    let channel = consumer.channel;
    let role = Role::Consumer(Arc::clone(consumer));
    session.open(channel, role, object).await?;
    let qos = method::qos(channel, consumer.options.prefetch);
    session.call(channel, qos, method::QOS_OK, object).await?;
    consume(session, consumer).await
}

/// Starts consuming on the open channel.
async fn consume(session: &Session, consumer: &ConsumerShared) -> Result<(), Error> {
    let queue = consumer.queue();
    let ConsumeOptions {
        exclusive,
        arguments,
        ..
    } = &consumer.options;
    let tag = &consumer.consumer_tag;
    let frame = method::consume(consumer.channel, &queue, tag, *exclusive, arguments);
    let object = || format!("consume queue \"{queue}\"");
    session
        .call(consumer.channel, frame, method::CONSUME_OK, object)
        .await?;
    // Cancelled while it was being started: the broker may have had the cancel before the consume, or none.
    if consumer.is_wanted() {
        Ok(())
    } else {
        cancel_consumer(session, consumer).await
    }
}

/// Stops deliveries; the channel stays open.
pub(super) async fn cancel_consumer(
    session: &Session,
    consumer: &ConsumerShared,
) -> Result<(), Error> {
    let tag = &consumer.consumer_tag;
    let frame = method::cancel(consumer.channel, tag);
    let object = || format!("cancel consumer \"{tag}\"");
    session
        .call(consumer.channel, frame, method::CANCEL_OK, object)
        .await
        .map(drop)
}

/// Waits for the answer to a method without effect: the broker works off a channel's methods in order, messages and acks included.
pub(super) async fn flush_channel(
    session: &Session,
    channel: u16,
    prefetch: u16,
    object: impl FnOnce() -> String,
) -> Result<(), Error> {
    let frame = method::qos(channel, prefetch);
    session
        .call(channel, frame, method::QOS_OK, object)
        .await
        .map(drop)
}

/// Why a consumer that the broker refused to start again has ended.
pub(super) fn consumer_cancelled(consumer: &ConsumerShared, error: &Error) -> Error {
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
    /// Opens a new publisher and enters it for recovery.
    pub(super) async fn start_publisher(
        self: &Arc<Self>,
        session: Session,
        publisher: Arc<PublisherShared>,
    ) -> Result<(), Error> {
        open_publisher(self, &session, &publisher).await?;
        let online = self.commit(&session, |registry| {
            registry.publishers.push(Arc::clone(&publisher));
            publisher.go_online()
        })?;
        self.restart_if_closed(&session, publisher, online);
        Ok(())
    }

    /// Starts a new consumer and enters it for recovery.
    pub(super) async fn start_consumer(
        self: &Arc<Self>,
        session: Session,
        consumer: Arc<ConsumerShared>,
    ) -> Result<(), Error> {
        open_consumer(self, &session, &consumer).await?;
        self.commit(&session, |registry| {
            registry.consumers.push(Arc::clone(&consumer));
        })
    }

    /// Opens a publisher's channel again if the broker closed it before the publisher could go online.
    pub(super) fn restart_if_closed(
        self: &Arc<Self>,
        session: &Session,
        publisher: Arc<PublisherShared>,
        online: Result<(), Error>,
    ) {
        if let Err(error) = online {
            self.restart_publisher(session, publisher, error);
        }
    }

    /// The broker closed a publisher's channel; opens it again on the same session.
    pub(super) fn restart_publisher(
        self: &Arc<Self>,
        session: &Session,
        publisher: Arc<PublisherShared>,
        error: Error,
    ) {
        self.events.push(Event::ChannelClosed { error });
        let (shared, session) = (Arc::clone(self), session.clone());
        self.spawn(async move {
            // A channel that is closed each time it is opened must not keep both sides busy; one that has served for a
            // while is opened again at once.
            sleep_until(publisher.opened() + CHANNEL_RESTART_DELAY).await;
            if !publisher.is_wanted() {
                return;
            }
            match open_publisher(&shared, &session, &publisher).await {
                Ok(()) => {
                    // The next session opens it if this one has ended.
                    if let Ok(online) = shared.commit(&session, |_| publisher.go_online()) {
                        shared.restart_if_closed(&session, publisher, online);
                    }
                }
                // The next session opens it.
                Err(error) if error.ends_session() => {}
                Err(error) => publisher.close(&error),
            }
        });
    }

    /// The broker closed a consumer's channel; starts it again on the same session.
    pub(super) fn restart_consumer(
        self: &Arc<Self>,
        session: &Session,
        consumer: Arc<ConsumerShared>,
        error: Error,
    ) {
        self.events.push(Event::ChannelClosed { error });
        let (shared, session) = (Arc::clone(self), session.clone());
        self.spawn(async move {
            // A channel that is refused again and again must not keep both sides busy.
            sleep(CHANNEL_RESTART_DELAY).await;
            if !consumer.is_wanted() {
                return;
            }
            match open_consumer(&shared, &session, &consumer).await {
                Ok(()) => {}
                // The next session starts it.
                Err(error) if error.ends_session() => {}
                Err(error) => consumer.fail(consumer_cancelled(&consumer, &error)),
            }
        });
    }

    /// The broker cancelled a consumer. Its channel and its deliveries stay; if the queue is gone for good, the attempt to
    /// consume again closes the channel, and the restart above tells the user.
    pub(super) fn resume_cancelled_consumer(
        self: &Arc<Self>,
        session: &Session,
        consumer: Arc<ConsumerShared>,
    ) {
        let Some(generation) = consumer.begin_resuming() else {
            return;
        };
        self.events.push(Event::ConsumerCancelled {
            queue: consumer.queue(),
        });
        let session = session.clone();
        self.spawn(async move {
            sleep(CHANNEL_RESTART_DELAY / 5).await;
            if consumer.end_resuming(generation) {
                let _ = consume(&session, &consumer).await;
            }
        });
    }

    pub(super) async fn end_publisher(self: Arc<Self>, publisher: Arc<PublisherShared>) {
        publisher.sent().await;
        publisher.retire();
        let number = publisher.channel;
        let _ = self
            .on_session(|session| async move { session.close_channel(number).await })
            .await;
        self.registry().forget_publisher(&publisher);
    }

    pub(super) async fn end_consumer(self: Arc<Self>, consumer: &Arc<ConsumerShared>) {
        let number = consumer.channel;
        let _ = self
            .on_session(|session| async move { session.close_channel(number).await })
            .await;
        self.registry().forget_consumer(consumer);
    }
}
