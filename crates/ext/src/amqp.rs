//! `Weft\Native\AmqpConnection`, `AmqpPublisher`, `AmqpConsumer`.

use std::cell::RefCell;
use std::rc::Rc;

use ext_php_rs::convert::IntoZval;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};

use weft_core::amqp::{
    Config, ConnectFailure, Connection, ConsumeOptions, Consumer, Delivery, DeliveryTag, Error,
    Event, Message, Publisher, PublisherOptions, QueueState, Status,
};

use crate::amqp_table::{self, Reading};
use crate::convert::array_zval;
use crate::failure::{Detail, Failure};
use crate::outcome::Payload;
use crate::process::Process;
use crate::runtime::start;
use crate::text::{NotUtf8, Text};

/// `publish` returns it when there is no room.
const FULL: i64 = -1;

#[php_class]
#[php(name = "Weft\\Native\\AmqpConnection")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct AmqpConnection {
    connection: Rc<Connection>,
}

#[php_impl]
impl AmqpConnection {
    pub fn open(dsn: Text<'_>) -> PhpResult<i64> {
        let dsn = dsn.utf8().map_err(unreadable_dsn)?;
        let config = Config::parse(dsn).map_err(failure)?;
        start(async move {
            let connection = Connection::connect(config).await.map_err(failure)?;
            object(Self {
                connection: Rc::new(connection),
            })
        })
    }

    pub fn declare(
        &self,
        exchanges: &ZendHashTable,
        queues: &ZendHashTable,
        bindings: &ZendHashTable,
    ) -> PhpResult<i64> {
        let topology = amqp_table::topology(exchanges, queues, bindings)?;
        let connection = Rc::clone(&self.connection);
        start(async move {
            connection.declare(topology).await.map_err(failure)?;
            Ok(Payload::Null)
        })
    }

    pub fn publisher(&self, confirm: bool, window: i64) -> PhpResult<i64> {
        let options = PublisherOptions {
            confirm,
            window: usize::try_from(window).unwrap_or(0).max(1),
        };
        let connection = Rc::clone(&self.connection);
        start(async move {
            let publisher = connection.publisher(options).await.map_err(failure)?;
            if let Some(process) = Process::existing().filter(|_| confirm) {
                process.reactor.spawn_background(publisher.dispatcher());
            }
            object(AmqpPublisher {
                publisher: Rc::new(publisher),
            })
        })
    }

    pub fn consume(
        &self,
        queue: Text<'_>,
        prefetch: i64,
        exclusive: bool,
        arguments: &ZendHashTable,
    ) -> PhpResult<i64> {
        let prefetch = u16::try_from(prefetch).map_err(|_| {
            Failure::new(
                "usage",
                format!("prefetch must be 0 to 65535, got {prefetch}"),
            )
        })?;
        let options = ConsumeOptions {
            prefetch,
            exclusive,
            arguments: amqp_table::arguments(arguments)?,
            ..ConsumeOptions::default()
        };
        let (connection, queue) = (Rc::clone(&self.connection), named("queue name", queue)?);
        start(async move {
            let consumer = connection.consume(&queue, options).await.map_err(failure)?;
            object(AmqpConsumer {
                consumer: Rc::new(RefCell::new(Some(Rc::new(consumer)))),
            })
        })
    }

    pub fn queue_state(&self, queue: Text<'_>) -> PhpResult<i64> {
        let (connection, queue) = (Rc::clone(&self.connection), named("queue name", queue)?);
        start(async move {
            let QueueState {
                messages,
                consumers,
                ..
            } = connection.queue_state(&queue).await.map_err(failure)?;
            Ok(Payload::build(move || {
                Ok(vec![i64::from(messages), i64::from(consumers)].into_zval(false)?)
            }))
        })
    }

    pub fn purge_queue(&self, queue: Text<'_>) -> PhpResult<i64> {
        let (connection, queue) = (Rc::clone(&self.connection), named("queue name", queue)?);
        start(async move {
            let removed = connection.purge_queue(&queue).await.map_err(failure)?;
            Ok(Payload::Int(removed.into()))
        })
    }

    pub fn delete_queue(&self, queue: Text<'_>) -> PhpResult<i64> {
        let (connection, queue) = (Rc::clone(&self.connection), named("queue name", queue)?);
        start(async move {
            let removed = connection.delete_queue(&queue).await.map_err(failure)?;
            Ok(Payload::Int(removed.into()))
        })
    }

    pub fn delete_exchange(&self, exchange: Text<'_>) -> PhpResult<i64> {
        let (connection, exchange) = (
            Rc::clone(&self.connection),
            named("exchange name", exchange)?,
        );
        start(async move {
            connection
                .delete_exchange(&exchange)
                .await
                .map_err(failure)?;
            Ok(Payload::Null)
        })
    }

