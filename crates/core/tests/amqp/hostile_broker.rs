//! A broker that answers properly but for one answer, which it cuts off, lengthens, replaces, repeats, moves to another channel or
//! leaves out. On the next connection it behaves.
//!
//! No call waits beyond the heartbeat, every error names what failed, the connection recovers, and no memory is taken for what a
//! frame only announces. By default every eighth attack is run; `WEFT_HOSTILE=all` runs all of them, as `make test-properties` does.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use weft_core::amqp::{
    Config, Connection, ConsumeOptions, Error, PublisherOptions, Queue, Topology,
};

use crate::fake_broker::{Frame, Method, connection_start, frame, listen, method, reply};
use crate::peak_memory::PeakMemory;
use crate::support::to;

/// Answers of the conversation below, from connection.start to the last channel.close-ok.
const ANSWERS: usize = 18;
/// Attacks at the same time: each takes two descriptors on both sides.
const AT_ONCE: usize = 100;
/// Bytes for all attacks at the same time, and for the tests beside this one. [`Attack::Huge`] announces eight times as much.
const MEMORY: usize = 512 << 20;

const METHODS: [Method; 32] = [
    (10, 10),
    (10, 20),
    (10, 30),
    (10, 41),
    (10, 50),
    (10, 51),
    (10, 60),
    (10, 61),
    (20, 11),
    (20, 20),
    (20, 21),
    (20, 40),
    (20, 41),
    (40, 11),
    (40, 21),
    (40, 31),
    (50, 11),
    (50, 21),
    (50, 31),
    (50, 41),
    (60, 11),
    (60, 21),
    (60, 30),
    (60, 31),
    (60, 50),
    (60, 60),
    (60, 72),
    (60, 80),
    (60, 111),
    (60, 120),
    (85, 11),
    (99, 99),
];

#[derive(Debug, Clone, Copy)]
enum Attack {
    /// Sends this many bytes and closes the connection.
    Cut(usize),
    /// Sends this many bytes and then nothing.
    Stall(usize),
    /// Removes this many bytes from the end of the payload; the frame is well formed.
    Shorten(usize),
    /// Appends this many bytes to the payload; the frame is well formed.
    Lengthen(usize),
    Repeat,
    Channel(u16),
    Kind(u8),
    /// Announces a frame of almost 4 GiB.
    Huge,
    /// Sends this method instead, with this many zero bytes as arguments.
    Replace(Method, usize),
    /// Sends this method first.
    Precede(Method, usize),
    /// Damages the byte that ends the frame.
    NoEnd,
}

fn attacks() -> Vec<Attack> {
    let mut all = vec![
        Attack::Repeat,
        Attack::Huge,
        Attack::NoEnd,
        Attack::Stall(0),
    ];
    all.extend([0, 1, 6, 7, 8, 12].map(Attack::Cut));
    all.extend([3, 9].map(Attack::Stall));
    all.extend([1, 2, 4].map(Attack::Shorten));
    all.extend([1, 200].map(Attack::Lengthen));
    all.extend([0, 1, 2, 3, 9, u16::MAX].map(Attack::Channel));
    all.extend([0, 2, 3, 4, 8, 255].map(Attack::Kind));
    for method in METHODS {
        all.extend([0, 40].map(|zeros| Attack::Replace(method, zeros)));
        all.push(Attack::Precede(method, 40));
    }
    all
}

/// The answer as the attack wants it, and whether the socket is closed afterwards or nothing more is sent.
fn damaged(attack: Attack, answer: &[u8]) -> (Vec<u8>, Fate) {
    let channel = u16::from_be_bytes([answer[1], answer[2]]);
    let size = u32::from_be_bytes([answer[3], answer[4], answer[5], answer[6]]) as usize;
    let (first, rest) = answer.split_at(size + 8);
    let payload = &first[7..7 + size];
    let mut out = first.to_vec();
    match attack {
        Attack::Cut(length) => return (answer[..length.min(answer.len())].to_vec(), Fate::HangUp),
        Attack::Stall(length) => {
            return (answer[..length.min(answer.len())].to_vec(), Fate::Silence);
        }
        Attack::Shorten(by) => out = frame(first[0], channel, &payload[..size - by.min(size)]),
        Attack::Lengthen(by) => out = frame(first[0], channel, &[payload, &vec![7; by]].concat()),
        Attack::Repeat => out.extend(first),
        Attack::Channel(other) => out[1..3].copy_from_slice(&other.to_be_bytes()),
        Attack::Kind(kind) => out[0] = kind,
        Attack::Huge => out[3..7].copy_from_slice(&(u32::MAX - 8).to_be_bytes()),
        Attack::Replace(other, zeros) => out = method(channel, other, &vec![0; zeros]),
        Attack::Precede(other, zeros) => {
            out = [method(channel, other, &vec![0; zeros]), out].concat();
        }
        Attack::NoEnd => *out.last_mut().unwrap() = 0,
    }
    out.extend(rest);
    (out, Fate::GoOn)
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    GoOn,
    Silence,
    HangUp,
}

