//! The common part of the brokers of these tests: frames, and the answers of a proper one.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpListener;
use weft_core::amqp::Host;

/// Class and method id.
pub type Method = (u16, u16);

pub const CHANNEL_OPEN: Method = (20, 10);
pub const CHANNEL_CLOSE: Method = (20, 40);
pub const QUEUE_DECLARE: Method = (50, 10);
pub const QUEUE_BIND: Method = (50, 20);
pub const BASIC_QOS: Method = (60, 10);
pub const BASIC_CONSUME: Method = (60, 20);
pub const BASIC_CANCEL: Method = (60, 30);
pub const BASIC_PUBLISH: Method = (60, 40);
pub const CONFIRM_SELECT: Method = (85, 10);

/// A socket for a broker, and where a client finds it.
pub async fn listen() -> (TcpListener, Host) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = "127.0.0.1".to_owned();
    let port = listener.local_addr().unwrap().port();
    (listener, Host { name, port })
}

/// A frame that the client has sent.
pub struct Frame {
    pub kind: u8,
    pub channel: u16,
    pub payload: Vec<u8>,
}

impl Frame {
    pub async fn read(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let kind = reader.read_u8().await?;
        let channel = reader.read_u16().await?;
        let size = reader.read_u32().await? as usize;
        let mut payload = vec![0; size];
        reader.read_exact(&mut payload).await?;
        let _frame_end = reader.read_u8().await?;
        Ok(Self {
            kind,
            channel,
            payload,
        })
    }

    /// The method of a method frame.
    pub fn method(&self) -> Option<Method> {
        let [class, id] = [0, 2].map(|at| {
            let bytes = self.payload.get(at..at + 2)?;
            Some(u16::from_be_bytes(bytes.try_into().ok()?))
        });
        (self.kind == 1).then_some((class?, id?))
    }
}

/// The bytes of a frame.
pub fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend(channel.to_be_bytes());
    out.extend((payload.len() as u32).to_be_bytes());
    out.extend(payload);
    out.push(0xCE);
    out
}

/// The bytes of a method frame.
pub fn method(channel: u16, (class, id): Method, arguments: &[u8]) -> Vec<u8> {
    let payload = [&class.to_be_bytes()[..], &id.to_be_bytes(), arguments].concat();
    frame(1, channel, &payload)
}

/// The frame that opens the conversation.
pub fn connection_start() -> Vec<u8> {
    let start = [
        &[0, 9, 0, 0, 0, 0][..],
        &[0, 0, 0, 5],
        b"PLAIN",
        &[0, 0, 0, 5],
        b"en_US",
    ];
    method(0, (10, 10), &start.concat())
}

/// The answer of a proper broker to a frame. `confirms` counts the messages it has taken.
pub fn reply(confirms: &mut u64, asked: &Frame) -> Vec<Vec<u8>> {
    let channel = asked.channel;
    if asked.kind == 3 {
        *confirms += 1;
        let arguments = [&confirms.to_be_bytes()[..], &[0]].concat();
        return vec![method(channel, (60, 80), &arguments)];
    }
    let Some((class, id)) = asked.method() else {
        return Vec::new();
    };
    let answer = |id, arguments: &[u8]| vec![method(channel, (class, id), arguments)];
    match (class, id) {
        (10, 11) => answer(30, &[0, 10, 0, 0, 16, 0, 0, 1]),
        (10, 40) => answer(41, &[0]),
        (10, 50) => answer(51, &[]),
        (20, 10) => answer(11, &[0; 4]),
        (20, 40) => answer(41, &[]),
        (50, 10) => answer(11, b"\x01q\0\0\0\0\0\0\0\0"),
        (50, 20) => answer(21, &[]),
        (60, 10) => answer(11, &[]),
        (60, 20) => {
            let deliver = method(channel, (60, 60), b"\x01t\0\0\0\0\0\0\0\x01\0\0\x01q");
            let header = [&[0, 60, 0, 0][..], &2u64.to_be_bytes(), &[0, 0]].concat();
            let content = [
                deliver,
                frame(2, channel, &header),
                frame(3, channel, b"hi"),
            ];
            [answer(21, b"\x01t"), content.to_vec()].concat()
        }
        (60, 30) => answer(31, b"\x01t"),
        (85, 10) => answer(11, &[]),
        _ => Vec::new(),
    }
}