    pub fn status(&self) -> PhpResult<Vec<String>> {
        Process::refuse_after_fork()?;
        let (state, reason) = match self.connection.status() {
            Status::Connected => ("connected", String::new()),
            Status::Connecting {
                attempt,
                last_error,
            } => {
                let cause = last_error
                    .map(|error| format!(": {error}"))
                    .unwrap_or_default();
                ("connecting", format!("attempt {attempt}{cause}"))
            }
            Status::Blocked { reason } => ("blocked", reason),
            Status::Closed { error } => ("closed", error.to_string()),
        };
        Ok(vec![state.to_owned(), reason])
    }

    pub fn next_event(&self) -> PhpResult<i64> {
        let connection = Rc::clone(&self.connection);
        start(async move {
            let Some(event) = connection.next_event().await else {
                return Ok(Payload::Null);
            };
            Ok(Payload::build(move || {
                let (name, message) = described(event);
                Ok(vec![name.to_owned(), message].into_zval(false)?)
            }))
        })
    }

    pub fn close(&self) -> PhpResult<i64> {
        let connection = Rc::clone(&self.connection);
        start(async move {
            connection.close().await;
            Ok(Payload::Null)
        })
    }
}

#[php_class]
#[php(name = "Weft\\Native\\AmqpPublisher")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct AmqpPublisher {
    publisher: Rc<Publisher>,
}

#[php_impl]
impl AmqpPublisher {
    #[allow(clippy::too_many_arguments)]
    pub fn publish(
        &self,
        exchange: Text<'_>,
        routing_key: Text<'_>,
        body: &Zval,
        headers: &ZendHashTable,
        properties: &ZendHashTable,
        persistent: bool,
        mandatory: bool,
        watch: bool,
    ) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        let body = body
            .zend_str()
            .ok_or_else(|| Failure::new("usage", "a message's body must be a string"))?;
        let properties = amqp_table::properties(properties, headers, persistent)?;
        let message = Message {
            exchange: checked("exchange name", exchange)?,
            routing_key: checked("routing key", routing_key)?,
            properties: &properties,
            body: body.as_bytes(),
            mandatory,
        };
        match self.publisher.try_publish(&message) {
            Ok(Some(confirm)) if watch => {
                start(async move { confirm.await.map(|()| Payload::Null).map_err(failure) })
            }
            Ok(_) => Ok(0),
            Err(Error::Full { .. }) => Ok(FULL),
            Err(error) => Err(failure(error).into()),
        }
    }

    pub fn ready(&self) -> PhpResult<i64> {
        let publisher = Rc::clone(&self.publisher);
        start(async move {
            publisher
                .ready()
                .await
                .map(|()| Payload::Null)
                .map_err(failure)
        })
    }

    pub fn flush(&self) -> PhpResult<i64> {
        let publisher = Rc::clone(&self.publisher);
        start(async move {
            publisher
                .flush()
                .await
                .map(|()| Payload::Null)
                .map_err(failure)
        })
    }
}

#[php_class]
#[php(name = "Weft\\Native\\AmqpConsumer")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct AmqpConsumer {
    /// `None` once closed.
    consumer: Rc<RefCell<Option<Rc<Consumer>>>>,
}

#[php_impl]
impl AmqpConsumer {
    pub fn next(&self, max: i64) -> PhpResult<Zval> {
        let max = usize::try_from(max).unwrap_or(0).max(1);
        let consumer = self.open()?;
        let here = consumer.try_next_batch(max).map_err(failure)?;
        if !here.is_empty() {
            return deliveries(&here);
        }
        let id = start(async move {
            let batch = consumer.next_batch(max).await.map_err(failure)?;
            Ok(Payload::build(move || deliveries(&batch)))
        })?;
        Ok(id.into_zval(false)?)
    }

    pub fn ack(&self, tag: i64) -> PhpResult<bool> {
        Ok(self.open()?.ack(DeliveryTag::from_bits(tag as u64)))
    }

    pub fn nack(&self, tag: i64, requeue: bool) -> PhpResult<bool> {
        Ok(self
            .open()?
            .nack(DeliveryTag::from_bits(tag as u64), requeue))
    }

    pub fn cancel(&self) -> PhpResult<i64> {
        let consumer = self.open()?;
        start(async move {
            consumer
                .cancel()
                .await
                .map(|()| Payload::Null)
                .map_err(failure)
        })
    }

    pub fn flush(&self) -> PhpResult<i64> {
        let consumer = self.open()?;
        start(async move {
            consumer
                .flush()
                .await
                .map(|()| Payload::Null)
                .map_err(failure)
        })
    }

    pub fn close(&self) -> PhpResult<i64> {
        let consumer = self.consumer.borrow_mut().take();
        start(async move {
            let Some(consumer) = consumer else {
                return Ok(Payload::Null);
            };
            match Rc::try_unwrap(consumer) {
                Ok(consumer) => consumer.close().await,
                // A task still waits for the next batch: the cancel ends that wait, and the last user closes the channel.
                Err(shared) => match shared.cancel().await {
                    Ok(()) => shared.flush().await,
                    error => error,
                },
            }
            .map(|()| Payload::Null)
            .map_err(failure)
        })
    }
}

