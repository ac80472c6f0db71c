//! Packets and the integers in them.

use bytes::{Buf, BufMut, BytesMut};

/// Three bytes of length and one sequence number.
pub(super) const HEADER: usize = 4;
/// The length of a packet that is continued by the next one.
pub(super) const LONGEST_PACKET_PART: usize = 0xff_ffff;

/// The peer violates the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Appends one packet, split if it exceeds the maximum length. Sequence numbers begin with `sequence`.
pub(super) fn push_packet(
    out: &mut BytesMut,
    mut sequence: u8,
    write: impl FnOnce(&mut BytesMut),
) -> u8 {
    let start = out.len();
    out.put_bytes(0, HEADER);
    write(out);
    let length = out.len() - start - HEADER;
    if length < LONGEST_PACKET_PART {
        patch_header(&mut out[start..], length, sequence);
        return sequence.wrapping_add(1);
    }
    let mut payload = out.split_off(start + HEADER);
    out.truncate(start);
    loop {
        let part = payload.len().min(LONGEST_PACKET_PART);
        out.reserve(HEADER + part);
        let at = out.len();
        out.put_bytes(0, HEADER);
        patch_header(&mut out[at..], part, sequence);
        out.extend_from_slice(&payload[..part]);
        payload.advance(part);
        sequence = sequence.wrapping_add(1);
        if part < LONGEST_PACKET_PART {
            return sequence;
        }
    }
}

fn patch_header(header: &mut [u8], length: usize, sequence: u8) {
    header[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    header[3] = sequence;
}

/// The state of the first packet in a buffer.
pub(super) enum Framing {
    /// It is complete and has this many bytes with its headers.
    Whole { total: usize },
    /// At least this many bytes are missing.
    Missing(usize),
}

pub(super) fn frame(input: &[u8]) -> Framing {
    let mut at = 0;
    loop {
        let Some(header) = input.get(at..at + HEADER) else {
            return Framing::Missing(at + HEADER - input.len());
        };
        let length =
            usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        at += HEADER + length;
        if at > input.len() {
            return Framing::Missing(at - input.len());
        }
        if length < LONGEST_PACKET_PART {
            return Framing::Whole { total: at };
        }
    }
}

/// Takes a complete packet; the second value is the sequence number of its last part.
pub(super) fn take_packet(input: &mut BytesMut, total: usize) -> (BytesMut, u8) {
    let mut packet = input.split_to(total);
    if total < HEADER + LONGEST_PACKET_PART {
        let sequence = packet[3];
        packet.advance(HEADER);
        return (packet, sequence);
    }
    let mut payload = BytesMut::with_capacity(total);
    let mut sequence = 0;
    while packet.len() >= HEADER {
        sequence = packet[3];
        packet.advance(HEADER);
        let part = packet.len().min(LONGEST_PACKET_PART);
        payload.extend_from_slice(&packet[..part]);
        packet.advance(part);
    }
    (payload, sequence)
}

/// Reads the fields of a packet.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer.
    pub(super) fn length(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(small.into()),
            0xfc => self.u16().map(u64::from),
            0xfd => {
                let [a, b, c] = self.array()?;
                Ok(u32::from_le_bytes([a, b, c, 0]).into())
            }
            0xfe => self.u64(),
            _ => Err(Malformed),
        }
    }

    /// A length-encoded string.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.length()?).map_err(|_| Malformed)?;
        self.bytes(length)
    }

    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        self.string()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Writes a length-encoded integer.
pub(super) fn put_length(out: &mut BytesMut, length: u64) {
    match length {
        0..=0xfa => out.put_u8(length as u8),
        0xfb..=0xffff => {
            out.put_u8(0xfc);
            out.put_u16_le(length as u16);
        }
        0x1_0000..=0xff_ffff => {
            out.put_u8(0xfd);
            out.put_uint_le(length, 3);
        }
        _ => {
            out.put_u8(0xfe);
            out.put_u64_le(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_every_length_come_back_as_they_went() {
        for length in [
            0,
            1,
            250,
            LONGEST_PACKET_PART - 1,
            LONGEST_PACKET_PART,
            LONGEST_PACKET_PART + 1,
            2 * LONGEST_PACKET_PART,
            2 * LONGEST_PACKET_PART + 7,
        ] {
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut wire = BytesMut::new();
            let next = push_packet(&mut wire, 0, |out| out.extend_from_slice(&payload));
            assert_eq!(usize::from(next), length / LONGEST_PACKET_PART + 1);
            let Framing::Whole { total } = frame(&wire) else {
                panic!("{length}")
            };
            assert_eq!(total, wire.len());
            assert!(matches!(frame(&wire[..total - 1]), Framing::Missing(1)));
            let (read, sequence) = take_packet(&mut wire, total);
            assert!(read == payload, "{length}");
            assert_eq!(sequence, next - 1);
        }
    }

    #[test]
    fn lengths_come_back_as_they_went() {
        for length in [
            0,
            250,
            251,
            0xffff,
            0x1_0000,
            0xff_ffff,
            0x100_0000,
            u64::MAX,
        ] {
            let mut out = BytesMut::new();
            put_length(&mut out, length);
            assert_eq!(Reader(&out).length(), Ok(length));
            assert_eq!(Reader(&out[..out.len() - 1]).length(), Err(Malformed));
        }
    }
}
