//! The wire format: tags, varints, fixed and length-delimited values.

use super::error::WireError;
use super::limits::Depth;

type Result<T> = std::result::Result<T, WireError>;

pub const VARINT: u8 = 0;
pub const FIXED64: u8 = 1;
pub const LENGTH: u8 = 2;
pub const GROUP_START: u8 = 3;
pub const GROUP_END: u8 = 4;
pub const FIXED32: u8 = 5;

const HIGHEST_FIELD: u32 = (1 << 29) - 1;

/// Reads the bytes of a message, never past their end.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

/// Number and wire type of the value that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    pub number: u32,
    pub wire: u8,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub fn left(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes read since an earlier state of this reader.
    pub fn since(&self, earlier: &Reader<'a>) -> &'a [u8] {
        let length = earlier.bytes.len().saturating_sub(self.bytes.len());
        earlier.bytes.get(..length).unwrap_or_default()
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        if let Some((&byte, rest)) = self.bytes.split_first()
            && byte < 0x80
        {
            self.bytes = rest;
            return Ok(u64::from(byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for (index, &byte) in self.bytes.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7F) << (7 * index);
            if byte < 0x80 {
                self.bytes = self.bytes.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(if self.bytes.len() < 10 {
            WireError::Truncated
        } else {
            WireError::VarintTooLong
        })
    }

    #[inline]
    pub fn tag(&mut self) -> Result<Tag> {
        let key = self.varint()?;
        let tag = Tag {
            number: u32::try_from(key >> 3).map_err(|_| WireError::FieldNumber)?,
            wire: (key & 7) as u8,
        };
        match tag.number {
            1..=HIGHEST_FIELD => Ok(tag),
            _ => Err(WireError::FieldNumber),
        }
    }

    #[inline]
    pub fn fixed32(&mut self) -> Result<u32> {
        let (value, rest) = self.bytes.split_first_chunk().ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(u32::from_le_bytes(*value))
    }

    #[inline]
    pub fn fixed64(&mut self) -> Result<u64> {
        let (value, rest) = self.bytes.split_first_chunk().ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(u64::from_le_bytes(*value))
    }

    #[inline]
    pub fn delimited(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        let left = self.bytes.len();
        match usize::try_from(length)
            .ok()
            .and_then(|length| self.bytes.split_at_checked(length))
        {
            Some((value, rest)) => {
                self.bytes = rest;
                Ok(value)
            }
            None => Err(WireError::LengthTooLarge { length, left }),
        }
    }

    /// Skips the value of a tag that was just read, in a message at that depth.
    pub fn skip(&mut self, tag: Tag, depth: Depth) -> Result<()> {
        match tag.wire {
            VARINT => self.varint().map(drop),
            FIXED64 => self.fixed64().map(drop),
            LENGTH => self.delimited().map(drop),
            FIXED32 => self.fixed32().map(drop),
            GROUP_START => self.skip_group(tag.number, depth),
            GROUP_END => Err(WireError::UnexpectedGroupEnd),
            other => Err(WireError::WireType(other)),
        }
    }

    fn skip_group(&mut self, number: u32, depth: Depth) -> Result<()> {
        let depth = depth.enter()?;
        while !self.is_empty() {
            let tag = self.tag()?;
            if tag.wire == GROUP_END {
                return if tag.number == number {
                    Ok(())
                } else {
                    Err(WireError::UnexpectedGroupEnd)
                };
            }
            self.skip(tag, depth)?;
        }
        Err(WireError::UnfinishedGroup(number))
    }
}

#[inline]
pub fn zigzag32(value: u32) -> i32 {
    ((value >> 1) as i32) ^ -((value & 1) as i32)
}

#[inline]
pub fn zigzag64(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub fn put_delimited(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Zigzag, so that small negative numbers are short.
#[inline]
pub fn zag32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

#[inline]
pub fn zag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Starts a length-delimited value whose length is not known yet; `close` writes it.
#[inline]
pub fn open(out: &mut Vec<u8>) -> usize {
    out.push(0);
    out.len()
}

/// One byte was left for the length; a longer length moves the value.
#[inline]
pub fn close(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    if length < 0x80 {
        if let Some(byte) = out.get_mut(start - 1) {
            *byte = length as u8;
        }
        return;
    }
    let mut prefix = Vec::with_capacity(10);
    put_varint(&mut prefix, length as u64);
    out.splice(start - 1..start, prefix);
}
