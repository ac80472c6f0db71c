//! WebSocket frames (RFC 6455 §5.2).

use bytes::{BufMut as _, BytesMut};

/// The longest payload of a control frame (RFC 6455 §5.5).
const MAX_CONTROL_PAYLOAD: u64 = 125;
const FINAL: u8 = 0x80;
/// RSV1, which marks the first frame of a compressed message (RFC 7692 §6).
const COMPRESSED: u8 = 0x40;
const RESERVED: u8 = 0x30;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn numbered(number: u8) -> Option<Self> {
        let all = [
            Self::Continuation,
            Self::Text,
            Self::Binary,
            Self::Close,
            Self::Ping,
            Self::Pong,
        ];
        all.into_iter().find(|opcode| opcode.number() == number)
    }

    fn is_control(self) -> bool {
        self.number() >= 8
    }
}

/// A protocol violation of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Violation {
    #[error("a frame has a reserved bit set, and no extension was negotiated for it")]
    ReservedBit,
    #[error("the opcode of a frame is unknown")]
    Opcode,
    #[error("a frame is not masked")]
    NoMask,
    #[error("the length of a frame is not encoded in the fewest bytes, or needs more than 63 bits")]
    Length,
    #[error("a control frame is fragmented, compressed or longer than 125 bytes")]
    Control,
    #[error("a continuation frame belongs to no message, or a message begins within another")]
    Fragment,
    #[error("the close frame has a code or a reason that is not allowed")]
    Close,
    #[error("a text message is not UTF-8")]
    Utf8,
    #[error("a compressed message cannot be read")]
    Compression,
    #[error("a message is longer than the limit")]
    TooLong,
}

impl Violation {
    /// RFC 6455 §7.4.1
    pub(super) fn code(self) -> u16 {
        match self {
            Self::Utf8 | Self::Compression => 1007,
            Self::TooLong => 1009,
            _ => 1002,
        }
    }
}

/// The head of a client's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub opcode: Opcode,
    pub is_final: bool,
    pub is_compressed: bool,
    pub length: u64,
    key: [u8; 4],
}

impl Head {
    /// Parses a head. Returns it with its length, or `None` if it is incomplete.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Violation> {
        let &[first, second, ref rest @ ..] = bytes else {
            return Ok(None);
        };
        if first & RESERVED != 0 {
            return Err(Violation::ReservedBit);
        }
        let opcode = Opcode::numbered(first & OPCODE).ok_or(Violation::Opcode)?;
        if second & MASKED == 0 {
            return Err(Violation::NoMask);
        }
        let Some((length, rest)) = length(second & LENGTH, rest)? else {
            return Ok(None);
        };
        let Some((&key, rest)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        let head = Self {
            opcode,
            is_final: first & FINAL != 0,
            is_compressed: first & COMPRESSED != 0,
            length,
            key,
        };
        if head.is_control()
            && (!head.is_final || head.is_compressed || length > MAX_CONTROL_PAYLOAD)
        {
            return Err(Violation::Control);
        }
        Ok(Some((head, bytes.len() - rest.len())))
    }

    pub(super) fn is_control(&self) -> bool {
        self.opcode.is_control()
    }

