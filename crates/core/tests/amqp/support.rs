use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use weft_core::amqp::{
    Config, Connection, ConsumeOptions, Consumer, Delivery, Event, Host, Message, Properties,
    Publisher, PublisherOptions, Queue, Topology,
};

pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!(
            "{name} is not set; start the services and load their environment (make test does both)"
        )
    })
}

pub fn config() -> Config {
    Config::parse(&variable("AMQP_URL")).unwrap()
}

pub async fn connect() -> Connection {
    Connection::connect(config()).await.unwrap()
}

/// How long a test waits for what must come. It only ends a hang.
const DEADLINE: Duration = Duration::from_secs(60);

/// Every wait has a deadline.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .unwrap_or_else(|_| panic!("nothing happened within {DEADLINE:?}"))
}

/// Asks again every few milliseconds, until the deadline.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    let held = tokio::time::timeout(DEADLINE, asking).await;
    assert!(held.is_ok(), "it does not come about that {what}");
}

/// A name no other test or process uses.
pub fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("weft.test.{}.{number}.{what}", std::process::id())
}

/// A durable queue that deletes itself if the test does not live to do it.
pub async fn declare_queue(connection: &Connection, what: &str) -> String {
    let name = unique(what);
    let mut queue = Queue::new(&name);
    queue.arguments = weft_core::amqp::FieldTable::new().with("x-expires", 120_000);
    let topology = Topology {
        queues: vec![queue],
        ..Topology::default()
    };
    within(connection.declare(topology)).await.unwrap();
    name
}

pub async fn publisher(connection: &Connection, window: usize) -> Publisher {
    let options = PublisherOptions {
        confirm: true,
        window,
    };
    within(connection.publisher(options)).await.unwrap()
}

pub async fn consumer(connection: &Connection, queue: &str, prefetch: u16) -> Consumer {
    let options = ConsumeOptions {
        prefetch,
        ..ConsumeOptions::default()
    };
    within(connection.consume(queue, options)).await.unwrap()
}

pub fn plain() -> &'static Properties<'static> {
    static PLAIN: std::sync::LazyLock<Properties<'static>> =
        std::sync::LazyLock::new(Properties::default);
    &PLAIN
}

pub fn to<'a>(queue: &'a str, body: &'a [u8]) -> Message<'a> {
    Message {
        exchange: "",
        routing_key: queue,
        properties: plain(),
        body,
        mandatory: true,
    }
}

/// Publishes the numbers of the range as bodies and waits for all confirms.
pub async fn publish_numbers(publisher: &Publisher, queue: &str, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let body = number.to_be_bytes();
        drop(within(publisher.publish(&to(queue, &body))).await.unwrap());
    }
    within(publisher.wait_for_confirms()).await.unwrap();
}

pub fn number(delivery: &Delivery) -> u32 {
    u32::from_be_bytes(delivery.body().try_into().unwrap())
}

pub async fn ready_messages(connection: &Connection, queue: &str) -> u32 {
    within(connection.queue_state(queue))
        .await
        .unwrap()
        .messages
}

/// Waits for the count: another channel's messages may still be on their way inside the broker.
pub async fn wait_for_messages(connection: &Connection, queue: &str, expected: u32) {
    let what = format!("{expected} messages are ready in {queue}");
    eventually(&what, async || {
        ready_messages(connection, queue).await == expected
    })
    .await;
}

pub async fn wait_for_event(connection: &Connection, wanted: impl Fn(&Event) -> bool) -> Event {
    within(async {
        loop {
            let event = connection
                .next_event()
                .await
                .expect("the connection is closed");
            if wanted(&event) {
                return event;
            }
        }
    })
    .await
}

/// Stands between client and broker, and can cut and refuse.
pub struct Proxy {
    address: SocketAddr,
    open: Arc<Mutex<Vec<AbortHandle>>>,
    refusing: Arc<AtomicBool>,
}

impl Proxy {
    pub async fn start() -> Self {
        let Host { name, port } = config().hosts[0].clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            open: Arc::default(),
            refusing: Arc::default(),
        };
        let (open, refusing) = (Arc::clone(&proxy.open), Arc::clone(&proxy.refusing));
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                if refusing.load(Ordering::SeqCst) {
                    continue;
                }
                let mut broker = TcpStream::connect((name.as_str(), port)).await.unwrap();
                let relay = tokio::spawn(async move {
                    let _ = copy_bidirectional(&mut client, &mut broker).await;
                });
                open.lock().unwrap().push(relay.abort_handle());
            }
        });
        proxy
    }

    pub fn config(&self) -> Config {
        Config {
            hosts: vec![Host {
                name: "127.0.0.1".into(),
                port: self.address.port(),
            }],
            ..config()
        }
    }

    pub async fn connect(&self) -> Connection {
        within(Connection::connect(self.config())).await.unwrap()
    }

    /// Ends every connection through the proxy.
    pub fn cut(&self) {
        self.open
            .lock()
            .unwrap()
            .drain(..)
            .for_each(|relay| relay.abort());
    }

    /// Connections that neither side has ended.
    pub fn open_connections(&self) -> usize {
        let open = self.open.lock().unwrap();
        open.iter().filter(|relay| !relay.is_finished()).count()
    }

    pub fn refuse(&self, refuse: bool) {
        self.refusing.store(refuse, Ordering::SeqCst);
    }
}
