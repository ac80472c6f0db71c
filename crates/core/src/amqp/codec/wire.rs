//! Bounds-checked reading and appending of the AMQP primitive types (specification §4.2.5).

use std::borrow::Cow;

/// Bytes that do not follow the protocol; the text says which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed {0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Walks over a payload; every read fails instead of passing the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(len).ok_or(Malformed("length"))?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Malformed("number"))?;
        self.rest = tail;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn short_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u8()?;
        self.bytes(usize::from(len))
    }

    /// Invalid UTF-8 is replaced rather than refused: brokers do not check it, and one odd key must not end a connection.
    pub(crate) fn short_string(&mut self) -> Result<Cow<'a, str>, Malformed> {
        self.short_bytes().map(String::from_utf8_lossy)
    }

    pub(crate) fn long_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).map_err(|_| Malformed("length"))?)
    }
}

pub(crate) fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Text longer than 255 bytes is cut at a character; callers refuse it before it comes here.
pub(crate) fn put_short(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(255);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.push(end as u8);
    out.extend_from_slice(&text.as_bytes()[..end]);
}

pub(crate) fn put_long(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

/// Writes a 32-bit length in front of what `body` appends.
pub(crate) fn put_sized(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    put_u32(out, 0);
    body(out);
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
}
