//! Writes to property slots and arrays, in place.
//!
//! These functions trust their callers with pointers: a slot belongs to an object that its owner keeps alive, and was checked
//! against the class when it was bound.

use ext_php_rs::ffi::{self, HashTable, IS_ARRAY_EX, IS_OBJECT_EX, zend_object};
use ext_php_rs::types::Zval;

const TYPE_FLAGS_SHIFT: u32 = 8;

/// The slot with this index of an object.
///
/// # Safety
/// The object must be alive and its class must have that many properties.
#[inline]
pub unsafe fn at(object: *mut zend_object, index: u32) -> *mut Zval {
    // SAFETY: the caller's promise; the table runs on behind its first element.
    unsafe {
        (&raw mut (*object).properties_table)
            .cast::<Zval>()
            .add(index as usize)
    }
}

/// A value that takes over one reference to the object.
///
/// # Safety
/// The caller gives up a reference that it owns.
#[inline]
pub unsafe fn owner_of(object: *mut zend_object) -> Zval {
    let mut value = Zval::new();
    value.value.obj = object;
    value.u1.type_info = IS_OBJECT_EX;
    value
}

/// Replaces what a slot holds.
///
/// # Safety
/// The slot must be that of a living object, and must accept the value's type.
#[inline]
pub unsafe fn write(slot: *mut Zval, value: Zval) {
    // SAFETY: the caller's promise. The old value is released after the slot holds the new one, as PHP does, because a
    // destructor may look at the object.
    unsafe {
        let counted = (*slot).u1.type_info >> TYPE_FLAGS_SHIFT != 0;
        if !counted {
            std::ptr::write(slot, value);
            return;
        }
        let mut old = std::ptr::read(slot);
        std::ptr::write(slot, value);
        ffi::zval_ptr_dtor(&raw mut old);
        std::mem::forget(old);
    }
}

/// The array in a slot, made writable: PHP's shared empty one is replaced by an own one.
///
/// # Safety
/// The slot must be that of an object under construction, whose arrays have no other reference.
#[inline]
pub unsafe fn array(slot: *mut Zval) -> *mut HashTable {
    // SAFETY: the caller's promise; the array in the slot is ours alone once it is counted.
    unsafe {
        if (*slot).u1.type_info == IS_ARRAY_EX {
            return (*slot).value.arr;
        }
        let array = ffi::_zend_new_array(8);
        let mut value = Zval::new();
        value.value.arr = array;
        value.u1.type_info = IS_ARRAY_EX;
        std::ptr::write(slot, value);
        array
    }
}

/// # Safety
/// The array must be writable; it takes the value over.
#[inline]
pub unsafe fn push(array: *mut HashTable, mut value: Zval) {
    // SAFETY: the caller's promise; PHP copies the zval's bits.
    unsafe { ffi::zend_hash_next_index_insert(array, &raw mut value) };
    std::mem::forget(value);
}

/// # Safety
/// As for `push`.
pub unsafe fn put_index(array: *mut HashTable, key: i64, mut value: Zval) {
    // SAFETY: the caller's promise.
    unsafe { ffi::zend_hash_index_update(array, key as u64, &raw mut value) };
    std::mem::forget(value);
}

/// Puts under a key as PHP keeps it: `"7"` is the key 7.
///
/// # Safety
/// As for `push`.
pub unsafe fn put_key(array: *mut HashTable, key: &[u8], mut value: Zval) {
    // SAFETY: the caller's promise; the array takes a reference to the key of its own.
    unsafe {
        if let Some(number) = index(key) {
            return put_index(array, number, value);
        }
        let name = ffi::ext_php_rs_zend_string_init(key.as_ptr().cast(), key.len(), false);
        ffi::zend_hash_update(array, name, &raw mut value);
        ffi::ext_php_rs_zend_string_release(name);
    }
    std::mem::forget(value);
}

/// The number that PHP makes of a string key in canonical decimal form.
fn index(key: &[u8]) -> Option<i64> {
    let first = *key.first()?;
    if key.len() > 20 || !(first.is_ascii_digit() || first == b'-') {
        return None;
    }
    let text = std::str::from_utf8(key).ok()?;
    let number: i64 = text.parse().ok()?;
    // PHP keeps the smallest number as a string.
    (number != i64::MIN && number.to_string() == text).then_some(number)
}