    /// RFC 6455 §5.3
    pub(super) fn unmask(&self, payload: &mut [u8]) {
        let key = u64::from(u32::from_ne_bytes(self.key));
        let key = ((key << 32) | key).to_ne_bytes();
        let mut eights = payload.chunks_exact_mut(8);
        for eight in &mut eights {
            eight
                .iter_mut()
                .zip(key)
                .for_each(|(byte, mask)| *byte ^= mask);
        }
        let rest = eights.into_remainder();
        rest.iter_mut()
            .zip(key)
            .for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// Parses the payload length, which begins with seven bits in the second byte.
fn length(short: u8, rest: &[u8]) -> Result<Option<(u64, &[u8])>, Violation> {
    let (length, rest, shortest) = match short {
        126 => match rest.split_first_chunk() {
            Some((bytes, rest)) => (u16::from_be_bytes(*bytes).into(), rest, 126),
            None => return Ok(None),
        },
        127 => match rest.split_first_chunk() {
            Some((bytes, rest)) => (u64::from_be_bytes(*bytes), rest, 1 << 16),
            None => return Ok(None),
        },
        length => (length.into(), rest, 0),
    };
    if length < shortest || length > i64::MAX as u64 {
        return Err(Violation::Length);
    }
    Ok(Some((length, rest)))
}

/// Appends an unmasked frame of the server.
pub(super) fn write(out: &mut BytesMut, opcode: Opcode, is_compressed: bool, payload: &[u8]) {
    out.reserve(payload.len() + 10);
    out.put_u8(FINAL | opcode.number() | if is_compressed { COMPRESSED } else { 0 });
    match payload.len() {
        length @ 0..=125 => out.put_u8(length as u8),
        length @ 126..=0xffff => {
            out.put_u8(126);
            out.put_u16(length as u16);
        }
        length => {
            out.put_u8(127);
            out.put_u64(length as u64);
        }
    }
    out.put_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_complete() {
        let bytes = [0xc1, 0xfe, 0x01, 0x00, 1, 2, 3, 4, 0xff];
        for end in 0..8 {
            assert_eq!(Head::parse(&bytes[..end]), Ok(None), "{end} bytes");
        }
        let (head, length) = Head::parse(&bytes).unwrap().unwrap();
        assert_eq!((head.opcode, head.length, length), (Opcode::Text, 256, 8));
        assert!(head.is_final && head.is_compressed);
    }

    #[test]
    fn invalid_frames_are_refused_with_the_violation() {
        for (violation, bytes) in [
            (Violation::ReservedBit, &[0xa1, 0x80, 0, 0, 0, 0][..]),
            (Violation::Opcode, &[0x83, 0x80, 0, 0, 0, 0]),
            (Violation::Opcode, &[0x8b, 0x80, 0, 0, 0, 0]),
            (Violation::NoMask, &[0x81, 0x00]),
            (Violation::Length, &[0x81, 0xfe, 0, 125, 0, 0, 0, 0]),
            (
                Violation::Length,
                &[0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0],
            ),
            (
                Violation::Length,
                &[0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ),
            (Violation::Control, &[0x09, 0x80, 0, 0, 0, 0]),
            (Violation::Control, &[0xc9, 0x80, 0, 0, 0, 0]),
            (Violation::Control, &[0x89, 0xfe, 0, 126, 0, 0, 0, 0]),
        ] {
            assert_eq!(Head::parse(bytes), Err(violation), "{bytes:x?}");
        }
    }

    #[test]
    fn a_mask_is_taken_off_whatever_the_length() {
        for length in 0..20_u8 {
            let key = [7, 70, 170, 250];
            let plain: Vec<u8> = (0..length).collect();
            let mut bytes = vec![0x82, 0x80 | length];
            bytes.extend(key);
            bytes.extend(
                plain
                    .iter()
                    .zip(key.iter().cycle())
                    .map(|(byte, mask)| byte ^ mask),
            );
            let (head, at) = Head::parse(&bytes).unwrap().unwrap();
            head.unmask(&mut bytes[at..]);
            assert_eq!(bytes[at..], plain);
        }
    }

    #[test]
    fn a_length_is_written_in_as_few_bytes_as_it_needs() {
        for (length, head) in [
            (125, &[0x82, 125][..]),
            (126, &[0x82, 126, 0, 126]),
            (65_535, &[0x82, 126, 0xff, 0xff]),
            (65_536, &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let mut out = BytesMut::new();
            write(&mut out, Opcode::Binary, false, &vec![0; length]);
            assert_eq!((&out[..head.len()], out.len()), (head, head.len() + length));
        }
    }
}
