//! A broker that answers properly, with the exceptions that a test asks for.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use weft_core::amqp::Config;

use crate::fake_broker::{
    BASIC_CONSUME, CONFIRM_SELECT, Frame, Method, connection_start, frame, listen, reply,
};

/// Longer than a busy machine holds up an answer.
pub const RPC_TIMEOUT: Duration = Duration::from_secs(3);

/// The reaction once the broker has answered a method: connection, counted from 0, channel, and where to send frames.
pub type Reaction = Box<dyn Fn(usize, u16, &UnboundedSender<Vec<u8>>) + Send + Sync>;

#[derive(Default)]
pub struct Broker {
    pub connections: AtomicUsize,
    /// The method that has no answer, on connections with these numbers.
    pub mute: Option<(Method, Range<usize>)>,
    /// The method on this connection and channel that is answered only after [`release`](Self::release).
    pub held: Option<(usize, u16, Method)>,
    /// The reaction that follows the answer to this method.
    pub after: Option<(Method, Reaction)>,
    /// Stops reading after this method.
    pub deaf_after: Option<Method>,
    /// Ends a connection.
    pub cut: Notify,
    /// Lets the held method be answered.
    pub release: Notify,
    /// The methods of the client, on all connections.
    pub asked: Mutex<Vec<Method>>,
}

impl Broker {
    pub async fn start(self) -> (Arc<Self>, Config) {
        let (listener, host) = listen().await;
        let config = Config {
            hosts: vec![host],
            heartbeat: Duration::from_secs(5),
            rpc_timeout: RPC_TIMEOUT,
            ..Config::default()
        };
        let broker = Arc::new(self);
        let serving = Arc::clone(&broker);
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let number = serving.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(Arc::clone(&serving).serve(socket, number));
            }
        });
        (broker, config)
    }

    /// How often the broker was asked for this method, on all connections.
    pub fn count(&self, method: Method) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|known| **known == method).count()
    }

    async fn serve(self: Arc<Self>, socket: TcpStream, number: usize) {
        let (reader, writer) = socket.into_split();
        let (say, said) = unbounded_channel();
        let writing = tokio::spawn(write(writer, said));
        let heart = say.clone();
        let beating = tokio::spawn(async move {
            while heart.send(frame(8, 0, &[])).is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        tokio::select! {
            _ = self.answer(reader, &say, number) => {}
            () = self.cut.notified() => {}
        }
        beating.abort();
        writing.abort();
    }

    async fn answer(
        &self,
        mut reader: OwnedReadHalf,
        say: &UnboundedSender<Vec<u8>>,
        number: usize,
    ) -> std::io::Result<()> {
        reader.read_exact(&mut [0; 8]).await?;
        let _ = say.send(connection_start());
        // Messages taken, by channel; a channel that confirms nothing has no entry.
        let mut confirms = HashMap::new();
        let mut has_consumed = false;
        loop {
            let frame = Frame::read(&mut reader).await?;
            let (channel, asked) = (frame.channel, frame.method());
            self.asked.lock().unwrap().extend(asked);
            if asked == Some(CONFIRM_SELECT) {
                confirms.insert(channel, 0);
            }
            let mut answers = match confirms.get_mut(&channel) {
                Some(count) => reply(count, &frame),
                None if frame.kind == 1 => reply(&mut 0, &frame),
                None => Vec::new(),
            };
            if asked == Some(BASIC_CONSUME) {
                // The delivery behind the answer comes once on a connection.
                answers.truncate(if std::mem::replace(&mut has_consumed, true) {
                    1
                } else {
                    9
                });
            }
            if asked.is_some() && self.held == asked.map(|asked| (number, channel, asked)) {
                self.release.notified().await;
            }
            let is_mute = self.mute.as_ref().is_some_and(|(method, connections)| {
                asked == Some(*method) && connections.contains(&number)
            });
            for answer in answers.into_iter().filter(|_| !is_mute) {
                let _ = say.send(answer);
            }
            if let Some((method, reaction)) = &self.after
                && asked == Some(*method)
            {
                reaction(number, channel, say);
            }
            if self.deaf_after.is_some() && asked == self.deaf_after {
                std::future::pending::<()>().await;
            }
        }
    }
}

async fn write(mut writer: OwnedWriteHalf, mut said: UnboundedReceiver<Vec<u8>>) {
    while let Some(mut bytes) = said.recv().await {
        // An answer and what follows it arrive together.
        while let Ok(more) = said.try_recv() {
            bytes.extend(more);
        }
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
