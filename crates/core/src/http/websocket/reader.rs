use bytes::{Buf as _, Bytes, BytesMut};

use super::Message;
use super::deflate;
use super::frame::{Head, Opcode, Violation};

/// The least free space for a read.
const LEAST_ROOM: usize = 4 << 10;
const MOST_ROOM: usize = 64 << 10;
/// How much an incompressible message grows: bytes per 1,000, and a constant.
const OVERHEAD: u64 = 64;

/// A message or control frame of the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Message(Message),
    Ping(Bytes),
    Pong,
    /// With code and reason, if the frame has them.
    Close(Option<(u16, String)>),
}

/// Parses the client's bytes into messages.
pub(super) struct Reader {
    /// Received and not parsed.
    pub input: BytesMut,
    /// The head of the frame whose payload is not complete.
    head: Option<Head>,
    /// A message whose last fragment has not arrived.
    begun: Option<Begun>,
    /// The most bytes of a message.
    limit: usize,
    /// Messages may be compressed.
    inflates: bool,
}

struct Begun {
    is_binary: bool,
    is_compressed: bool,
    bytes: BytesMut,
    /// How many of its bytes are checked to be UTF-8.
    checked: usize,
}

impl Reader {
    pub(super) fn new(input: BytesMut, limit: usize, inflates: bool) -> Self {
        Self {
            input,
            head: None,
            begun: None,
            limit,
            inflates,
        }
    }

    /// Prepares the buffer for a read: shrinks it after a large frame, or makes room for the rest of one.
    pub(super) fn make_room(&mut self) {
        if self.input.is_empty() && self.input.capacity() > MOST_ROOM {
            self.input = BytesMut::new();
        }
        let wanted = self.head.map_or(0, |head| head.length as usize);
        let missing = wanted.saturating_sub(self.input.len());
        if self.input.capacity() - self.input.len() < missing.clamp(LEAST_ROOM, MOST_ROOM) {
            self.input.reserve(missing.clamp(LEAST_ROOM, MOST_ROOM));
        }
    }

    /// Frees the buffer of an idle WebSocket.
    pub(super) fn rest(&mut self) {
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
    }

    /// The next message or control frame; `None` until it is complete.
    pub(super) fn next(&mut self) -> Result<Option<Arrival>, Violation> {
        loop {
            let head = match self.head {
                Some(head) => head,
                None => {
                    let Some((head, length)) = Head::parse(&self.input)? else {
                        return Ok(None);
                    };
                    self.check(&head)?;
                    self.input.advance(length);
                    *self.head.insert(head)
                }
            };
            // The length is within the limit.
            let length = head.length as usize;
            if self.input.len() < length {
                return Ok(None);
            }
            self.head = None;
            let mut payload = self.input.split_to(length);
            head.unmask(&mut payload);
            if let Some(arrival) = self.take(&head, payload)? {
                return Ok(Some(arrival));
            }
        }
    }

    fn check(&self, head: &Head) -> Result<(), Violation> {
        if head.is_control() {
            return Ok(());
        }
        if (head.opcode == Opcode::Continuation) != self.begun.is_some() {
            return Err(Violation::Fragment);
        }
        if head.is_compressed && (!self.inflates || self.begun.is_some()) {
            return Err(Violation::ReservedBit);
        }
        let begun = self.begun.as_ref();
        let is_compressed = head.is_compressed || begun.is_some_and(|begun| begun.is_compressed);
        let before = begun.map_or(0, |begun| begun.bytes.len()) as u64;
        let limit = self.limit as u64;
        let most = match is_compressed {
            true => limit + limit / 1000 + OVERHEAD,
            false => limit,
        };
        match before.saturating_add(head.length) > most {
            true => Err(Violation::TooLong),
            false => Ok(()),
        }
    }

