//! Property slots to bytes, in the order of field numbers.

use std::cell::RefCell;
use std::fmt::Display;

use ext_php_rs::exception::{PhpException, PhpResult};
use ext_php_rs::types::{ZendObject, Zval};

use weft_core::protobuf::wire::{self, put_delimited, put_varint};
use weft_core::protobuf::{
    Cardinality, Depth, Field, Kind, Layout, MAX_DEPTH, MapEntry, Presence, Schema, WellKnown,
};

use super::binding::{Binding, EnumBinding};
use super::failure::schema as refused;
use super::{dynamic, registry, schema_files};
use crate::failure::Failure;
use crate::zend::Held;
use crate::zend::value::{Array, Key, Object, Value};

thread_local! {
    /// Kept between calls, so that small messages allocate nothing but their result.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that has grown above this is freed.
const MAX_KEPT_BUFFER: usize = 64 * 1024;

/// Encodes a message and hands its bytes to `finish`.
pub fn encode<T>(message: &mut ZendObject, finish: impl FnOnce(&[u8]) -> T) -> PhpResult<T> {
    let message = Object::of(message);
    let binding = registry::of_class(message.class())?;
    let instance = message.initialize()?;
    let message = instance.as_ref().and_then(Held::object).unwrap_or(message);
    let schema = schema_files::schema();
    let mut out = BUFFER.with(RefCell::take);
    out.clear();
    let encoder = Encoder { schema: &schema };
    let outcome = encoder.message(&mut out, message, &binding, Depth::OUTERMOST);
    let result = outcome.map(|()| finish(&out));
    if out.capacity() <= MAX_KEPT_BUFFER {
        BUFFER.with(|buffer| buffer.replace(out));
    }
    result
}

struct Encoder<'s> {
    schema: &'s Schema,
}

/// The field that is being written, for error messages.
#[derive(Clone, Copy)]
struct FieldContext<'a> {
    layout: &'a Layout,
    field: &'a Field,
}

impl FieldContext<'_> {
    #[cold]
    fn refuse(&self, problem: impl Display) -> PhpException {
        let Self { layout, field } = self;
        let (message, name, number) = (&layout.name, &field.name, field.number);
        let text = format!("Cannot encode {message}: field {name} ({number}) {problem}");
        Failure::new("protobuf.encode", text).into()
    }

    /// Inside a message that is the value of the field.
    #[inline]
    fn enter(&self, depth: Depth) -> PhpResult<Depth> {
        let too_deep = |_| self.refuse(format_args!("is nested deeper than {MAX_DEPTH} levels"));
        depth.enter().map_err(too_deep)
    }

    #[cold]
    fn mismatch(&self, expected: &str, found: Value<'_>) -> PhpException {
        self.refuse(format_args!("holds {}, expected {expected}", found.kind()))
    }
}

