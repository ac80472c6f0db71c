//! Values as PHP keeps them in property slots and arrays.
//!
//! A value that was read is borrowed: it is valid until PHP code runs that could overwrite the slot it was read from. [`Array::each`],
//! [`Array::held`] and [`Object::held`] keep it alive beyond that.

use std::marker::PhantomData;
use std::ptr::NonNull;

use ext_php_rs::ffi::{
    self, HashTable, IS_ARRAY, IS_DOUBLE, IS_FALSE, IS_LONG, IS_NULL, IS_OBJECT, IS_REFERENCE,
    IS_STRING, IS_TRUE, IS_UNDEF, zend_object,
};
use ext_php_rs::types::{ZendObject, ZendStr, Zval};

use super::array::PACKED;
use super::class::Class;
use super::slot;

/// The value of a slot, with references resolved.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    Absent,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a ZendStr),
    Array(Array<'a>),
    Object(Object<'a>),
    Other,
}

impl<'a> Value<'a> {
    #[inline]
    pub fn of(slot: &'a Zval) -> Self {
        // SAFETY: each union member is read as the type says, and PHP keeps no null pointers there.
        unsafe {
            let value = &slot.value;
            match slot.u1.type_info & 0xFF {
                IS_UNDEF | IS_NULL => Self::Absent,
                IS_FALSE => Self::Bool(false),
                IS_TRUE => Self::Bool(true),
                IS_LONG => Self::Int(value.lval),
                IS_DOUBLE => Self::Float(value.dval),
                IS_STRING => Self::Text(&*value.str_),
                IS_ARRAY => Self::Array(Array::at(value.arr)),
                IS_OBJECT => Self::Object(Object::at(value.obj)),
                IS_REFERENCE => Self::of(&(*value.ref_).val),
                _ => Self::Other,
            }
        }
    }

    pub fn kind(self) -> &'static str {
        match self {
            Self::Absent => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
            Self::Other => "resource",
        }
    }
}

/// An object that something else keeps alive.
#[derive(Clone, Copy)]
pub struct Object<'a> {
    pub(super) object: NonNull<zend_object>,
    owner: PhantomData<&'a zend_object>,
}

impl<'a> Object<'a> {
    pub fn of(object: &'a ZendObject) -> Self {
        Self {
            object: NonNull::from(object),
            owner: PhantomData,
        }
    }

    /// A case of an enum, which lives as long as the class. The enum must have the case.
    pub fn case(class: Class, name: &ZendStr) -> Object<'static> {
        let name = std::ptr::from_ref(name).cast_mut();
        // SAFETY: the class is an enum with this case.
        unsafe { Object::at(ffi::zend_enum_get_case(class.as_ptr(), name)) }
    }

    /// # Safety
    /// The object is alive for as long as `'a`, or until PHP code runs that could release it.
    pub(super) unsafe fn at(object: *mut zend_object) -> Self {
        Self {
            // SAFETY: the caller's promise.
            object: unsafe { NonNull::new_unchecked(object) },
            owner: PhantomData,
        }
    }

    #[inline]
    pub fn class(self) -> Class {
        // SAFETY: a living object has a class, which lives until the request ends.
        unsafe { Class::at((*self.object.as_ptr()).ce) }
    }

    /// The value of the property slot with this index; absent where the class has none.
    #[inline]
    pub fn value(self, index: u32) -> Value<'a> {
        if index >= self.class().slot_count() {
            return Value::Absent;
        }
        // SAFETY: the object has as many slots as its class says; the table runs on behind its first element.
        unsafe {
            let slots = (&raw const (*self.object.as_ptr()).properties_table).cast::<Zval>();
            Value::of(&*slots.add(index as usize))
        }
    }

    /// The properties of a plain object. Runs the initializer of a lazy object (PHP 8.4).
    pub fn properties(self) -> Array<'a> {
        // SAFETY: the object lives; PHP builds or returns its table, which the object owns.
        unsafe { Array::at(ffi::zend_std_get_properties(self.object.as_ptr())) }
    }

    /// The object as a value, with a reference of its own.
    pub fn to_zval(self) -> Zval {
        let object = self.object.as_ptr();
        // SAFETY: the object lives; the reference belongs to the value from here on.
        unsafe {
            (*object).gc.refcount += 1;
            slot::owner_of(object)
        }
    }

    pub fn as_ptr(self) -> *mut zend_object {
        self.object.as_ptr()
    }
}

/// An array that something else keeps alive.
#[derive(Clone, Copy)]
pub struct Array<'a> {
    pub(super) array: NonNull<HashTable>,
    owner: PhantomData<&'a HashTable>,
}

/// An array's key.
#[derive(Clone, Copy)]
pub enum Key<'a> {
    Index(i64),
    Text(&'a ZendStr),
}

impl<'a> Array<'a> {
    /// # Safety
    /// The array is alive for as long as `'a`, or until PHP code runs that could release it.
    unsafe fn at(array: *mut HashTable) -> Self {
        Self {
            // SAFETY: the caller's promise.
            array: unsafe { NonNull::new_unchecked(array) },
            owner: PhantomData,
        }
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        // SAFETY: the array lives.
        unsafe { (*self.array.as_ptr()).nNumOfElements == 0 }
    }

    /// Whether the keys are 0, 1, 2, …
    pub fn is_list(self) -> bool {
        let mut next = 0;
        let outcome = self.each(|key, _| match key {
            Key::Index(index) if index == next => {
                next += 1;
                Ok(())
            }
            _ => Err(()),
        });
        outcome.is_ok()
    }

    /// Calls `visit` for each element, in PHP's order. The array is held meanwhile, so that PHP code would write to a copy.
    #[inline]
    pub fn each<E>(
        self,
        mut visit: impl FnMut(Key<'_>, Value<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let _held = self.held();
        let array = self.array.as_ptr();
        // SAFETY: held; a packed array has values at `arPacked`, any other buckets at `arData`.
        unsafe {
            let used = (*array).nNumUsed as usize;
            if (*array).u.flags & PACKED != 0 {
                for index in 0..used {
                    let slot = &*(*array).__bindgen_anon_1.arPacked.add(index);
                    if slot.u1.type_info & 0xFF != IS_UNDEF {
                        visit(Key::Index(index as i64), Value::of(slot))?;
                    }
                }
                return Ok(());
            }
            for index in 0..used {
                let bucket = &*(*array).__bindgen_anon_1.arData.add(index);
                if bucket.val.u1.type_info & 0xFF == IS_UNDEF {
                    continue;
                }
                let key = match bucket.key.as_ref() {
                    None => Key::Index(bucket.h as i64),
                    Some(text) => Key::Text(text),
                };
                visit(key, Value::of(&bucket.val))?;
            }
            Ok(())
        }
    }
}
