//! Decoded values, written to the property slots of new PHP objects.
//!
//! PHP code runs while a message is decoded (classes are loaded, times and structures are made), but it cannot reach what is
//! under construction: only [`NewObject`] and the slots below it refer to these objects until the message is complete, and
//! the garbage collector leaves alone what the reference of `NewObject` keeps alive.

use std::collections::HashMap;
use std::rc::Rc;

use ext_php_rs::exception::{PhpException, PhpResult};
use ext_php_rs::ffi::{self, HashTable, zend_object, zval};
use ext_php_rs::types::Zval;

use weft_core::protobuf::{DecodeError, Dynamic, Field, MapEntry, Scalar, Sink, WellKnown};

use super::binding::{Binding, EnumBinding};
use super::failure::{malformed, schema};
use super::{registry, schema_files, slot};

/// An object under construction, released unless it is handed out.
pub struct NewObject {
    object: *mut zend_object,
}

impl NewObject {
    pub fn of(binding: &Binding) -> Self {
        Self {
            object: instantiate(binding),
        }
    }

    pub fn root(&self, binding: &Rc<Binding>) -> Object {
        Object {
            object: self.object,
            binding: Rc::as_ptr(binding),
        }
    }

    pub fn into_zval(self) -> Zval {
        let zval = slot::object(self.object);
        std::mem::forget(self);
        zval
    }
}

impl Drop for NewObject {
    fn drop(&mut self) {
        // SAFETY: made in `of` with one reference, which nobody took over.
        unsafe { ffi::ext_php_rs_zend_object_release(self.object) };
    }
}

/// A new object of the class, with the defaults of its layout; no constructor runs.
fn instantiate(binding: &Binding) -> *mut zend_object {
    // SAFETY: the class has no creation handler of its own (checked when it was bound), so this is what PHP does; each
    // slot is then initialized from the defaults, of which there are as many as slots.
    unsafe {
        let object = ffi::zend_objects_new(binding.class);
        for (index, value) in binding.defaults.iter().enumerate() {
            slot::retain(value);
            std::ptr::copy_nonoverlapping(value, slot::at(object, index as u32), 1);
        }
        object
    }
}

/// What went wrong while decoding.
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
        Refused::Decode(error) => malformed(&binding.class_name, &error),
        Refused::Php(error) => error,
    }
}

/// An object and its binding. The sink keeps bindings alive that the registry might drop.
#[derive(Clone, Copy)]
pub struct Object {
    object: *mut zend_object,
    binding: *const Binding,
}

impl Object {
    fn binding<'a>(self) -> &'a Binding {
        // SAFETY: the binding of the root is held by the caller, all others by the registry, which only forgets at the
        // end of the request.
        unsafe { &*self.binding }
    }

    fn slot(self, index: usize) -> *mut zval {
        let place = self.binding().slots.get(index).copied().unwrap_or_default();
        // SAFETY: the object lives while it is decoded, and the slot is one of its class.
        unsafe { slot::at(self.object, place) }
    }

    fn cases<'a>(self, index: usize) -> Option<&'a EnumBinding> {
        self.binding().enums.get(index).and_then(Option::as_ref)
    }
}

/// Unknown fields are collected beside the objects: appending each to its string would take quadratic time.
#[derive(Default)]
pub struct ObjectSink {
    unknown: HashMap<*mut zend_object, Unknown>,
}

struct Unknown {
    slot: u32,
    bytes: Vec<u8>,
}

impl Drop for ObjectSink {
    fn drop(&mut self) {
        for (object, unknown) in self.unknown.drain() {
            // SAFETY: the object is kept alive by the reference taken for it; the slot holds a string.
            unsafe {
                let place = slot::at(object, unknown.slot);
                slot::write(place, slot::string(&unknown.bytes));
                ffi::ext_php_rs_zend_object_release(object);
            }
        }
    }
}

impl ObjectSink {
    /// Unsets the other members of the oneof.
    #[inline]
    fn choose(&self, object: Object, index: usize, field: &Field) {
        if let Some(oneof) = field.oneof {
            clear_siblings(object, index, oneof);
        }
    }