impl AmqpConsumer {
    fn open(&self) -> PhpResult<Rc<Consumer>> {
        Process::refuse_after_fork()?;
        let consumer = self.consumer.borrow().clone();
        consumer.ok_or_else(|| Failure::new("usage", "the consumer is closed").into())
    }
}

fn named(what: &str, name: Text<'_>) -> Result<String, Failure> {
    checked(what, name).map(str::to_owned)
}

fn checked<'a>(what: &str, name: Text<'a>) -> Result<&'a str, Failure> {
    name.utf8().map_err(|wrong| {
        let message = format!("the {what} \"{}\" is {wrong}", name.lossy());
        Failure::new("usage", message)
    })
}

/// Without the DSN: what cannot be read may be the password.
fn unreadable_dsn(wrong: NotUtf8) -> Failure {
    let message = format!("invalid AMQP DSN: it is {wrong}; percent-encode it");
    Failure::new("dsn", message)
}

fn object<T: IntoZval + 'static>(object: T) -> Result<Payload, Failure> {
    Ok(Payload::build(move || Ok(object.into_zval(false)?)))
}

fn deliveries(batch: &[Delivery]) -> PhpResult<Zval> {
    let mut list = ZendHashTable::with_capacity(batch.len() as u32);
    for delivery in batch {
        list.push(self::delivery(delivery)?)?;
    }
    Ok(array_zval(list))
}

fn delivery(delivery: &Delivery) -> PhpResult<Zval> {
    let mut fields = ZendHashTable::with_capacity(7);
    fields.push(delivery.tag().to_bits() as i64)?;
    fields.push(delivery.redelivered())?;
    fields.push(&*delivery.exchange())?;
    fields.push(&*delivery.routing_key())?;
    fields.push(amqp_table::binary(delivery.body()))?;
    match delivery.properties() {
        Ok(properties) => {
            let Reading {
                headers,
                properties,
            } = amqp_table::read(&properties)?;
            fields.push(headers)?;
            fields.push(properties)?;
        }
        Err(error) => {
            fields.push(error.to_string())?;
            fields.push(Zval::new_array())?;
        }
    }
    Ok(array_zval(fields))
}

fn described(event: Event) -> (&'static str, String) {
    match event {
        Event::Blocked { reason } => ("blocked", reason),
        Event::Unblocked => ("unblocked", String::new()),
        Event::Disconnected { error } => ("disconnected", error.to_string()),
        Event::ReconnectFailed { attempt, error } => {
            ("reconnect failed", format!("attempt {attempt}: {error}"))
        }
        Event::Recovered { attempts } => ("recovered", format!("after {attempts} attempts")),
        Event::RestoreFailed { error } => ("restore failed", error.to_string()),
        Event::ChannelClosed { error } => ("channel closed", error.to_string()),
        Event::ConsumerCancelled { queue } => ("consumer cancelled", format!("queue \"{queue}\"")),
    }
}

/// The one mapping of AMQP errors onto kinds; `Weft\Internal\Failures` turns a kind into an exception.
pub fn failure(error: Error) -> Failure {
    let message = error.to_string();
    let kind = match &error {
        Error::Dsn { .. } => "dsn",
        Error::Connect { failure, .. } => match failure {
            ConnectFailure::Refused => "amqp.connect.refused",
            ConnectFailure::Timeout => "amqp.connect.timeout",
            ConnectFailure::Dns => "amqp.connect.dns",
            ConnectFailure::Authentication => "amqp.connect.authentication",
            ConnectFailure::VirtualHost => "amqp.connect.virtual_host",
            ConnectFailure::Tls => "amqp.connect.tls",
            ConnectFailure::Protocol => "amqp.connect.protocol",
        },
        Error::ConnectionLost { .. } | Error::Unanswered { .. } => "amqp.connection_lost",
        Error::Closed { .. } | Error::Crashed { .. } => "amqp.closed",
        Error::Refused { .. } | Error::ClosedByBroker { .. } => "amqp.refused",
        Error::Unroutable { .. } => "amqp.unroutable",
        Error::NotAccepted { .. } => "amqp.not_accepted",
        Error::ConsumerCancelled { .. } => "amqp.consumer_cancelled",
        Error::Full { .. } => "amqp.full",
        Error::Usage { .. } => "usage",
    };
    let failure = Failure::new(kind, message);
    match error {
        Error::Refused { code, .. }
        | Error::ClosedByBroker { code, .. }
        | Error::Unroutable { code, .. } => failure.with("code", Detail::Int(code.into())),
        _ => failure,
    }
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .class::<AmqpConnection>()
        .class::<AmqpPublisher>()
        .class::<AmqpConsumer>()
}