impl Encoder<'_> {
    /// `depth` is inside the message.
    fn message(
        &self,
        out: &mut Vec<u8>,
        object: Object<'_>,
        binding: &Binding,
        depth: Depth,
    ) -> PhpResult<()> {
        let Some(layout) = self.schema.layout(binding.layout) else {
            return Err(refused(format!("{} is not known", binding.class_name)));
        };
        for ((field, &index), cases) in layout.fields.iter().zip(&binding.slots).zip(&binding.enums)
        {
            // The value is used, or held, before PHP code runs that could overwrite the slot.
            let value = object.value(index);
            let field_context = FieldContext { layout, field };
            self.field(out, field_context, cases.as_ref(), value, depth)?;
        }
        if let Value::Text(unknown) = object.value(binding.unknown) {
            out.extend_from_slice(unknown.as_bytes());
        }
        check_oneofs(layout, object, binding)
    }

    #[inline]
    fn field(
        &self,
        out: &mut Vec<u8>,
        field_context: FieldContext<'_>,
        cases: Option<&EnumBinding>,
        value: Value<'_>,
        depth: Depth,
    ) -> PhpResult<()> {
        match &field_context.field.cardinality {
            Cardinality::Singular(presence) => match value {
                Value::Absent if *presence == Presence::Required => {
                    Err(field_context.refuse("is required and not set"))
                }
                Value::Absent => Ok(()),
                _ => self.single(out, field_context, cases, value, *presence, depth),
            },
            Cardinality::Repeated { packed } => match value {
                Value::Array(array) => self.list(out, field_context, cases, array, *packed, depth),
                Value::Absent => Ok(()),
                other => Err(field_context.mismatch("array", other)),
            },
            Cardinality::Map(entry) => match value {
                Value::Array(array) => self.map(out, field_context, entry, cases, array, depth),
                Value::Absent => Ok(()),
                other => Err(field_context.mismatch("array", other)),
            },
        }
    }

    #[inline]
    fn single(
        &self,
        out: &mut Vec<u8>,
        field_context: FieldContext<'_>,
        cases: Option<&EnumBinding>,
        value: Value<'_>,
        presence: Presence,
        depth: Depth,
    ) -> PhpResult<()> {
        if presence == Presence::Implicit {
            let number = match value {
                Value::Object(object) => number_of(field_context, cases, object)?,
                Value::Int(number) => number,
                Value::Float(number) => i64::from(number.to_bits() != 0),
                Value::Bool(value) => value.into(),
                Value::Text(string) => string.len() as i64,
                _ => 1,
            };
            if number == 0 {
                return Ok(());
            }
        }
        put_varint(out, field_context.field.tag());
        self.value(out, field_context, field_context.field, cases, value, depth)
    }

    /// A value without its tag.
    #[inline]
    fn value(
        &self,
        out: &mut Vec<u8>,
        field_context: FieldContext<'_>,
        field: &Field,
        cases: Option<&EnumBinding>,
        value: Value<'_>,
        depth: Depth,
    ) -> PhpResult<()> {
        match field.kind {
            Kind::Message(_) | Kind::Group(_) => {
                self.nested(out, field_context, field, value, depth)
            }
            Kind::Enum(_) => {
                let number = match value {
                    Value::Object(object) => number_of(field_context, cases, object)?,
                    Value::Int(number) if !cases.is_some_and(|cases| cases.closed) => number,
                    other => {
                        return Err(field_context.mismatch(expected_enum(cases).as_str(), other));
                    }
                };
                let number = i32::try_from(number).map_err(|_| {
                    field_context
                        .refuse(format_args!("holds {number}, which is not a 32-bit number"))
                })?;
                put_varint(out, i64::from(number) as u64);
                Ok(())
            }
            kind => scalar(out, field_context, kind, field.utf8, value),
        }
    }

    fn nested(
        &self,
        out: &mut Vec<u8>,
        field_context: FieldContext<'_>,
        field: &Field,
        value: Value<'_>,
        depth: Depth,
    ) -> PhpResult<()> {
        let depth = field_context.enter(depth)?;
        if let Kind::Group(_) = field.kind {
            self.child(out, field_context, field, value, depth)?;
            put_varint(
                out,
                u64::from(field.number) << 3 | u64::from(wire::GROUP_END),
            );
            return Ok(());
        }
        let start = wire::open(out);
        match field.well_known {
            None => self.child(out, field_context, field, value, depth)?,
            Some(WellKnown::Timestamp) => timestamp(out, field_context, value)?,
            Some(WellKnown::Wrapper(kind)) => wrapper(out, field_context, kind, value)?,
            Some(kind) => dynamic::put(out, kind, value, depth)
                .map_err(|problem| field_context.refuse(problem))?,
        }
        wire::close(out, start);
        Ok(())
    }

    fn child(
        &self,
        out: &mut Vec<u8>,
        field_context: FieldContext<'_>,
        field: &Field,
        value: Value<'_>,
        depth: Depth,
    ) -> PhpResult<()> {
        let Some(layout) = field.kind.layout() else {
            return Ok(());
        };
        // Binding a class runs autoloaders, and a lazy object its initializer, which can take the object out of its message.
        let _held = match value {
            Value::Object(object) => Some(object.held()),
            _ => None,
        };
        let binding = registry::of_layout(layout)?;
        match value {
            Value::Object(object) if object.class() == binding.class => {
                let instance = object.initialize()?;
                let object = instance.as_ref().and_then(Held::object).unwrap_or(object);
                self.message(out, object, &binding, depth)
            }
            Value::Object(object) => {
                let found = object.class().name();
                Err(field_context.refuse(format_args!(
                    "holds {found}, expected {}",
                    binding.class_name
                )))
            }
            other => Err(field_context.mismatch(&binding.class_name, other)),
        }
    }

    fn list(
        &self,
        out: &mut Vec<u8>,
        field_context: FieldContext<'_>,
        cases: Option<&EnumBinding>,
        array: Array<'_>,
        packed: bool,
        depth: Depth,
    ) -> PhpResult<()> {
        if array.is_empty() {
            return Ok(());
        }
        let field = field_context.field;
        if packed {
            put_varint(out, field.packed_tag());
            let start = wire::open(out);
            array.each(|_, value| self.value(out, field_context, field, cases, value, depth))?;
            wire::close(out, start);
            return Ok(());
        }
        array.each(|_, value| {
            put_varint(out, field.tag());
            self.value(out, field_context, field, cases, value, depth)
        })
    }

    fn map(
        &self,
        out: &mut Vec<u8>,
        field_context: FieldContext<'_>,
        entry: &MapEntry,
        cases: Option<&EnumBinding>,
        array: Array<'_>,
        depth: Depth,
    ) -> PhpResult<()> {
        if array.is_empty() {
            return Ok(());
        }
        let depth = field_context.enter(depth)?;
        array.each(|key, value| {
            put_varint(out, field_context.field.tag());
            let start = wire::open(out);
            put_varint(out, entry.key.tag());
            map_key(out, field_context, &entry.key, key)?;
            put_varint(out, entry.value.tag());
            self.value(out, field_context, &entry.value, cases, value, depth)?;
            wire::close(out, start);
            Ok(())
        })
    }
}

