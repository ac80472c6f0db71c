//! The handle of a consumer.

use std::sync::Arc;

use super::Error;
use super::acks::AckWindow;
use super::channel_lifecycle::{cancel_consumer, flush_channel};
use super::consumer_state::ConsumerShared;
use super::handle::{Handle, joined};
use super::message::{Delivery, DeliveryTag};

/// Receives the messages of one queue over a channel of its own.
///
/// After a reconnect it is started again with the same prefetch. Messages that were delivered before and not
/// acknowledged come again; tags of the old deliveries settle nothing. Dropping it never blocks and gives unsettled deliveries back.
pub struct Consumer {
    shared: Arc<ConsumerShared>,
    handle: Arc<Handle>,
}

impl Consumer {
    pub(super) fn new(shared: Arc<ConsumerShared>, handle: Arc<Handle>) -> Self {
        Self { shared, handle }
    }

    /// The name the broker knows this consumer by.
    pub fn consumer_tag(&self) -> &str {
        &self.shared.consumer_tag
    }

    /// Up to `max` deliveries, at least one; empty once the consumer was cancelled and all were taken.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::ConsumerCancelled`] if the queue is gone, [`Error::Closed`] after the connection was closed.
    pub async fn next_batch(&self, max: usize) -> Result<Vec<Delivery>, Error> {
        self.shared.next_batch(max).await
    }

    /// The deliveries that have arrived, at most `max`, without waiting; possibly none.
    pub fn try_next_batch(&self, max: usize) -> Result<Vec<Delivery>, Error> {
        self.shared
            .take_batch(max)
            .unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Marks a delivery as done; the broker hears of it within a few milliseconds, together with others.
    ///
    /// False if the tag is stale (from before a reconnect, so the message comes again) or was settled before.
    pub fn ack(&self, tag: DeliveryTag) -> bool {
        self.shared.settle(tag, AckWindow::ack)
    }

    /// Gives a delivery back, to the queue or to its dead-letter exchange. False as for [`ack`](Self::ack).
    pub fn nack(&self, tag: DeliveryTag, requeue: bool) -> bool {
        self.shared
            .settle(tag, |window, tag| window.reject(tag, requeue))
    }

    /// [`nack`](Self::nack) without requeueing: the message is dead-lettered or dropped by the broker.
    pub fn reject(&self, tag: DeliveryTag) -> bool {
        self.nack(tag, false)
    }

    /// Deliveries that are here and not taken yet.
    pub fn queued(&self) -> usize {
        self.shared.queued()
    }

    /// Stops new deliveries. Those already here stay, and may still be acknowledged.
    ///
    /// Dropping the future once it was polled leaves the rest to the background: the consumer ends all the same.
    pub async fn cancel(&self) -> Result<(), Error> {
        self.shared.cancel();
        // A connection that is down has no consumer, and one that comes back does not start it again.
        let session = self.handle.current_session();
        let shared = Arc::clone(&self.shared);
        let task = self.handle.runtime.spawn(async move {
            let result = match session {
                Some(session) => cancel_consumer(&session, &shared).await,
                None => Ok(()),
            };
            shared.end();
            match result {
                Err(error) if error.ends_session() => Ok(()),
                other => other,
            }
        });
        joined(task).await
    }

    /// Waits until the broker has processed every ack and nack so far.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`] if it may not have: those deliveries come again.
    pub async fn flush(&self) -> Result<(), Error> {
        match self.handle.current_session() {
            Some(session) => {
                let ConsumerShared {
                    channel,
                    options,
                    consumer_tag,
                    ..
                } = &*self.shared;
                let object = || format!("flush consumer \"{consumer_tag}\"");
                let flushed = flush_channel(&session, *channel, options.prefetch, object).await;
                self.handle.unrepeated(flushed)
            }
            None => Err(self.handle.disconnected()),
        }
    }

    /// Sends the acks and closes the channel; deliveries that are not settled return to the queue.
    ///
    /// Dropping the future closes the channel in the background.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`] if the last acks may not have arrived: those deliveries come again.
    pub async fn close(self) -> Result<(), Error> {
        self.shared.cancel();
        match self.handle.current_session() {
            Some(session) => {
                let closed = session.close_channel(self.shared.channel).await;
                self.handle.unrepeated(closed)
            }
            None => Err(self.handle.disconnected()),
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.handle.retire_consumer(&self.shared);
    }
}
