//! `google.protobuf.Value`, `Struct` and `ListValue`: trees of untyped values.

use super::error::WireError;
use super::limits::{self, Budget, Depth};
use super::wire::{self, FIXED64, LENGTH, Reader, VARINT};

type Result<T> = std::result::Result<T, WireError>;

#[derive(Debug, Clone, PartialEq)]
pub enum Dynamic {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Dynamic>),
    /// In wire order; the last value of a repeated key counts.
    Struct(Vec<(String, Dynamic)>),
}

impl Dynamic {
    /// Reads a `google.protobuf.Value`. One without a kind is null. `depth` is inside it.
    pub fn value(bytes: &[u8], depth: Depth, memory: &mut Budget) -> Result<Self> {
        let mut value = Self::Null;
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let tag = reader.tag()?;
            value = match (tag.number, tag.wire) {
                (1, VARINT) => reader.varint().map(|_| Self::Null)?,
                (2, FIXED64) => Self::Number(f64::from_bits(reader.fixed64()?)),
                (3, LENGTH) => Self::Text(text(reader.delimited()?, memory)?),
                (4, VARINT) => Self::Bool(reader.varint()? != 0),
                (5, LENGTH) => Self::structure(reader.delimited()?, depth.enter()?, memory)?,
                (6, LENGTH) => Self::list(reader.delimited()?, depth.enter()?, memory)?,
                _ => {
                    reader.skip(tag, depth)?;
                    continue;
                }
            };
        }
        Ok(value)
    }

    /// Reads a `google.protobuf.Struct`. `depth` is inside it.
    pub fn structure(bytes: &[u8], depth: Depth, memory: &mut Budget) -> Result<Self> {
        memory.take(limits::ARRAY)?;
        let mut fields: Vec<(String, Self)> = Vec::new();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let tag = reader.tag()?;
            match (tag.number, tag.wire) {
                (1, LENGTH) => {
                    memory.take(limits::DYNAMIC + limits::ENTRY)?;
                    fields.push(entry(reader.delimited()?, depth.enter()?, memory)?);
                }
                _ => reader.skip(tag, depth)?,
            }
        }
        Ok(Self::Struct(fields))
    }

    /// Reads a `google.protobuf.ListValue`. `depth` is inside it.
    pub fn list(bytes: &[u8], depth: Depth, memory: &mut Budget) -> Result<Self> {
        memory.take(limits::ARRAY)?;
        let mut values = Vec::new();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let tag = reader.tag()?;
            match (tag.number, tag.wire) {
                (1, LENGTH) => {
                    memory.take(limits::DYNAMIC)?;
                    values.push(Self::value(reader.delimited()?, depth.enter()?, memory)?);
                }
                _ => reader.skip(tag, depth)?,
            }
        }
        Ok(Self::List(values))
    }

    /// Writes the fields of a `google.protobuf.Value`.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(&[0x08, 0]),
            Self::Number(number) => {
                out.push(0x11);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::Text(text) => {
                out.push(0x1A);
                wire::put_delimited(out, text.as_bytes());
            }
            Self::Bool(boolean) => out.extend_from_slice(&[0x20, u8::from(*boolean)]),
            Self::Struct(_) => self.put_nested(out, 0x2A),
            Self::List(_) => self.put_nested(out, 0x32),
        }
    }

    fn put_nested(&self, out: &mut Vec<u8>, tag: u8) {
        out.push(tag);
        let start = wire::open(out);
        self.put_fields(out);
        wire::close(out, start);
    }

    /// Writes the fields of a `Struct` or of a `ListValue`; of anything else, those of a `Value`.
    pub fn put_fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::Struct(fields) => {
                for (key, value) in fields {
                    out.push(0x0A);
                    let entry = wire::open(out);
                    out.push(0x0A);
                    wire::put_delimited(out, key.as_bytes());
                    out.push(0x12);
                    let start = wire::open(out);
                    value.put(out);
                    wire::close(out, start);
                    wire::close(out, entry);
                }
            }
            Self::List(values) => {
                for value in values {
                    out.push(0x0A);
                    let start = wire::open(out);
                    value.put(out);
                    wire::close(out, start);
                }
            }
            _ => self.put(out),
        }
    }
}

fn entry(bytes: &[u8], depth: Depth, memory: &mut Budget) -> Result<(String, Dynamic)> {
    let (mut key, mut value) = (String::new(), Dynamic::Null);
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let tag = reader.tag()?;
        match (tag.number, tag.wire) {
            (1, LENGTH) => key = text(reader.delimited()?, memory)?,
            (2, LENGTH) => value = Dynamic::value(reader.delimited()?, depth.enter()?, memory)?,
            _ => reader.skip(tag, depth)?,
        }
    }
    Ok((key, value))
}

fn text(bytes: &[u8], memory: &mut Budget) -> Result<String> {
    // A copy in Rust and one in PHP.
    memory.take(limits::text(bytes) + bytes.len())?;
    String::from_utf8(bytes.to_vec()).map_err(|_| WireError::Utf8)
}
