use std::borrow::Cow;

use super::wire::{Malformed, Reader, put_long, put_short, put_sized, put_u32, put_u64};

/// Nested tables and arrays deeper than this are refused: each level costs stack.
const MAX_DEPTH: usize = 32;

/// A value in a [`FieldTable`], in the type set RabbitMQ uses (its errata to specification §4.2.5.5).
#[derive(Debug, Clone, PartialEq)]
pub enum Field<'a> {
    Void,
    Bool(bool),
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    F32(f32),
    F64(f64),
    /// `value` divided by ten to the power of `scale`.
    Decimal {
        scale: u8,
        value: i32,
    },
    /// A long string; usually UTF-8, though nothing on the way checks it.
    String(Cow<'a, [u8]>),
    Bytes(Cow<'a, [u8]>),
    Array(Vec<Field<'a>>),
    /// Seconds since 1970.
    Timestamp(u64),
    Table(FieldTable<'a>),
}

/// Named values in the order they were written: message headers, and arguments of queues, exchanges and consumers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldTable<'a>(pub Vec<(Cow<'a, str>, Field<'a>)>);

impl<'a> FieldTable<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one entry. Names have at most 255 bytes and floats are finite: operations with others are refused before they are sent.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Field<'a>>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// The first entry of this name.
    pub fn get(&self, name: &str) -> Option<&Field<'a>> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_owned(self) -> FieldTable<'static> {
        let owned = |(name, value): (Cow<'a, str>, Field<'a>)| {
            (Cow::Owned(name.into_owned()), value.into_owned())
        };
        FieldTable(self.0.into_iter().map(owned).collect())
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_sized(out, |out| {
            for (name, value) in &self.0 {
                put_short(out, name);
                value.encode(out);
            }
        });
    }

    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Self::decode_at(reader, 0)
    }

    fn decode_at(reader: &mut Reader<'a>, depth: usize) -> Result<Self, Malformed> {
        let mut inner = Reader::new(reader.long_bytes()?);
        let mut entries = Vec::new();
        while !inner.is_empty() {
            let name = inner.short_string()?;
            entries.push((name, Field::decode_at(&mut inner, depth)?));
        }
        Ok(Self(entries))
    }
}

impl<'a> Field<'a> {
    /// The bytes of a string or byte value as text, if they are UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(bytes) | Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub fn into_owned(self) -> Field<'static> {
        match self {
            Self::Void => Field::Void,
            Self::Bool(value) => Field::Bool(value),
            Self::I8(value) => Field::I8(value),
            Self::U8(value) => Field::U8(value),
            Self::I16(value) => Field::I16(value),
            Self::U16(value) => Field::U16(value),
            Self::I32(value) => Field::I32(value),
            Self::U32(value) => Field::U32(value),
            Self::I64(value) => Field::I64(value),
            Self::F32(value) => Field::F32(value),
            Self::F64(value) => Field::F64(value),
            Self::Decimal { scale, value } => Field::Decimal { scale, value },
            Self::String(bytes) => Field::String(Cow::Owned(bytes.into_owned())),
            Self::Bytes(bytes) => Field::Bytes(Cow::Owned(bytes.into_owned())),
            Self::Array(items) => Field::Array(items.into_iter().map(Field::into_owned).collect()),
            Self::Timestamp(seconds) => Field::Timestamp(seconds),
            Self::Table(table) => Field::Table(table.into_owned()),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Void => out.push(b'V'),
            Self::Bool(value) => out.extend_from_slice(&[b't', u8::from(*value)]),
            Self::I8(value) => out.extend_from_slice(&[b'b', *value as u8]),
            Self::U8(value) => out.extend_from_slice(&[b'B', *value]),
            Self::I16(value) => put_tagged(out, b's', &value.to_be_bytes()),
            Self::U16(value) => put_tagged(out, b'u', &value.to_be_bytes()),
            Self::I32(value) => put_tagged(out, b'I', &value.to_be_bytes()),
            Self::U32(value) => put_tagged(out, b'i', &value.to_be_bytes()),
            Self::I64(value) => put_tagged(out, b'l', &value.to_be_bytes()),
            Self::F32(value) => put_tagged(out, b'f', &value.to_be_bytes()),
            Self::F64(value) => put_tagged(out, b'd', &value.to_be_bytes()),
            Self::Decimal { scale, value } => {
                out.extend_from_slice(&[b'D', *scale]);
                put_u32(out, *value as u32);
            }
            Self::String(bytes) => {
                out.push(b'S');
                put_long(out, bytes);
            }
            Self::Bytes(bytes) => {
                out.push(b'x');
                put_long(out, bytes);
            }
            Self::Array(items) => {
                out.push(b'A');
                put_sized(out, |out| items.iter().for_each(|item| item.encode(out)));
            }
            Self::Timestamp(seconds) => {
                out.push(b'T');
                put_u64(out, *seconds);
            }
            Self::Table(table) => {
                out.push(b'F');
                table.encode(out);
            }
        }
    }

    fn decode_at(reader: &mut Reader<'a>, depth: usize) -> Result<Self, Malformed> {
        Ok(match reader.u8()? {
            b'V' => Self::Void,
            b't' => Self::Bool(reader.u8()? != 0),
            b'b' => Self::I8(reader.u8()? as i8),
            b'B' => Self::U8(reader.u8()?),
            b's' | b'U' => Self::I16(reader.u16()? as i16),
            b'u' => Self::U16(reader.u16()?),
            b'I' => Self::I32(reader.u32()? as i32),
            b'i' => Self::U32(reader.u32()?),
            b'l' | b'L' => Self::I64(reader.u64()? as i64),
            b'f' => Self::F32(f32::from_bits(reader.u32()?)),
            b'd' => Self::F64(f64::from_bits(reader.u64()?)),
            b'D' => Self::Decimal {
                scale: reader.u8()?,
                value: reader.u32()? as i32,
            },
            b'S' => Self::String(Cow::Borrowed(reader.long_bytes()?)),
            b'x' => Self::Bytes(Cow::Borrowed(reader.long_bytes()?)),
            b'A' => Self::Array(decode_array(reader, deeper(depth)?)?),
            b'T' => Self::Timestamp(reader.u64()?),
            b'F' => Self::Table(FieldTable::decode_at(reader, deeper(depth)?)?),
            _ => return Err(Malformed("field type")),
        })
    }
}

fn put_tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn deeper(depth: usize) -> Result<usize, Malformed> {
    if depth < MAX_DEPTH {
        Ok(depth + 1)
    } else {
        Err(Malformed("table nesting"))
    }
}

fn decode_array<'a>(reader: &mut Reader<'a>, depth: usize) -> Result<Vec<Field<'a>>, Malformed> {
    let mut inner = Reader::new(reader.long_bytes()?);
    let mut items = Vec::new();
    while !inner.is_empty() {
        items.push(Field::decode_at(&mut inner, depth)?);
    }
    Ok(items)
}

impl<'a> From<&'a str> for Field<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Cow::Borrowed(text.as_bytes()))
    }
}

impl From<String> for Field<'_> {
    fn from(text: String) -> Self {
        Self::String(Cow::Owned(text.into_bytes()))
    }
}

impl From<bool> for Field<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Field<'_> {
    fn from(value: i32) -> Self {
        Self::I32(value)
    }
}

impl From<i64> for Field<'_> {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}

impl From<f64> for Field<'_> {
    fn from(value: f64) -> Self {
        Self::F64(value)
    }
}

impl<'a> From<FieldTable<'a>> for Field<'a> {
    fn from(table: FieldTable<'a>) -> Self {
        Self::Table(table)
    }
}
