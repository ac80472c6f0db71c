//! Reads the fields of a message body. Every read is checked against the length.

use super::text::Malformed;

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        self.take().map(i32::from_be_bytes)
    }

    /// Reads up to the next NUL byte. Names and messages are in UTF-8 once the client's encoding is agreed.
    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or(Malformed)?;
        let text = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (field, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*field)
    }
}
