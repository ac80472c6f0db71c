use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::status::{Code, Status};

/// Each message is prefixed with one byte of flags and four of length.
const PREFIX: usize = 5;
const COMPRESSED: u8 = 1;

/// A message as it was on the wire.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) is_compressed: bool,
    pub(super) payload: Bytes,
}

impl Frame {
    pub(super) fn plain(payload: Bytes) -> Self {
        Self {
            is_compressed: false,
            payload,
        }
    }
}

/// Splits chunks, which may end anywhere, into messages.
#[derive(Debug)]
pub(super) struct Frames {
    /// The beginning of a message whose rest has not arrived.
    partial: BytesMut,
    /// Bytes that were not parsed. A message that is whole in it is not copied.
    current: Bytes,
    limit: usize,
}

impl Frames {
    /// A message of more than `limit` bytes is refused as soon as its prefix is read.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            partial: BytesMut::new(),
            current: Bytes::new(),
            limit,
        }
    }

    pub(super) fn push(&mut self, chunk: Bytes) {
        if self.current.is_empty() {
            self.current = chunk;
        } else {
            let mut both = BytesMut::from(&self.current[..]);
            both.extend_from_slice(&chunk);
            self.current = both.freeze();
        }
    }

    /// The next message, `None` while it is not complete.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Status> {
        if !self.partial.is_empty() {
            return self.complete();
        }
        if let Some((is_compressed, length)) = self.prefix(&self.current)?
            && self.current.len() >= PREFIX + length
        {
            self.current.advance(PREFIX);
            let payload = self.current.split_to(length);
            return Ok(Some(Frame {
                is_compressed,
                payload,
            }));
        }
        self.partial.extend_from_slice(&self.current);
        self.current = Bytes::new();
        Ok(None)
    }

    /// Whether an incomplete message is buffered.
    pub(super) fn is_inside(&self) -> bool {
        !self.partial.is_empty() || !self.current.is_empty()
    }

    /// Bytes of the incomplete message with its prefix; 0 while the length is unknown.
    pub(super) fn needed(&self) -> usize {
        match self.prefix(&self.partial) {
            Ok(Some((_, length))) => PREFIX + length,
            _ => 0,
        }
    }

    fn complete(&mut self) -> Result<Option<Frame>, Status> {
        self.fill(PREFIX);
        let Some((is_compressed, length)) = self.prefix(&self.partial)? else {
            return Ok(None);
        };
        self.fill(PREFIX + length);
        if self.partial.len() < PREFIX + length {
            return Ok(None);
        }
        let mut payload = self.partial.split().freeze();
        payload.advance(PREFIX);
        Ok(Some(Frame {
            is_compressed,
            payload,
        }))
    }

    /// Moves bytes until `partial` has `length` of them. The buffer grows by bytes that have arrived, never by an announced length.
    fn fill(&mut self, length: usize) {
        let missing = length.saturating_sub(self.partial.len());
        let chunk = self.current.split_to(missing.min(self.current.len()));
        self.partial.extend_from_slice(&chunk);
    }

    fn prefix(&self, bytes: &[u8]) -> Result<Option<(bool, usize)>, Status> {
        let [flags, a, b, c, d, ..] = *bytes else {
            return Ok(None);
        };
        if flags & !COMPRESSED != 0 {
            return Err(Status::internal(format!(
                "a message has the unknown flags 0x{flags:02x} in its prefix"
            )));
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > self.limit {
            return Err(too_large(length, self.limit));
        }
        Ok(Some((flags & COMPRESSED != 0, length)))
    }
}

pub(super) fn too_large(length: usize, limit: usize) -> Status {
    Status::new(
        Code::RESOURCE_EXHAUSTED,
        format!("a message has {length} bytes, the limit is {limit}"),
    )
}

/// Appends the message with its prefix.
pub(super) fn write(buffer: &mut BytesMut, is_compressed: bool, message: &[u8]) {
    buffer.reserve(PREFIX + message.len());
    buffer.put_u8(u8::from(is_compressed));
    // Messages of more than 4 GiB are refused before.
    buffer.put_u32(message.len() as u32);
    buffer.extend_from_slice(message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(frames: &mut Frames) -> Vec<Frame> {
        std::iter::from_fn(|| frames.next().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_however_they_are_split(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
            cuts in prop::collection::vec(1_usize..30, 1..40),
        ) {
            let mut wire = BytesMut::new();
            for (index, message) in messages.iter().enumerate() {
                write(&mut wire, index % 2 == 1, message);
            }
            let mut wire = wire.freeze();
            let mut frames = Frames::new(100);
            let mut out = Vec::new();
            for cut in cuts.iter().cycle() {
                if wire.is_empty() {
                    break;
                }
                frames.push(wire.split_to((*cut).min(wire.len())));
                out.append(&mut all(&mut frames));
            }
            prop_assert!(!frames.is_inside());
            let payloads: Vec<Vec<u8>> = out.iter().map(|frame| frame.payload.to_vec()).collect();
            prop_assert_eq!(payloads, messages);
            prop_assert!(out.iter().enumerate().all(|(index, frame)| frame.is_compressed == (index % 2 == 1)));
        }

        #[test]
        fn no_bytes_make_it_panic_or_grow_beyond_what_arrived(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20),
        ) {
            let mut frames = Frames::new(64);
            let mut arrived = 0;
            for chunk in chunks {
                arrived += chunk.len();
                frames.push(Bytes::from(chunk));
                while let Ok(Some(_)) = frames.next() {}
                prop_assert!(frames.partial.len() + frames.current.len() <= arrived);
            }
        }
    }

    #[test]
    fn a_whole_message_is_not_copied() {
        let mut wire = BytesMut::new();
        write(&mut wire, false, b"abc");
        let wire = wire.freeze();
        let at = wire[5..].as_ptr();
        let mut frames = Frames::new(3);
        frames.push(wire);
        assert_eq!(frames.next().unwrap().unwrap().payload.as_ptr(), at);
    }

    #[test]
    fn a_message_over_the_limit_is_refused_by_its_prefix() {
        let mut frames = Frames::new(3);
        frames.push(Bytes::from_static(&[0, 0, 0, 0, 4]));
        let status = frames.next().unwrap_err();
        assert_eq!(status.code, Code::RESOURCE_EXHAUSTED);
        assert_eq!(status.message, "a message has 4 bytes, the limit is 3");
    }

    #[test]
    fn an_unknown_flag_is_refused() {
        let mut frames = Frames::new(3);
        frames.push(Bytes::from_static(&[2, 0, 0, 0, 0]));
        assert_eq!(frames.next().unwrap_err().code, Code::INTERNAL);
    }
}
