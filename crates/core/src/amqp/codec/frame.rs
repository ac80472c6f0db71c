//! Frames (specification §4.2.3): type, channel, size, payload, end octet.

use super::Properties;
use super::wire::{Malformed, Reader, put_u16, put_u32, put_u64};

pub(crate) const METHOD: u8 = 1;
pub(crate) const HEADER: u8 = 2;
pub(crate) const BODY: u8 = 3;
pub(crate) const HEARTBEAT: u8 = 8;
const END: u8 = 0xCE;
/// The class of everything that has content: published, delivered and returned messages.
const BASIC: u16 = 60;

pub(crate) const HEADER_LEN: usize = 7;
/// Header and end octet.
pub(crate) const OVERHEAD: usize = 8;

pub(crate) const HEARTBEAT_FRAME: [u8; OVERHEAD] = [HEARTBEAT, 0, 0, 0, 0, 0, 0, END];
pub(crate) const PROTOCOL_HEADER: &[u8; 8] = b"AMQP\x00\x00\x09\x01";

/// One whole frame at the front of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: u8,
    pub(crate) channel: u16,
    pub(crate) payload: &'a [u8],
}

impl Frame<'_> {
    /// Bytes the frame takes in the buffer.
    pub(crate) fn len(&self) -> usize {
        self.payload.len() + OVERHEAD
    }
}

/// The frame at the front of `buffer`, or `None` while it is incomplete.
pub(crate) fn parse(buffer: &[u8], frame_max: usize) -> Result<Option<Frame<'_>>, Malformed> {
    let Some((header, rest)) = buffer.split_first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let [kind, c0, c1, s0, s1, s2, s3] = *header;
    let size = u32::from_be_bytes([s0, s1, s2, s3]) as usize;
    if size > frame_max - OVERHEAD {
        return Err(Malformed("frame size"));
    }
    let Some((payload, end)) = rest.split_at_checked(size) else {
        return Ok(None);
    };
    match end.first() {
        None => Ok(None),
        Some(&END) => Ok(Some(Frame {
            kind,
            channel: u16::from_be_bytes([c0, c1]),
            payload,
        })),
        Some(_) => Err(Malformed("frame end")),
    }
}

/// Appends a frame whose payload `body` writes.
pub(crate) fn put(out: &mut Vec<u8>, kind: u8, channel: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(kind);
    put_u16(out, channel);
    put_u32(out, 0);
    body(out);
    let size = (out.len() - at - HEADER_LEN) as u32;
    out[at + 3..at + HEADER_LEN].copy_from_slice(&size.to_be_bytes());
    out.push(END);
}

/// Appends the header in front of a body of `body_size` bytes; it cannot be split.
pub(crate) fn put_header(
    out: &mut Vec<u8>,
    channel: u16,
    properties: &Properties<'_>,
    body_size: usize,
) {
    put(out, HEADER, channel, |out| {
        put_u16(out, BASIC);
        put_u16(out, 0);
        put_u64(out, body_size as u64);
        properties.encode(out);
    });
}

/// Appends a body, split to fit `frame_max`.
pub(crate) fn put_body(out: &mut Vec<u8>, channel: u16, body: &[u8], frame_max: usize) {
    for chunk in body.chunks(frame_max - OVERHEAD) {
        put(out, BODY, channel, |out| out.extend_from_slice(chunk));
    }
}

/// The fixed part of a content header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentHeader {
    pub(crate) body_size: u64,
}

impl ContentHeader {
    /// Bytes before the properties.
    pub(crate) const LEN: usize = 12;

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        if reader.u16()? != BASIC {
            return Err(Malformed("content class"));
        }
        reader.u16()?;
        Ok(Self {
            body_size: reader.u64()?,
        })
    }
}
