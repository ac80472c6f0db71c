//! New values.

use std::ptr::NonNull;

use ext_php_rs::ffi::{
    self, HashTable, IS_ARRAY, IS_ARRAY_EX, IS_DOUBLE, IS_FALSE, IS_INTERNED_STRING_EX, IS_LONG,
    IS_NULL, IS_STRING_EX, IS_TRUE, zend_string,
};
use ext_php_rs::types::Zval;

use super::slot;

/// PHP's `GC_IMMUTABLE`: such a string or array is not counted.
const IMMUTABLE: u32 = 1 << 6;

#[inline]
pub fn int(number: i64) -> Zval {
    raw(ffi::zend_value { lval: number }, IS_LONG)
}

#[inline]
pub fn float(number: f64) -> Zval {
    raw(ffi::zend_value { dval: number }, IS_DOUBLE)
}

#[inline]
pub fn boolean(value: bool) -> Zval {
    raw(
        ffi::zend_value { lval: 0 },
        if value { IS_TRUE } else { IS_FALSE },
    )
}

#[inline]
pub fn null() -> Zval {
    raw(ffi::zend_value { lval: 0 }, IS_NULL)
}

/// A copy of the bytes.
#[inline]
pub fn string(bytes: &[u8]) -> Zval {
    if bytes.is_empty() {
        return empty_string();
    }
    // SAFETY: PHP copies `len` bytes, or returns one of its own strings of one byte.
    let (string, interned) = unsafe {
        let string = ffi::ext_php_rs_zend_string_init(bytes.as_ptr().cast(), bytes.len(), false);
        (string, (*string).gc.u.type_info & IMMUTABLE != 0)
    };
    let type_info = if interned {
        IS_INTERNED_STRING_EX
    } else {
        IS_STRING_EX
    };
    raw(ffi::zend_value { str_: string }, type_info)
}

unsafe extern "C" {
    /// Exported by PHP, not in the bindings.
    static zend_empty_string: *mut zend_string;
}

#[inline]
pub fn empty_string() -> Zval {
    // SAFETY: set at PHP's start and never changed; the string is interned, so it is not counted.
    let string = unsafe { zend_empty_string };
    raw(ffi::zend_value { str_: string }, IS_INTERNED_STRING_EX)
}

/// PHP's shared empty array, which is never written to.
#[inline]
pub fn empty_array() -> Zval {
    let array = (&raw const ffi::zend_empty_array).cast_mut();
    raw(ffi::zend_value { arr: array }, IS_ARRAY)
}

/// Another reference to an array that is alive.
pub(super) fn shared_array(array: NonNull<HashTable>) -> Zval {
    let array = array.as_ptr();
    // SAFETY: the array is alive.
    unsafe {
        if (*array).gc.u.type_info & IMMUTABLE != 0 {
            return raw(ffi::zend_value { arr: array }, IS_ARRAY);
        }
        (*array).gc.refcount += 1;
    }
    raw(ffi::zend_value { arr: array }, IS_ARRAY_EX)
}

#[inline]
fn raw(value: ffi::zend_value, type_info: u32) -> Zval {
    let mut zval = Zval::new();
    zval.value = value;
    zval.u1.type_info = type_info;
    zval
}

/// A new array that nothing else refers to.
pub struct NewArray {
    array: *mut HashTable,
    value: Zval,
}

impl NewArray {
    pub fn with_capacity(size: usize) -> Self {
        // SAFETY: PHP allocates the array with one reference, which the value takes over.
        let array = unsafe { ffi::_zend_new_array(u32::try_from(size.min(1024)).unwrap_or(8)) };
        let value = raw(ffi::zend_value { arr: array }, IS_ARRAY_EX);
        Self { array, value }
    }

    pub fn push(&mut self, value: Zval) {
        // SAFETY: the array lives as long as `self.value`, and only this object refers to it.
        unsafe { slot::push(self.array, value) };
    }

    /// Sets an entry; the key `"7"` becomes 7, as in PHP.
    pub fn put(&mut self, key: &[u8], value: Zval) {
        // SAFETY: as for `push`.
        unsafe { slot::put_key(self.array, key, value) };
    }

    pub fn into_zval(self) -> Zval {
        self.value
    }
}