/// At most one member of a oneof can be sent.
fn check_oneofs(layout: &Layout, object: Object<'_>, binding: &Binding) -> PhpResult<()> {
    for oneof in &layout.oneofs {
        if oneof.members.len() < 2 {
            continue;
        }
        let mut chosen: Option<usize> = None;
        for &member in &oneof.members {
            let Some(&index) = binding.slots.get(member) else {
                continue;
            };
            if let Value::Absent = object.value(index) {
                continue;
            }
            if let Some(other) = chosen.replace(member) {
                let name = |index: usize| {
                    layout
                        .fields
                        .get(index)
                        .map_or("", |field| field.name.as_str())
                };
                let text = format!(
                    "Cannot encode {}: {} and {} are both set, and only one field of the oneof {} can be",
                    layout.name,
                    name(other),
                    name(member),
                    oneof.name
                );
                return Err(Failure::new("protobuf.encode", text).into());
            }
        }
    }
    Ok(())
}

fn expected_enum(cases: Option<&EnumBinding>) -> String {
    cases.map_or_else(String::new, |cases| match cases.closed {
        true => cases.class_name.clone(),
        false => format!("{} or int", cases.class_name),
    })
}

#[inline]
fn number_of(
    field_context: FieldContext<'_>,
    cases: Option<&EnumBinding>,
    object: Object<'_>,
) -> PhpResult<i64> {
    match cases.and_then(|cases| cases.number(object)) {
        Some(number) => Ok(number),
        None => Err(field_context.mismatch(&expected_enum(cases), Value::Object(object))),
    }
}

fn map_key(
    out: &mut Vec<u8>,
    field_context: FieldContext<'_>,
    field: &Field,
    key: Key<'_>,
) -> PhpResult<()> {
    match (field.kind, key) {
        (Kind::String, Key::Index(number)) => put_delimited(out, number.to_string().as_bytes()),
        (Kind::String, Key::Text(string)) => {
            return scalar(
                out,
                field_context,
                Kind::String,
                field.utf8,
                Value::Text(string),
            );
        }
        (Kind::Bool, Key::Index(number @ (0 | 1))) => put_varint(out, number as u64),
        (Kind::Bool, Key::Index(number)) => {
            return Err(field_context.refuse(format_args!(
                "has the key {number}, expected 0 or 1 for a bool"
            )));
        }
        (kind, Key::Index(number)) => {
            return scalar(out, field_context, kind, field.utf8, Value::Int(number));
        }
        (_, Key::Text(string)) => {
            let text = String::from_utf8_lossy(string.as_bytes()).into_owned();
            return Err(
                field_context.refuse(format_args!("has the key \"{text}\", expected an int"))
            );
        }
    }
    Ok(())
}

