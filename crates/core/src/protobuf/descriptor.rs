//! The parts of `google/protobuf/descriptor.proto` that layouts need, read from the wire format.

use super::error::WireError;
use super::limits::{Depth, MAX_DEPTH};
use super::wire::{LENGTH, Reader, VARINT};

type Result<T> = std::result::Result<T, WireError>;

#[derive(Debug, Default)]
pub struct FileProto {
    pub name: String,
    pub package: String,
    pub dependencies: Vec<String>,
    pub messages: Vec<MessageProto>,
    pub enums: Vec<EnumProto>,
    pub syntax: String,
    pub edition: u64,
    pub features: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct MessageProto {
    pub name: String,
    pub fields: Vec<FieldProto>,
    pub nested: Vec<MessageProto>,
    pub enums: Vec<EnumProto>,
    pub oneofs: Vec<String>,
    pub map_entry: bool,
    pub features: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct FieldProto {
    pub name: String,
    pub number: u32,
    pub label: u64,
    pub kind: i32,
    pub type_name: String,
    pub json_name: String,
    pub oneof: Option<usize>,
    pub proto3_optional: bool,
    pub packed: Option<bool>,
    pub features: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct EnumProto {
    pub name: String,
    pub values: Vec<(String, i32)>,
    pub features: Vec<u8>,
}

/// A field of a descriptor: the only two wire types that descriptors use.
enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl Part<'_> {
    fn text(&self) -> String {
        match self {
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Number(_) => String::new(),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => &[],
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => 0,
        }
    }
}

fn each(bytes: &[u8], mut visit: impl FnMut(u32, Part<'_>) -> Result<()>) -> Result<()> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let tag = reader.tag()?;
        match tag.wire {
            VARINT => visit(tag.number, Part::Number(reader.varint()?))?,
            LENGTH => visit(tag.number, Part::Bytes(reader.delimited()?))?,
            _ => reader.skip(tag, Depth::OUTERMOST)?,
        }
    }
    Ok(())
}

/// The serialized `FeatureSet` inside serialized options; its field number differs by the kind of options.
fn features(options: &[u8], number: u32, into: &mut Vec<u8>) -> Result<()> {
    each(options, |field, part| {
        if field == number {
            into.extend_from_slice(part.bytes());
        }
        Ok(())
    })
}

impl FileProto {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut file = Self::default();
        each(bytes, |number, part| {
            match number {
                1 => file.name = part.text(),
                2 => file.package = part.text(),
                3 => file.dependencies.push(part.text()),
                4 => file.messages.push(MessageProto::parse(part.bytes(), 0)?),
                5 => file.enums.push(EnumProto::parse(part.bytes())?),
                8 => features(part.bytes(), 50, &mut file.features)?,
                12 => file.syntax = part.text(),
                14 => file.edition = part.number(),
                _ => {}
            }
            Ok(())
        })?;
        Ok(file)
    }
}

impl MessageProto {
    fn parse(bytes: &[u8], depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(WireError::TooDeep(MAX_DEPTH));
        }
        let mut message = Self::default();
        each(bytes, |number, part| {
            match number {
                1 => message.name = part.text(),
                2 => message.fields.push(FieldProto::parse(part.bytes())?),
                3 => message.nested.push(Self::parse(part.bytes(), depth + 1)?),
                4 => message.enums.push(EnumProto::parse(part.bytes())?),
                7 => message.options(part.bytes())?,
                8 => each(part.bytes(), |number, part| {
                    if number == 1 {
                        message.oneofs.push(part.text());
                    }
                    Ok(())
                })?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(message)
    }

    fn options(&mut self, bytes: &[u8]) -> Result<()> {
        features(bytes, 12, &mut self.features)?;
        each(bytes, |number, part| {
            if number == 7 {
                self.map_entry = part.number() != 0;
            }
            Ok(())
        })
    }
}

impl FieldProto {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut field = Self::default();
        each(bytes, |number, part| {
            match number {
                1 => field.name = part.text(),
                3 => field.number = part.number() as u32,
                4 => field.label = part.number(),
                5 => field.kind = part.number() as i32,
                6 => field.type_name = part.text(),
                8 => field.options(part.bytes())?,
                9 => field.oneof = usize::try_from(part.number()).ok(),
                10 => field.json_name = part.text(),
                17 => field.proto3_optional = part.number() != 0,
                _ => {}
            }
            Ok(())
        })?;
        Ok(field)
    }

    fn options(&mut self, bytes: &[u8]) -> Result<()> {
        features(bytes, 21, &mut self.features)?;
        each(bytes, |number, part| {
            if number == 2 {
                self.packed = Some(part.number() != 0);
            }
            Ok(())
        })
    }
}

impl EnumProto {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut enumeration = Self::default();
        each(bytes, |number, part| {
            match number {
                1 => enumeration.name = part.text(),
                2 => {
                    let mut value = (String::new(), 0);
                    each(part.bytes(), |number, part| {
                        match number {
                            1 => value.0 = part.text(),
                            2 => value.1 = part.number() as i32,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    enumeration.values.push(value);
                }
                3 => features(part.bytes(), 7, &mut enumeration.features)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(enumeration)
    }
}
