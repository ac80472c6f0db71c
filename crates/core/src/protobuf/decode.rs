//! Decodes bytes by a layout in one pass, and hands each value to a [`Sink`].

use super::dynamic::Dynamic;
use super::error::{DecodeError, WireError};
use super::layout::{Cardinality, Field, Kind, Layout, LayoutId, MapEntry, Presence, WellKnown};
use super::limits::{self, Budget, Depth, Limits};
use super::schema::Schema;
use super::wire::{self, Reader, Tag};

/// A value that is not a message. Unsigned 64-bit numbers keep their bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar<'a> {
    Int(i64),
    Float(f64),
    Bool(bool),
    /// Checked to be UTF-8 where the field demands it.
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    Enum(i32),
    /// The nanoseconds are 0 to 999,999,999.
    Timestamp {
        seconds: i64,
        nanos: i32,
    },
    Dynamic(Dynamic),
}

/// Receives the values decoded from bytes that live for `'b`. `Object` is a message under construction; `index` is the index of the field
/// in its layout.
pub trait Sink<'b> {
    type Object: Copy;
    type Error: From<DecodeError>;

    /// Sets a singular field; its siblings in a oneof become unset.
    fn set(
        &mut self,
        object: Self::Object,
        index: usize,
        field: &Field,
        value: Scalar<'b>,
    ) -> Result<(), Self::Error>;

    /// Appends to a repeated field.
    fn push(
        &mut self,
        object: Self::Object,
        index: usize,
        field: &Field,
        value: Scalar<'b>,
    ) -> Result<(), Self::Error>;

    /// Inserts into a map; an existing key is replaced.
    fn insert(
        &mut self,
        object: Self::Object,
        index: usize,
        entry: &MapEntry,
        key: Scalar<'b>,
        value: Scalar<'b>,
    ) -> Result<(), Self::Error>;

    /// The message at a singular field, created if there is none; its siblings in a oneof become unset.
    fn child(
        &mut self,
        object: Self::Object,
        index: usize,
        field: &Field,
    ) -> Result<Self::Object, Self::Error>;

    /// A new message at the end of a repeated field.
    fn push_child(
        &mut self,
        object: Self::Object,
        index: usize,
        field: &Field,
    ) -> Result<Self::Object, Self::Error>;

    /// A new message in a map.
    fn insert_child(
        &mut self,
        object: Self::Object,
        index: usize,
        entry: &MapEntry,
        key: Scalar<'b>,
    ) -> Result<Self::Object, Self::Error>;

    /// Keeps a field that the layout does not know: tag and value as they came.
    fn unknown(&mut self, object: Self::Object, raw: &[u8]) -> Result<(), Self::Error>;

    /// Whether a singular field is set; called only for required fields.
    fn is_set(&mut self, object: Self::Object, index: usize) -> bool;
}

/// Reads `bytes` as a message of the layout into `object`.
///
/// # Errors
/// [`DecodeError`] for the first invalid field or a limit that is exceeded, or the error of the sink. The object keeps the values read so
/// far.
pub fn decode<'b, S: Sink<'b>>(
    schema: &Schema,
    layout: LayoutId,
    bytes: &'b [u8],
    object: S::Object,
    sink: &mut S,
    limits: Limits,
) -> Result<(), S::Error> {
    let Limits { depth, memory } = limits;
    let mut decoder = Decoder {
        schema,
        sink,
        memory,
    };
    let mut reader = Reader::new(bytes);
    decoder.message(layout, &mut reader, object, depth, None)
}

struct Decoder<'s, S> {
    schema: &'s Schema,
    sink: &'s mut S,
    memory: Budget,
}

