//! An AMQP 0-9-1 client for RabbitMQ.
//!
//! All connections of a process live on one thread of their own, so heartbeats, acks and recovery go on while the caller's
//! thread computes. Callers encode messages straight into a connection's output buffer and take deliveries in batches;
//! the two sides wake each other at most once per batch.
//!
//! Guarantees: a publisher with confirms keeps each message until the broker has it and sends it again after a reconnect,
//! so it arrives at least once. A delivery that was not acknowledged when a connection broke is delivered again.

mod acks;
mod channel;
mod channel_lifecycle;
mod codec;
mod config;
mod confirms;
mod connection;
mod consumer;
mod consumer_state;
mod declare;
mod driver;
mod error;
mod handle;
mod handshake;
mod io_thread;
mod io_waker;
mod lock;
mod message;
mod publisher;
mod publisher_state;
mod recovery;
mod registry;
mod session;
mod shared;
mod status;
mod topology;
mod write_buffer;

pub use codec::{Field, FieldTable, Properties};
pub use config::{Config, Host, Mechanism};
pub use connection::Connection;
pub use consumer::Consumer;
pub use consumer_state::ConsumeOptions;
pub use error::{ConnectFailure, Error};
pub use handshake::Server;
pub use message::{Delivery, DeliveryTag, Message};
pub use publisher::Publisher;
pub use publisher_state::{Confirm, Dispatcher, PublisherOptions};
pub use status::{Event, Status};
pub use topology::{Binding, Destination, Exchange, Queue, QueueState, Topology};