    fn new_child(&self, field: &Field) -> PhpResult<(Object, zval)> {
        let Some(layout) = field.kind.layout() else {
            return Err(schema("a child of a field that is no message"));
        };
        let binding = registry::of_layout(layout)?;
        let child = instantiate(&binding);
        Ok((
            Object {
                object: child,
                binding: Rc::as_ptr(&binding),
            },
            slot::object(child),
        ))
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
            // SAFETY: the slot of a oneof's member may be null.
            unsafe { slot::write(object.slot(member), slot::null()) };
        }
    }
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
        self.choose(object, index, field);
        let value = to_zval(value, field, object.cases(index), Position::Field)?;
        // SAFETY: the property's type was compared with the field's when the class was bound.
        unsafe { slot::write(object.slot(index), value) };
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
        // SAFETY: the slot holds an array that only this object has.
        unsafe { slot::push(slot::array(object.slot(index)), value) };
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
        // SAFETY: the slot holds an array that only this object has.
        unsafe { put(slot::array(object.slot(index)), &key, value) };
        Ok(())
    }

    fn child(&mut self, object: Object, index: usize, field: &Field) -> Result<Object, Refused> {
        self.choose(object, index, field);
        let place = object.slot(index);
        // SAFETY: the slot is initialized; an object in it is a message of this field's class.
        if let slot::Value::Object(existing) = unsafe { slot::read(place) } {
            // SAFETY: the object in the slot lives.
            let binding = registry::of_class(unsafe { (*existing).ce })?;
            return Ok(Object {
                object: existing,
                binding: Rc::as_ptr(&binding),
            });
        }
        let (child, value) = self.new_child(field)?;
        // SAFETY: the property's type was compared with the field's when the class was bound.
        unsafe { slot::write(place, value) };
        Ok(child)
    }

    fn push_child(
        &mut self,
        object: Object,
        index: usize,
        field: &Field,
    ) -> Result<Object, Refused> {
        let (child, value) = self.new_child(field)?;
        // SAFETY: the slot holds an array that only this object has.
        unsafe { slot::push(slot::array(object.slot(index)), value) };
        Ok(child)
    }

    fn insert_child(
        &mut self,
        object: Object,
        index: usize,
        entry: &MapEntry,
        key: Scalar<'_>,
    ) -> Result<Object, Refused> {
        let (child, value) = self.new_child(&entry.value)?;
        // SAFETY: the slot holds an array that only this object has.
        unsafe { put(slot::array(object.slot(index)), &key, value) };
        Ok(child)
    }

    fn unknown(&mut self, object: Object, raw: &[u8]) -> Result<(), Refused> {
        let pending = self.unknown.entry(object.object).or_insert_with(|| {
            // SAFETY: the object lives; the reference is given back when the sink is dropped.
            unsafe { (*object.object).gc.refcount += 1 };
            Unknown {
                slot: object.binding().unknown,
                bytes: Vec::new(),
            }
        });
        pending.bytes.extend_from_slice(raw);
        Ok(())
    }

    fn is_set(&mut self, object: Object, index: usize) -> bool {
        // SAFETY: the slot is initialized.
        !matches!(
            unsafe { slot::read(object.slot(index)) },
            slot::Value::Absent
        )
    }
}

/// # Safety
/// The array must be writable.
unsafe fn put(array: *mut HashTable, key: &Scalar<'_>, value: zval) {
    // SAFETY: the caller's promise.
    unsafe {
        match key {
            Scalar::Text(bytes) | Scalar::Bytes(bytes) => slot::put_key(array, bytes, value),
            Scalar::Int(number) => slot::put_index(array, *number, value),
            Scalar::Bool(boolean) => slot::put_index(array, i64::from(*boolean), value),
            _ => slot::push(array, value),
        }
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
) -> Result<zval, Refused> {
    Ok(match value {
        Scalar::Int(number) => slot::int(number),
        Scalar::Float(number) => slot::float(number),
        Scalar::Bool(value) => slot::boolean(value),
        Scalar::Text(bytes) | Scalar::Bytes(bytes) => slot::string(bytes),
        Scalar::Enum(number) => {
            cases.map_or_else(|| slot::int(number.into()), |cases| cases.value(number))
        }
        Scalar::Timestamp { seconds, nanos } => crate::convert::call(
            "Weft\\Protobuf\\Internal\\Instants::at",
            vec![&seconds, &i64::from(nanos)],
        )?,
        Scalar::Dynamic(Dynamic::Null) if position == Position::Field => null_value()?,
        Scalar::Dynamic(Dynamic::Struct(fields)) if field.well_known == Some(WellKnown::Struct) => {
            let (array, zval) = slot::new_array(fields.len());
            for (key, value) in fields {
                // SAFETY: a new array.
                unsafe { slot::put_key(array, key.as_bytes(), dynamic(value)?) };
            }
            zval
        }
        Scalar::Dynamic(value) => dynamic(value)?,
    })
}

/// The case that stands for a null which is there.
fn null_value() -> PhpResult<zval> {
    crate::convert::call("Weft\\Protobuf\\Internal\\Values::null", vec![])
}

/// Lists and structs are arrays; a struct that would look like a list is an `\stdClass`.
pub fn dynamic(value: Dynamic) -> PhpResult<zval> {
    Ok(match value {
        Dynamic::Null => slot::null(),
        Dynamic::Bool(value) => slot::boolean(value),
        Dynamic::Number(number) => slot::float(number),
        Dynamic::Text(text) => slot::string(text.as_bytes()),
        Dynamic::List(values) => {
            let (array, zval) = slot::new_array(values.len());
            for value in values {
                // SAFETY: a new array.
                unsafe { slot::push(array, dynamic(value)?) };
            }
            zval
        }
        Dynamic::Struct(fields) => {
            let (array, zval) = slot::new_array(fields.len());
            for (key, value) in fields {
                // SAFETY: a new array.
                unsafe { slot::put_key(array, key.as_bytes(), dynamic(value)?) };
            }
            crate::convert::call("Weft\\Protobuf\\Internal\\Values::structure", vec![&zval])?
        }
    })
}