impl<'b, S: Sink<'b>> Decoder<'_, S> {
    fn message(
        &mut self,
        id: LayoutId,
        reader: &mut Reader<'b>,
        object: S::Object,
        depth: Depth,
        group: Option<u32>,
    ) -> Result<(), S::Error> {
        let Some(layout) = self.schema.layout(id) else {
            return Ok(());
        };
        self.memory
            .take(limits::object(layout.fields.len()))
            .map_err(wire_error)?;
        let mut arrays = Arrays::default();
        loop {
            if reader.is_empty() {
                return match group {
                    Some(number) => Err(wire_error(WireError::UnfinishedGroup(number))),
                    None => self.finish(layout, object),
                };
            }
            let start = *reader;
            let tag = reader.tag().map_err(wire_error)?;
            if tag.wire == wire::GROUP_END {
                return match group {
                    Some(number) if number == tag.number => self.finish(layout, object),
                    _ => Err(wire_error(WireError::UnexpectedGroupEnd)),
                };
            }
            match layout.field(tag.number) {
                Some((index, field)) if accepts(field, tag.wire) => {
                    if !matches!(field.cardinality, Cardinality::Singular(_))
                        && arrays.is_new(index)
                    {
                        self.memory.take(limits::ARRAY).map_err(wire_error)?;
                    }
                    let target = Target {
                        layout,
                        index,
                        field,
                        object,
                    };
                    self.field(&target, reader, tag, start, depth)?;
                }
                _ => {
                    reader.skip(tag, depth).map_err(wire_error)?;
                    self.unknown(object, reader.since(&start))?;
                }
            }
        }
    }

    fn finish(&mut self, layout: &Layout, object: S::Object) -> Result<(), S::Error> {
        if !layout.required {
            return Ok(());
        }
        for (index, field) in layout.fields.iter().enumerate() {
            if matches!(field.cardinality, Cardinality::Singular(Presence::Required))
                && !self.sink.is_set(object, index)
            {
                return Err(S::Error::from(DecodeError::Required {
                    message: layout.name.clone(),
                    name: field.name.clone(),
                    number: field.number,
                }));
            }
        }
        Ok(())
    }

    #[inline]
    fn field(
        &mut self,
        target: &Target<'_, S::Object>,
        reader: &mut Reader<'b>,
        tag: Tag,
        start: Reader<'b>,
        depth: Depth,
    ) -> Result<(), S::Error> {
        let Target {
            index,
            field,
            object,
            ..
        } = *target;
        match &field.cardinality {
            Cardinality::Singular(_) => {
                if let Some(layout) = plain_message(field) {
                    let depth = depth.enter().map_err(wire_error)?;
                    let child = self.sink.child(object, index, field)?;
                    return self.nested(target, layout, reader, child, depth);
                }
                match self.value(target, field, reader, depth)? {
                    Some(value) => self.sink.set(object, index, field, value),
                    None => self.unknown(object, reader.since(&start)),
                }
            }
            Cardinality::Repeated { .. } => {
                if let Some(layout) = plain_message(field) {
                    let depth = depth.enter().map_err(wire_error)?;
                    self.memory.take(limits::ELEMENT).map_err(wire_error)?;
                    let child = self.sink.push_child(object, index, field)?;
                    return self.nested(target, layout, reader, child, depth);
                }
                if tag.wire == wire::LENGTH && field.kind.packable() {
                    return self.packed(target, reader, depth);
                }
                match self.value(target, field, reader, depth)? {
                    Some(value) => {
                        self.memory.take(limits::ELEMENT).map_err(wire_error)?;
                        self.sink.push(object, index, field, value)
                    }
                    None => self.unknown(object, reader.since(&start)),
                }
            }
            Cardinality::Map(entry) => self.entry(target, entry, reader, start, depth),
        }
    }

    fn nested(
        &mut self,
        target: &Target<'_, S::Object>,
        layout: LayoutId,
        reader: &mut Reader<'b>,
        child: S::Object,
        depth: Depth,
    ) -> Result<(), S::Error> {
        if let Kind::Group(_) = target.field.kind {
            return self.message(layout, reader, child, depth, Some(target.field.number));
        }
        let bytes = reader.delimited().map_err(|error| target.error(error))?;
        self.message(layout, &mut Reader::new(bytes), child, depth, None)
    }

    fn packed(
        &mut self,
        target: &Target<'_, S::Object>,
        reader: &mut Reader<'b>,
        depth: Depth,
    ) -> Result<(), S::Error> {
        let bytes = reader.delimited().map_err(|error| target.error(error))?;
        let mut values = Reader::new(bytes);
        while !values.is_empty() {
            let start = values;
            match self.value(target, target.field, &mut values, depth)? {
                Some(value) => {
                    self.memory.take(limits::ELEMENT).map_err(wire_error)?;
                    self.sink
                        .push(target.object, target.index, target.field, value)?;
                }
                None => self.unknown_enum(target, values.since(&start))?,
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        target: &Target<'_, S::Object>,
        entry: &MapEntry,
        reader: &mut Reader<'b>,
        start: Reader<'b>,
        depth: Depth,
    ) -> Result<(), S::Error> {
        let bytes = reader.delimited().map_err(|error| target.error(error))?;
        let depth = depth.enter().map_err(wire_error)?;
        self.memory.take(limits::ENTRY).map_err(wire_error)?;
        let mut key = self.default(entry.key.kind);
        let mut parts = Reader::new(bytes);
        let mut value = None;
        while !parts.is_empty() {
            let tag = parts.tag().map_err(|error| target.error(error))?;
            match tag.number {
                1 if tag.wire == entry.key.kind.wire() => {
                    if let Some(found) = self.value(target, &entry.key, &mut parts, depth)? {
                        key = found;
                    }
                }
                2 if tag.wire == entry.value.kind.wire()
                    && plain_message(&entry.value).is_none() =>
                {
                    match self.value(target, &entry.value, &mut parts, depth)? {
                        Some(found) => value = Some(found),
                        None => return self.unknown(target.object, reader.since(&start)),
                    }
                }
                _ => parts
                    .skip(tag, depth)
                    .map_err(|error| target.error(error))?,
            }
        }
        if let Some(layout) = plain_message(&entry.value) {
            return self.entry_message(target, entry, key, layout, bytes, depth);
        }
        let value = match value {
            Some(value) => value,
            None => {
                let value = self.default_of(&entry.value);
                self.memory.take(size_of(&value)).map_err(wire_error)?;
                value
            }
        };
        self.sink
            .insert(target.object, target.index, entry, key, value)
    }

    fn entry_message(
        &mut self,
        target: &Target<'_, S::Object>,
        entry: &MapEntry,
        key: Scalar<'b>,
        layout: LayoutId,
        bytes: &'b [u8],
        depth: Depth,
    ) -> Result<(), S::Error> {
        let depth = depth.enter().map_err(wire_error)?;
        let child = self
            .sink
            .insert_child(target.object, target.index, entry, key)?;
        let mut parts = Reader::new(bytes);
        let mut found = false;
        while !parts.is_empty() {
            let tag = parts.tag().map_err(|error| target.error(error))?;
            if tag.number == 2 && tag.wire == wire::LENGTH {
                let value = parts.delimited().map_err(|error| target.error(error))?;
                self.message(layout, &mut Reader::new(value), child, depth, None)?;
                found = true;
            } else {
                parts
                    .skip(tag, depth)
                    .map_err(|error| target.error(error))?;
            }
        }
        if !found {
            self.message(layout, &mut Reader::new(&[]), child, depth, None)?;
        }
        Ok(())
    }

    /// One value other than a plain message; `None` for a number that a closed enum does not define.
    #[inline]
    fn value(
        &mut self,
        target: &Target<'_, S::Object>,
        field: &Field,
        reader: &mut Reader<'b>,
        depth: Depth,
    ) -> Result<Option<Scalar<'b>>, S::Error> {
        let value = match field.kind {
            Kind::Enum(id) => {
                let number = reader.varint().map_err(|error| target.error(error))? as i32;
                let closed = self
                    .schema
                    .enumeration(id)
                    .is_some_and(|kind| !kind.open && !kind.contains(number));
                if closed {
                    return Ok(None);
                }
                Scalar::Enum(number)
            }
            Kind::Message(_) => {
                let bytes = reader.delimited().map_err(|error| target.error(error))?;
                let depth = depth.enter().map_err(wire_error)?;
                well_known(field, bytes, depth, &mut self.memory)
                    .map_err(|error| target.error(error))?
            }
            kind => scalar(kind, field.utf8, reader).map_err(|error| target.error(error))?,
        };
        self.memory
            .take(size_of(&value))
            .map_err(|error| target.error(error))?;
        Ok(Some(value))
    }

    fn unknown(&mut self, object: S::Object, raw: &[u8]) -> Result<(), S::Error> {
        self.memory
            .take(limits::ELEMENT + raw.len())
            .map_err(wire_error)?;
        self.sink.unknown(object, raw)
    }

    /// Keeps one number of a packed list as an unknown field of its own.
    fn unknown_enum(
        &mut self,
        target: &Target<'_, S::Object>,
        number: &[u8],
    ) -> Result<(), S::Error> {
        let mut raw = Vec::with_capacity(16);
        wire::put_varint(&mut raw, target.field.tag());
        raw.extend_from_slice(number);
        self.unknown(target.object, &raw)
    }

    fn default_of(&self, field: &Field) -> Scalar<'static> {
        match field.well_known {
            Some(WellKnown::Timestamp) => Scalar::Timestamp {
                seconds: 0,
                nanos: 0,
            },
            Some(WellKnown::Wrapper(kind)) => self.default(kind),
            Some(WellKnown::Struct) => Scalar::Dynamic(Dynamic::Struct(Vec::new())),
            Some(WellKnown::ListValue) => Scalar::Dynamic(Dynamic::List(Vec::new())),
            Some(WellKnown::Value) => Scalar::Dynamic(Dynamic::Null),
            None => self.default(field.kind),
        }
    }

    fn default(&self, kind: Kind) -> Scalar<'static> {
        match kind {
            Kind::Double | Kind::Float => Scalar::Float(0.0),
            Kind::Bool => Scalar::Bool(false),
            Kind::String => Scalar::Text(b""),
            Kind::Bytes => Scalar::Bytes(b""),
            Kind::Enum(id) => Scalar::Enum(
                self.schema
                    .enumeration(id)
                    .map_or(0, |enumeration| enumeration.default()),
            ),
            _ => Scalar::Int(0),
        }
    }
}