    fn take(&mut self, head: &Head, payload: BytesMut) -> Result<Option<Arrival>, Violation> {
        match head.opcode {
            Opcode::Ping => return Ok(Some(Arrival::Ping(payload.freeze()))),
            Opcode::Pong => return Ok(Some(Arrival::Pong)),
            Opcode::Close => return closing(&payload).map(Some),
            Opcode::Continuation | Opcode::Text | Opcode::Binary => {}
        }
        let mut begun = match self.begun.take() {
            None => Begun {
                is_binary: head.opcode == Opcode::Binary,
                is_compressed: head.is_compressed,
                bytes: payload,
                checked: 0,
            },
            Some(mut begun) => {
                begun.bytes.extend_from_slice(&payload);
                begun
            }
        };
        if head.is_final {
            return begun.finish(self.limit).map(Arrival::Message).map(Some);
        }
        begun.check()?;
        self.begun = Some(begun);
        Ok(None)
    }
}

impl Begun {
    /// Whether an incomplete text can still become UTF-8.
    fn check(&mut self) -> Result<(), Violation> {
        if self.is_binary || self.is_compressed {
            return Ok(());
        }
        match std::str::from_utf8(&self.bytes[self.checked..]) {
            Ok(_) => self.checked = self.bytes.len(),
            Err(error) if error.error_len().is_none() => self.checked += error.valid_up_to(),
            Err(_) => return Err(Violation::Utf8),
        }
        Ok(())
    }

    fn finish(self, limit: usize) -> Result<Message, Violation> {
        let (bytes, checked) = match self.is_compressed {
            true => (deflate::inflate(&self.bytes, limit)?, 0),
            false => (self.bytes.freeze(), self.checked),
        };
        if self.is_binary {
            return Ok(Message::binary(bytes));
        }
        match std::str::from_utf8(&bytes[checked..]) {
            Ok(_) => Ok(Message {
                bytes,
                is_binary: false,
            }),
            Err(_) => Err(Violation::Utf8),
        }
    }
}

