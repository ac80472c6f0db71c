//! Decoded values on their way into new PHP objects.

use std::collections::HashMap;

use ext_php_rs::exception::{PhpException, PhpResult};
use ext_php_rs::types::Zval;

use weft_core::protobuf::{DecodeError, Dynamic, Field, MapEntry, Scalar, Sink, WellKnown};

use super::binding::{Binding, EnumBinding};
use super::failure::{malformed, schema, too_large};
use super::object::Object;
use super::{registry, schema_files};
use crate::zend::make::{self, NewArray};

/// An error of decoding.
pub enum Refused {
    Decode(DecodeError),
    Php(PhpException),
}

impl From<DecodeError> for Refused {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<PhpException> for Refused {
    fn from(error: PhpException) -> Self {
        Self::Php(error)
    }
}

pub fn refused(binding: &Binding, error: Refused) -> PhpException {
    match error {
        Refused::Decode(error) if error.is_too_large() => too_large(&binding.class_name, &error),
        Refused::Decode(error) => malformed(&binding.class_name, &error),
        Refused::Php(error) => error,
    }
}

/// Unknown fields are collected beside the objects: appending each to its string would take quadratic time.
#[derive(Default)]
pub struct ObjectSink {
    unknown: HashMap<Object, Vec<u8>>,
}

impl Drop for ObjectSink {
    fn drop(&mut self) {
        for (object, unknown) in self.unknown.drain() {
            object.release(&unknown);
        }
    }
}

/// Unsets the other members of the oneof that the field belongs to.
#[inline]
fn choose(object: Object, index: usize, field: &Field) {
    if let Some(oneof) = field.oneof {
        clear_siblings(object, index, oneof);
    }
}

#[cold]
fn clear_siblings(object: Object, index: usize, oneof: usize) {
    let schema = schema_files::schema();
    let Some(layout) = schema.layout(object.binding().layout) else {
        return;
    };
    let members = layout
        .oneofs
        .get(oneof)
        .map(|oneof| oneof.members.as_slice());
    for &member in members.unwrap_or_default() {
        if member != index {
            object.set(member, make::null());
        }
    }
}

fn new_child(field: &Field) -> PhpResult<(Object, Zval)> {
    let Some(layout) = field.kind.layout() else {
        return Err(schema("a child of a field that is not a message"));
    };
    Ok(Object::child(&registry::of_layout(layout)?))
}

impl Sink<'_> for ObjectSink {
    type Object = Object;
    type Error = Refused;

    #[inline]
    fn set(
        &mut self,
        object: Object,
        index: usize,
        field: &Field,
        value: Scalar<'_>,
    ) -> Result<(), Refused> {
        choose(object, index, field);
        let value = to_zval(value, field, object.cases(index), Position::Field)?;
        object.set(index, value);
        Ok(())
    }

    #[inline]
    fn push(
        &mut self,
        object: Object,
        index: usize,
        field: &Field,
        value: Scalar<'_>,
    ) -> Result<(), Refused> {
        let value = to_zval(value, field, object.cases(index), Position::Element)?;
        object.push(index, value);
        Ok(())
    }

    fn insert(
        &mut self,
        object: Object,
        index: usize,
        entry: &MapEntry,
        key: Scalar<'_>,
        value: Scalar<'_>,
    ) -> Result<(), Refused> {
        let value = to_zval(value, &entry.value, object.cases(index), Position::Element)?;
        object.put(index, &key, value);
        Ok(())
    }

    fn child(&mut self, object: Object, index: usize, field: &Field) -> Result<Object, Refused> {
        choose(object, index, field);
        if let Some(existing) = object.message(index, registry::of_class)? {
            return Ok(existing);
        }
        let (child, value) = new_child(field)?;
        object.set(index, value);
        Ok(child)
    }

    fn push_child(
        &mut self,
        object: Object,
        index: usize,
        field: &Field,
    ) -> Result<Object, Refused> {
        let (child, value) = new_child(field)?;
        object.push(index, value);
        Ok(child)
    }

    fn insert_child(
        &mut self,
        object: Object,
        index: usize,
        entry: &MapEntry,
        key: Scalar<'_>,
    ) -> Result<Object, Refused> {
        let (child, value) = new_child(&entry.value)?;
        object.put(index, &key, value);
        Ok(child)
    }

    fn unknown(&mut self, object: Object, raw: &[u8]) -> Result<(), Refused> {
        let pending = self.unknown.entry(object).or_insert_with(|| {
            object.retain();
            Vec::new()
        });
        pending.extend_from_slice(raw);
        Ok(())
    }

    fn is_set(&mut self, object: Object, index: usize) -> bool {
        object.is_set(index)
    }
}

/// Whether a `google.protobuf.Value` that is null has to be told from an absent one.
#[derive(Clone, Copy, PartialEq)]
pub enum Position {
    Field,
    Element,
}

#[inline]
fn to_zval(
    value: Scalar<'_>,
    field: &Field,
    cases: Option<&EnumBinding>,
    position: Position,
) -> Result<Zval, Refused> {
    Ok(match value {
        Scalar::Int(number) => make::int(number),
        Scalar::Float(number) => make::float(number),
        Scalar::Bool(value) => make::boolean(value),
        Scalar::Text(bytes) | Scalar::Bytes(bytes) => make::string(bytes),
        Scalar::Enum(number) => {
            cases.map_or_else(|| make::int(number.into()), |cases| cases.value(number))
        }
        Scalar::Timestamp { seconds, nanos } => crate::convert::call(
            "Weft\\Protobuf\\Internal\\Instants::at",
            vec![&seconds, &i64::from(nanos)],
        )?,
        Scalar::Dynamic(Dynamic::Null) if position == Position::Field => null_value()?,
        Scalar::Dynamic(Dynamic::Struct(fields)) if field.well_known == Some(WellKnown::Struct) => {
            let mut array = NewArray::with_capacity(fields.len());
            for (key, value) in fields {
                array.put(key.as_bytes(), dynamic(value)?);
            }
            array.into_zval()
        }
        Scalar::Dynamic(value) => dynamic(value)?,
    })
}

/// The case that stands for a null which is there.
fn null_value() -> PhpResult<Zval> {
    crate::convert::call("Weft\\Protobuf\\Internal\\Values::null", vec![])
}

/// Lists and structs are arrays; a struct that would look like a list is an `\stdClass`.
pub fn dynamic(value: Dynamic) -> PhpResult<Zval> {
    Ok(match value {
        Dynamic::Null => make::null(),
        Dynamic::Bool(value) => make::boolean(value),
        Dynamic::Number(number) => make::float(number),
        Dynamic::Text(text) => make::string(text.as_bytes()),
        Dynamic::List(values) => {
            let mut array = NewArray::with_capacity(values.len());
            for value in values {
                array.push(dynamic(value)?);
            }
            array.into_zval()
        }
        Dynamic::Struct(fields) => {
            let mut array = NewArray::with_capacity(fields.len());
            for (key, value) in fields {
                array.put(key.as_bytes(), dynamic(value)?);
            }
            let array = array.into_zval();
            crate::convert::call("Weft\\Protobuf\\Internal\\Values::structure", vec![&array])?
        }
    })
}