/// The repeated fields and maps of a message that have come, those with an index up to 63: their arrays count once.
#[derive(Default)]
struct Arrays(u64);

impl Arrays {
    #[inline]
    fn is_new(&mut self, index: usize) -> bool {
        let bit = 1_u64.checked_shl(index as u32).unwrap_or(0);
        let is_new = self.0 & bit != bit;
        self.0 |= bit;
        is_new
    }
}

/// The field that a value belongs to, and what an error names.
struct Target<'a, O> {
    layout: &'a Layout,
    index: usize,
    field: &'a Field,
    object: O,
}

impl<O> Target<'_, O> {
    #[cold]
    fn error<E: From<DecodeError>>(&self, problem: WireError) -> E {
        E::from(DecodeError::Field {
            message: self.layout.name.clone(),
            name: self.field.name.clone(),
            number: self.field.number,
            problem,
        })
    }
}

/// The memory of a value beside its place in an object or array; a `Dynamic` has been counted as it was read.
#[inline]
fn size_of(value: &Scalar<'_>) -> usize {
    match value {
        Scalar::Text(bytes) | Scalar::Bytes(bytes) => limits::text(bytes),
        Scalar::Timestamp { .. } => limits::TIME,
        _ => 0,
    }
}

#[cold]
fn wire_error<E: From<DecodeError>>(error: WireError) -> E {
    E::from(DecodeError::Wire(error))
}

