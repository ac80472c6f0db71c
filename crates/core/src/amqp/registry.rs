//! The resources that a reconnect restores, and the channel numbers in use.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::Error;
use super::consumer_state::ConsumerShared;
use super::error::MAX_CLOSES;
use super::publisher_state::PublisherShared;
use super::topology::{Binding, Destination, Exchange, Queue};

#[derive(Default)]
pub(super) struct Registry {
    /// Counts the connections; resources of an older one are set up again.
    pub(super) generation: u64,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) queues: Vec<DeclaredQueue>,
    pub(super) bindings: Vec<Binding>,
    pub(super) publishers: Vec<Arc<PublisherShared>>,
    pub(super) consumers: Vec<Arc<ConsumerShared>>,
    channels: BTreeSet<u16>,
    /// How many connections in a row the broker has closed with an error on an operation of the recovery, such as `declare queue "orders"`.
    closes: HashMap<String, u8>,
}

/// A queue as it was asked for, and the name it has now.
#[derive(Debug, Clone)]
pub(super) struct DeclaredQueue {
    pub(super) queue: Queue,
    pub(super) name: String,
}

impl Registry {
    /// The lowest free channel number.
    pub(super) fn take_channel(&mut self, channel_max: u16) -> Result<u16, Error> {
        let most = if channel_max == 0 {
            u16::MAX
        } else {
            channel_max
        };
        let free = (1..=most).find(|number| !self.channels.contains(number));
        let number = free.ok_or_else(|| {
            Error::usage(format!("all {most} channels of the connection are in use"))
        })?;
        self.channels.insert(number);
        Ok(number)
    }

    pub(super) fn release_channel(&mut self, number: u16) {
        self.channels.remove(&number);
    }

    pub(super) fn has_topology(&self) -> bool {
        !(self.exchanges.is_empty() && self.queues.is_empty() && self.bindings.is_empty())
    }

    /// Whether the broker has now closed several connections on this operation of the recovery: then the next ones do without it.
    pub(super) fn must_give_up<T>(&mut self, restored: &Result<T, Error>) -> bool {
        let Err(Error::ClosedByBroker { object, .. }) = restored else {
            return false;
        };
        let closes = self.closes.entry(object.clone()).or_default();
        *closes += 1;
        *closes == MAX_CLOSES
    }

    /// The recovery is complete.
    pub(super) fn restored(&mut self) {
        self.closes.clear();
    }

    pub(super) fn remember_exchange(&mut self, exchange: &Exchange) {
        self.exchanges.retain(|known| known.name != exchange.name);
        self.exchanges.push(exchange.clone());
    }

    pub(super) fn remember_queue(&mut self, queue: &Queue, name: &str) {
        self.queues.retain(|known| known.name != name);
        self.queues.push(DeclaredQueue {
            queue: queue.clone(),
            name: name.to_owned(),
        });
    }

    pub(super) fn remember_binding(&mut self, binding: &Binding) {
        if !self.bindings.contains(binding) {
            self.bindings.push(binding.clone());
        }
    }

    pub(super) fn forget_queue(&mut self, name: &str) {
        self.queues.retain(|known| known.name != name);
        self.bindings.retain(
            |binding| !matches!(&binding.destination, Destination::Queue(queue) if queue == name),
        );
    }

    pub(super) fn forget_binding(&mut self, binding: &Binding) {
        self.bindings.retain(|known| known != binding);
    }

    pub(super) fn forget_exchange(&mut self, name: &str) {
        self.exchanges.retain(|known| known.name != name);
        self.bindings.retain(|binding| {
            binding.source != name
                && !matches!(&binding.destination, Destination::Exchange(exchange) if exchange == name)
        });
    }

    /// The broker chose another name for a queue it names itself.
    pub(super) fn rename_queue(&mut self, from: &str, to: &str) {
        for known in &mut self.queues {
            if known.name == from {
                to.clone_into(&mut known.name);
            }
        }
        for binding in &mut self.bindings {
            if let Destination::Queue(queue) = &mut binding.destination
                && queue == from
            {
                to.clone_into(queue);
            }
        }
        for consumer in &self.consumers {
            consumer.rename_queue(from, to);
        }
    }

    pub(super) fn forget_publisher(&mut self, publisher: &Arc<PublisherShared>) {
        self.publishers
            .retain(|known| !Arc::ptr_eq(known, publisher));
        self.release_channel(publisher.channel);
    }

    pub(super) fn forget_consumer(&mut self, consumer: &Arc<ConsumerShared>) {
        self.consumers.retain(|known| !Arc::ptr_eq(known, consumer));
        self.release_channel(consumer.channel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_numbers_are_reused_and_bounded() {
        let mut registry = Registry::default();
        assert_eq!(registry.take_channel(2), Ok(1));
        assert_eq!(registry.take_channel(2), Ok(2));
        assert!(registry.take_channel(2).is_err());
        registry.release_channel(1);
        assert_eq!(registry.take_channel(2), Ok(1));
    }

    #[test]
    fn a_new_name_of_a_queue_reaches_its_bindings() {
        let mut registry = Registry::default();
        registry.remember_queue(&Queue::new(""), "amq.gen-1");
        registry.remember_binding(&Binding::queue("ex", "amq.gen-1", "key"));
        registry.rename_queue("amq.gen-1", "amq.gen-2");
        assert_eq!(registry.queues[0].name, "amq.gen-2");
        assert_eq!(
            registry.bindings[0],
            Binding::queue("ex", "amq.gen-2", "key")
        );
        registry.forget_queue("amq.gen-2");
        assert!(registry.queues.is_empty() && registry.bindings.is_empty());
    }
}