/// Answers one connection until the client ends it.
struct Session {
    writer: OwnedWriteHalf,
    attack: Option<(usize, Attack)>,
    answered: usize,
    confirms: u64,
    silent: bool,
}

impl Session {
    async fn run(socket: TcpStream, attack: Option<(usize, Attack)>) -> std::io::Result<()> {
        let (mut reader, writer) = socket.into_split();
        let mut session = Self {
            writer,
            attack,
            answered: 0,
            confirms: 0,
            silent: false,
        };
        reader.read_exact(&mut [0; 8]).await?;
        session.answer(connection_start()).await?;
        loop {
            let asked = Frame::read(&mut reader).await?;
            for answer in reply(&mut session.confirms, &asked) {
                session.answer(answer).await?;
            }
        }
    }

    async fn answer(&mut self, answer: Vec<u8>) -> std::io::Result<()> {
        let (bytes, fate) = match self.attack {
            Some((at, attack)) if at == self.answered => damaged(attack, &answer),
            _ => (answer, Fate::GoOn),
        };
        self.answered += 1;
        if !self.silent {
            self.writer.write_all(&bytes).await?;
        }
        self.silent |= fate != Fate::GoOn;
        if fate == Fate::HangUp {
            self.writer.shutdown().await?;
        }
        Ok(())
    }
}

async fn broker(listener: TcpListener, mut attack: Option<(usize, Attack)>) {
    let mut sessions = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        sessions.spawn(Session::run(socket, attack.take()));
    }
}

/// One of everything. The attack may make any of it fail.
async fn converse(connection: &Connection) -> Result<(), Error> {
    let queues = vec![Queue::new("q")];
    let topology = Topology {
        queues,
        ..Topology::default()
    };
    connection.declare(topology).await?;
    let publisher = connection.publisher(PublisherOptions::default()).await?;
    let message = to("q", b"hello");
    if let Some(confirm) = publisher.publish(&message).await? {
        confirm.await?;
    }
    let consumer = connection.consume("q", ConsumeOptions::default()).await?;
    for delivery in consumer.next_batch(1).await? {
        consumer.ack(delivery.tag());
    }
    consumer.flush().await?;
    consumer.cancel().await?;
    consumer.close().await?;
    publisher.flush().await
}

async fn survives(at: usize, attack: Attack) {
    let (listener, host) = listen().await;
    let broker_address = host.to_string();
    let config = Config {
        hosts: vec![host],
        heartbeat: Duration::from_secs(2),
        connect_timeout: Duration::from_secs(4),
        ..Config::default()
    };
    let serving = tokio::spawn(broker(listener, Some((at, attack))));
    let connection = match Connection::connect(config.clone()).await {
        Ok(connection) => connection,
        Err(error) => {
            assert!(error.to_string().contains(&broker_address), "{error}");
            Connection::connect(config).await.unwrap()
        }
    };
    if let Err(error) = converse(&connection).await {
        let text = error.to_string();
        let named = text.contains("127.0.0.1") || text.contains('"') || text.contains("channel");
        assert!(named, "{text}");
    }
    assert_eq!(
        connection
            .queue_state("q")
            .await
            .map(|state| state.messages),
        Ok(0)
    );
    connection.close().await;
    serving.abort();
}

#[tokio::test]
async fn whatever_answer_is_damaged_nothing_hangs_and_the_connection_recovers() {
    let every = if std::env::var("WEFT_HOSTILE").is_ok_and(|value| value == "all") {
        1
    } else {
        8
    };
    let attacks = attacks();
    let cases = (0..ANSWERS).flat_map(|at| attacks.iter().map(move |attack| (at, *attack)));
    let memory = PeakMemory::begin();
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for (at, attack) in cases
        .enumerate()
        .filter(|(number, _)| number % every == 0)
        .map(|(_, case)| case)
    {
        let permit = Arc::clone(&room).acquire_owned().await.unwrap();
        running.spawn(async move {
            let ended = tokio::time::timeout(Duration::from_secs(120), survives(at, attack)).await;
            assert!(ended.is_ok(), "{attack:?} at answer {at} hangs");
            drop(permit);
        });
    }
    let mut failed = Vec::new();
    while let Some(ended) = running.join_next().await {
        failed.extend(ended.err().map(|error| error.to_string()));
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(memory.bytes() < MEMORY, "it took {} bytes", memory.bytes());
}