#[inline]
fn accepts(field: &Field, wire: u8) -> bool {
    wire == field.kind.wire()
        || wire == wire::LENGTH
            && field.kind.packable()
            && matches!(field.cardinality, Cardinality::Repeated { .. })
}

#[inline]
fn plain_message(field: &Field) -> Option<LayoutId> {
    match field.well_known {
        Some(_) if matches!(field.kind, Kind::Message(_)) => None,
        _ => field.kind.layout(),
    }
}

#[inline]
fn scalar<'b>(kind: Kind, utf8: bool, reader: &mut Reader<'b>) -> Result<Scalar<'b>, WireError> {
    Ok(match kind {
        Kind::Double => Scalar::Float(f64::from_bits(reader.fixed64()?)),
        Kind::Float => Scalar::Float(f64::from(f32::from_bits(reader.fixed32()?))),
        Kind::Int64 | Kind::Uint64 => Scalar::Int(reader.varint()? as i64),
        Kind::Int32 => Scalar::Int(i64::from(reader.varint()? as i32)),
        Kind::Uint32 => Scalar::Int(i64::from(reader.varint()? as u32)),
        Kind::Sint32 => Scalar::Int(i64::from(wire::zigzag32(reader.varint()? as u32))),
        Kind::Sint64 => Scalar::Int(wire::zigzag64(reader.varint()?)),
        Kind::Fixed32 => Scalar::Int(i64::from(reader.fixed32()?)),
        Kind::Sfixed32 => Scalar::Int(i64::from(reader.fixed32()? as i32)),
        Kind::Fixed64 | Kind::Sfixed64 => Scalar::Int(reader.fixed64()? as i64),
        Kind::Bool => Scalar::Bool(reader.varint()? != 0),
        Kind::String => {
            let bytes = reader.delimited()?;
            if utf8 && std::str::from_utf8(bytes).is_err() {
                return Err(WireError::Utf8);
            }
            Scalar::Text(bytes)
        }
        _ => Scalar::Bytes(reader.delimited()?),
    })
}

