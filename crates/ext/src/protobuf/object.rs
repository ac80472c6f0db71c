//! Messages under construction: new PHP objects, written slot by slot.
//!
//! [`Object`] is a handle that can be copied, and its methods are safe: it exists only for objects that [`NewObject`] keeps alive,
//! directly or through a parent, until the message is complete. PHP code runs meanwhile (classes are loaded, times and structures are
//! made), but nothing else refers to these objects.

#![allow(unsafe_code, reason = "owns the objects it writes to")]

use std::rc::Rc;

use ext_php_rs::ffi::{self, HashTable, zend_object};
use ext_php_rs::types::Zval;

use weft_core::protobuf::Scalar;

use super::binding::{Binding, EnumBinding};
use crate::zend::value::Value;
use crate::zend::{Class, make, slot};

/// The outermost object; released unless it is handed out.
pub struct NewObject(Object);

impl NewObject {
    pub fn of(binding: &Rc<Binding>) -> Self {
        Self(Object::new(binding))
    }

    pub fn root(&self) -> Object {
        self.0
    }

    pub fn into_zval(self) -> Zval {
        // The value takes over the reference that dropping would give back.
        // SAFETY: it does so here.
        let value = unsafe { slot::owner_of(self.0.object) };
        std::mem::forget(self);
        value
    }
}

impl Drop for NewObject {
    fn drop(&mut self) {
        // SAFETY: the object was made in `of` with one reference, which this value still owns.
        unsafe { ffi::ext_php_rs_zend_object_release(self.0.object) };
    }
}

/// An object under construction and the binding of its class.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Object {
    object: *mut zend_object,
    binding: *const Binding,
}

impl Object {
    /// A new object with the defaults of its layout and one reference; no constructor runs.
    fn new(binding: &Rc<Binding>) -> Self {
        // The class has no creation handler of its own: checked when it was bound.
        let object = binding.class.new_object(&binding.defaults);
        let binding = Rc::as_ptr(binding);
        Self { object, binding }
    }

    /// A new object, and the value that owns it: it belongs into a slot of another object under construction.
    pub fn child(binding: &Rc<Binding>) -> (Self, Zval) {
        let child = Self::new(binding);
        // SAFETY: the value takes over the only reference.
        (child, unsafe { slot::owner_of(child.object) })
    }

    pub fn binding<'a>(self) -> &'a Binding {
        // SAFETY: the registry keeps every binding that it has handed out until the request ends.
        unsafe { &*self.binding }
    }

    pub fn cases<'a>(self, index: usize) -> Option<&'a EnumBinding> {
        self.binding().enums.get(index).and_then(Option::as_ref)
    }

    /// The slot of a field, by its index in the layout.
    fn slot(self, index: usize) -> *mut Zval {
        let slot = self.binding().slots.get(index).copied().unwrap_or_default();
        // SAFETY: the object lives while it is decoded, and the slot is one of its class.
        unsafe { slot::at(self.object, slot) }
    }

    /// Sets a field. The type of the property was compared with that of the field when the class was bound.
    #[inline]
    pub fn set(self, index: usize, value: Zval) {
        // SAFETY: an initialized slot of a living object.
        unsafe { slot::write(self.slot(index), value) };
    }

    /// Appends to a repeated field.
    #[inline]
    pub fn push(self, index: usize, value: Zval) {
        // SAFETY: the slot holds an array that only this object has.
        unsafe { slot::push(self.array(index), value) };
    }

    /// Sets an entry of a map.
    pub fn put(self, index: usize, key: &Scalar<'_>, value: Zval) {
        let array = self.array(index);
        // SAFETY: the slot holds an array that only this object has.
        unsafe {
            match key {
                Scalar::Text(bytes) | Scalar::Bytes(bytes) => slot::put_key(array, bytes, value),
                Scalar::Int(number) => slot::put_index(array, *number, value),
                Scalar::Bool(boolean) => slot::put_index(array, i64::from(*boolean), value),
                _ => slot::push(array, value),
            }
        }
    }

    fn array(self, index: usize) -> *mut HashTable {
        // SAFETY: the slot of a repeated field or a map holds an array.
        unsafe { slot::array(self.slot(index)) }
    }

    fn value<'a>(self, index: usize) -> Value<'a> {
        // SAFETY: an initialized slot of a living object.
        Value::of(unsafe { &*self.slot(index) })
    }

    #[inline]
    pub fn is_set(self, index: usize) -> bool {
        !matches!(self.value(index), Value::Absent)
    }

    /// The message at a singular field, if there is one, with the binding that `bind` finds for its class.
    pub fn message<E>(
        self,
        index: usize,
        bind: impl FnOnce(Class) -> Result<Rc<Binding>, E>,
    ) -> Result<Option<Self>, E> {
        // An object in the slot is a message of this field's class, under construction too.
        let Value::Object(object) = self.value(index) else {
            return Ok(None);
        };
        let binding = Rc::as_ptr(&bind(object.class())?);
        let object = object.as_ptr();
        Ok(Some(Self { object, binding }))
    }

    /// Keeps the object alive beyond its parents, until [`release`](Self::release).
    pub fn retain(self) {
        // SAFETY: the object lives.
        unsafe { (*self.object).gc.refcount += 1 };
    }

    /// Stores the fields that the layout does not know, and gives back the reference of [`retain`](Self::retain).
    pub fn release(self, unknown: &[u8]) {
        // SAFETY: the reference keeps the object alive until here; the slot holds a string.
        unsafe {
            slot::write(
                slot::at(self.object, self.binding().unknown),
                make::string(unknown),
            );
            ffi::ext_php_rs_zend_object_release(self.object);
        }
    }
}
