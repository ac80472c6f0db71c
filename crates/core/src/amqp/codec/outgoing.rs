//! Walking over messages this client encoded itself: what is sent again after a connection was lost.

use std::ops::Range;

use super::frame::{self, ContentHeader, Frame};
use super::{method, wire::Reader};

/// One `basic.publish` with its content, as found in a buffer of outgoing frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) channel: u16,
    pub(crate) range: Range<usize>,
}

/// Finds the messages in `bytes`; other methods between them are passed over.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = Outgoing> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let first = frame_at(bytes, at)?;
            let start = at;
            at += first.len();
            if first.kind == frame::METHOD && is_publish(first.payload) {
                at = content_end(bytes, at)?;
                return Some(Outgoing {
                    channel: first.channel,
                    range: start..at,
                });
            }
        }
    })
}

/// The part of a message by which a returned one is recognised.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) exchange: &'a [u8],
    pub(crate) routing_key: &'a [u8],
    pub(crate) properties: &'a [u8],
    pub(crate) body: Vec<u8>,
}

/// Takes one encoded message apart; `None` if `bytes` are not exactly one.
pub(crate) fn parts(bytes: &[u8]) -> Option<Parts<'_>> {
    let publish = frame_at(bytes, 0)?;
    let mut reader = Reader::new(publish.payload);
    reader.bytes(6).ok()?;
    let exchange = reader.short_bytes().ok()?;
    let routing_key = reader.short_bytes().ok()?;
    let header = frame_at(bytes, publish.len())?;
    let properties = header.payload.get(ContentHeader::LEN..)?;
    let mut body = Vec::new();
    let mut at = publish.len() + header.len();
    while let Some(chunk) = frame_at(bytes, at) {
        body.extend_from_slice(chunk.payload);
        at += chunk.len();
    }
    Some(Parts {
        exchange,
        routing_key,
        properties,
        body,
    })
}

/// Appends an encoded message, splitting its body again where the peer now takes smaller frames.
pub(crate) fn put_again(out: &mut Vec<u8>, message: &[u8], frame_max: usize) {
    let mut at = 0;
    while let Some(part) = frame_at(message, at) {
        if part.kind == frame::BODY && part.len() > frame_max {
            frame::put_body(out, part.channel, part.payload, frame_max);
        } else {
            out.extend_from_slice(&message[at..at + part.len()]);
        }
        at += part.len();
    }
}

fn frame_at(bytes: &[u8], at: usize) -> Option<Frame<'_>> {
    frame::parse(bytes.get(at..)?, usize::MAX).ok().flatten()
}

fn is_publish(payload: &[u8]) -> bool {
    payload.starts_with(&method::PUBLISH.to_be_bytes())
}

fn content_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let header = frame_at(bytes, at)?;
    at += header.len();
    let mut missing = ContentHeader::decode(header.payload).ok()?.body_size;
    while missing > 0 {
        let chunk = frame_at(bytes, at)?;
        at += chunk.len();
        missing = missing.checked_sub(chunk.payload.len() as u64)?;
    }
    Some(at)
}