/// A message that is a value in PHP. `depth` is inside it.
fn well_known<'b>(
    field: &Field,
    bytes: &'b [u8],
    depth: Depth,
    memory: &mut Budget,
) -> Result<Scalar<'b>, WireError> {
    Ok(match field.well_known {
        Some(WellKnown::Timestamp) => timestamp(bytes, depth)?,
        Some(WellKnown::Wrapper(kind)) => wrapper(kind, bytes, depth)?,
        Some(WellKnown::Struct) => Scalar::Dynamic(Dynamic::structure(bytes, depth, memory)?),
        Some(WellKnown::ListValue) => Scalar::Dynamic(Dynamic::list(bytes, depth, memory)?),
        Some(WellKnown::Value) => Scalar::Dynamic(Dynamic::value(bytes, depth, memory)?),
        None => Scalar::Bytes(bytes),
    })
}

pub(super) fn timestamp(bytes: &[u8], depth: Depth) -> Result<Scalar<'static>, WireError> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let tag = reader.tag()?;
        match (tag.number, tag.wire) {
            (1, wire::VARINT) => seconds = reader.varint()? as i64,
            (2, wire::VARINT) => nanos = reader.varint()? as i32,
            _ => reader.skip(tag, depth)?,
        }
    }
    if !(0..1_000_000_000).contains(&nanos) {
        return Err(WireError::TimestampNanos(nanos));
    }
    Ok(Scalar::Timestamp { seconds, nanos })
}

pub(super) fn wrapper(kind: Kind, bytes: &[u8], depth: Depth) -> Result<Scalar<'_>, WireError> {
    let mut value = match kind {
        Kind::Double | Kind::Float => Scalar::Float(0.0),
        Kind::Bool => Scalar::Bool(false),
        Kind::String => Scalar::Text(b""),
        Kind::Bytes => Scalar::Bytes(b""),
        _ => Scalar::Int(0),
    };
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let tag = reader.tag()?;
        if tag.number == 1 && tag.wire == kind.wire() {
            value = scalar(kind, true, &mut reader)?;
        } else {
            reader.skip(tag, depth)?;
        }
    }
    Ok(value)
}