/// RFC 6455 §5.5.1
fn closing(payload: &[u8]) -> Result<Arrival, Violation> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return match payload.is_empty() {
            true => Ok(Arrival::Close(None)),
            false => Err(Violation::Close),
        };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Violation::Close);
    }
    let reason = std::str::from_utf8(reason).map_err(|_| Violation::Utf8)?;
    Ok(Arrival::Close(Some((code, reason.to_owned()))))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 1 << 12;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first, 0x80 | 126];
        match payload.len() {
            length @ 0..=125 => frame[1] = 0x80 | length as u8,
            length => frame.extend((length as u16).to_be_bytes()),
        }
        frame.extend([1, 2, 3, 4]);
        frame.extend(
            payload
                .iter()
                .zip([1, 2, 3, 4].iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        frame
    }

    fn read_in_chunks(
        bytes: &[u8],
        mut length: impl FnMut() -> usize,
    ) -> Result<Vec<Arrival>, Violation> {
        let mut reader = Reader::new(BytesMut::new(), LIMIT, true);
        let mut arrivals = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (chunk, left) = rest.split_at(length().clamp(1, rest.len()));
            rest = left;
            reader.make_room();
            reader.input.extend_from_slice(chunk);
            while let Some(arrival) = reader.next()? {
                arrivals.push(arrival);
            }
        }
        Ok(arrivals)
    }

    fn read(bytes: &[u8]) -> Result<Vec<Arrival>, Violation> {
        read_in_chunks(bytes, || usize::MAX)
    }

    fn text(text: &str) -> Arrival {
        Arrival::Message(Message::text(Bytes::copy_from_slice(text.as_bytes())).unwrap())
    }

    #[test]
    fn fragments_are_one_message_with_a_ping_between_them() {
        let bytes = [
            frame(0x01, b"gr\xc3"),
            frame(0x89, b"?"),
            frame(0x80, b"\xbcn"),
        ]
        .concat();
        let expected = [Arrival::Ping(Bytes::from_static(b"?")), text("gr\u{fc}n")];
        assert_eq!(read(&bytes).unwrap(), expected);
        assert_eq!(read_in_chunks(&bytes, || 1).unwrap(), expected);
    }

    #[test]
    fn a_text_that_cannot_become_utf8_is_refused_before_it_is_complete() {
        assert_eq!(read(&frame(0x01, b"gr\xc3x")), Err(Violation::Utf8));
        assert_eq!(read(&frame(0x81, b"gr\xc3")), Err(Violation::Utf8));
    }

    #[test]
    fn a_message_is_refused_by_the_head_that_makes_it_too_long() {
        let half = vec![0; LIMIT / 2];
        let whole = [frame(0x02, &half), frame(0x80, &half)].concat();
        assert_eq!(read(&whole).unwrap().len(), 1);
        let more = [
            frame(0x02, &half),
            frame(0x00, &half),
            vec![0x80, 0x81, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(read(&more), Err(Violation::TooLong));
    }

    #[test]
    fn compressed_messages_are_read_in_fragments_too() {
        let plain = "Hello".repeat(500);
        let coded = deflate::deflate(plain.as_bytes(), 15).unwrap();
        let (one, other) = coded.split_at(3);
        let bytes = [frame(0x41, one), frame(0x80, other)].concat();
        assert_eq!(read(&bytes).unwrap(), [text(&plain)]);
    }

    #[test]
    fn a_compressed_message_may_not_become_longer_than_any_other() {
        let bomb = deflate::deflate(&vec![0; LIMIT + 1], 15).unwrap();
        assert!(bomb.len() < 100);
        assert_eq!(read(&frame(0xc2, &bomb)), Err(Violation::TooLong));
    }

    #[test]
    fn compression_is_refused_where_it_was_not_agreed_on_and_within_a_message() {
        let mut reader = Reader::new(BytesMut::from(&frame(0xc1, b"x")[..]), LIMIT, false);
        assert_eq!(reader.next(), Err(Violation::ReservedBit));
        let bytes = [frame(0x01, b"a"), frame(0xc0, b"b")].concat();
        assert_eq!(read(&bytes), Err(Violation::ReservedBit));
    }

    #[test]
    fn a_frame_of_closing_has_a_code_that_may_be_sent() {
        assert_eq!(read(&frame(0x88, b"")).unwrap(), [Arrival::Close(None)]);
        let expected = [Arrival::Close(Some((4000, "why".to_owned())))];
        assert_eq!(read(&frame(0x88, b"\x0f\xa0why")).unwrap(), expected);
        for code in [0_u16, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65535] {
            assert_eq!(
                read(&frame(0x88, &code.to_be_bytes())),
                Err(Violation::Close),
                "{code}"
            );
        }
        assert_eq!(read(&frame(0x88, b"\x03")), Err(Violation::Close));
        assert_eq!(read(&frame(0x88, b"\x03\xe8\xff")), Err(Violation::Utf8));
    }

    /// Every kind of frame, compressed and not, in fragments and not.
    fn everything() -> Vec<u8> {
        let coded = deflate::deflate(&[b'x'; 1000], 15).unwrap();
        [
            frame(0x81, "h\u{e9}llo".as_bytes()),
            frame(0xc1, &coded),
            frame(0x42, &coded[..2]),
            frame(0x8a, b"pong"),
            frame(0x80, &coded[2..]),
            frame(0x02, &[0xff; 300]),
            frame(0x80, &[]),
            frame(0x88, b"\x03\xe8bye"),
        ]
        .concat()
    }

    #[test]
    fn one_of_every_kind_is_read() {
        assert_eq!(read(&everything()).unwrap().len(), 6);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Any input ends in messages within the limit or in a violation, however it is split.
        #[test]
        fn damaged_frames_are_read_alike_however_they_are_split(
            damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            rest in vec(any::<u8>(), 0..20),
            cuts in vec(1..60_usize, 1..20),
        ) {
            let mut bytes = everything();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.extend(rest);
            let at_once = read(&bytes);
            for arrival in at_once.iter().flatten() {
                if let Arrival::Message(message) = arrival {
                    prop_assert!(message.as_bytes().len() <= LIMIT);
                }
            }
            let mut lengths = cuts.iter().cycle().copied();
            prop_assert_eq!(read_in_chunks(&bytes, || lengths.next().unwrap()), at_once);
        }
    }
}