#[inline]
fn scalar(
    out: &mut Vec<u8>,
    field_context: FieldContext<'_>,
    kind: Kind,
    utf8: bool,
    value: Value<'_>,
) -> PhpResult<()> {
    match kind {
        Kind::String | Kind::Bytes => {
            let Value::Text(string) = value else {
                return Err(field_context.mismatch("string", value));
            };
            let bytes = string.as_bytes();
            if kind == Kind::String && utf8 && std::str::from_utf8(bytes).is_err() {
                return Err(field_context.refuse("is not UTF-8; binary data needs the type bytes"));
            }
            put_delimited(out, bytes);
        }
        Kind::Double => out.extend_from_slice(&float(field_context, value)?.to_le_bytes()),
        Kind::Float => out.extend_from_slice(&(float(field_context, value)? as f32).to_le_bytes()),
        Kind::Bool => match value {
            Value::Bool(value) => out.push(value.into()),
            other => return Err(field_context.mismatch("bool", other)),
        },
        _ => {
            let Value::Int(number) = value else {
                return Err(field_context.mismatch("int", value));
            };
            return integer(out, field_context, kind, number);
        }
    }
    Ok(())
}

fn float(field_context: FieldContext<'_>, value: Value<'_>) -> PhpResult<f64> {
    match value {
        Value::Float(number) => Ok(number),
        Value::Int(number) => Ok(number as f64),
        other => Err(field_context.mismatch("float", other)),
    }
}

#[inline]
fn integer(
    out: &mut Vec<u8>,
    field_context: FieldContext<'_>,
    kind: Kind,
    number: i64,
) -> PhpResult<()> {
    let signed = || {
        i32::try_from(number).map_err(|_| {
            field_context.refuse(format_args!(
                "holds {number}, which is not a signed 32-bit number"
            ))
        })
    };
    let unsigned = || {
        u32::try_from(number).map_err(|_| {
            field_context.refuse(format_args!(
                "holds {number}, which is not an unsigned 32-bit number"
            ))
        })
    };
    match kind {
        Kind::Int64 | Kind::Uint64 => put_varint(out, number as u64),
        Kind::Int32 => put_varint(out, i64::from(signed()?) as u64),
        Kind::Uint32 => put_varint(out, u64::from(unsigned()?)),
        Kind::Sint32 => put_varint(out, u64::from(wire::zag32(signed()?))),
        Kind::Sint64 => put_varint(out, wire::zag64(number)),
        Kind::Fixed32 => out.extend_from_slice(&unsigned()?.to_le_bytes()),
        Kind::Sfixed32 => out.extend_from_slice(&signed()?.to_le_bytes()),
        _ => out.extend_from_slice(&number.to_le_bytes()),
    }
    Ok(())
}

fn wrapper(
    out: &mut Vec<u8>,
    field_context: FieldContext<'_>,
    kind: Kind,
    value: Value<'_>,
) -> PhpResult<()> {
    let is_default = match value {
        Value::Int(number) => number == 0,
        Value::Float(number) => number.to_bits() == 0,
        Value::Bool(value) => !value,
        Value::Text(string) => string.is_empty(),
        _ => false,
    };
    if is_default {
        return Ok(());
    }
    put_varint(out, 1 << 3 | u64::from(kind.wire()));
    scalar(out, field_context, kind, true, value)
}

fn timestamp(
    out: &mut Vec<u8>,
    field_context: FieldContext<'_>,
    value: Value<'_>,
) -> PhpResult<()> {
    let Value::Object(object) = value else {
        return Err(field_context.mismatch("DateTimeInterface", value));
    };
    let held = object.held();
    let parts = crate::convert::call(
        "Weft\\Protobuf\\Internal\\Instants::parts",
        vec![held.zval()],
    )?;
    let part = |index| {
        parts
            .array()
            .and_then(|parts| parts.get_index(index))
            .and_then(Zval::long)
    };
    let (Some(seconds), Some(nanos)) = (part(0), part(1)) else {
        return Err(field_context.refuse(parts.string().unwrap_or_default()));
    };
    if seconds != 0 {
        out.push(0x08);
        put_varint(out, seconds as u64);
    }
    if nanos != 0 {
        out.push(0x10);
        put_varint(out, nanos as u64);
    }
    Ok(())
}
