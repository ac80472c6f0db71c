//! Property slots and array elements, read and written in place.
//!
//! The functions here trust their callers with pointers: a slot belongs to an object that its owner keeps alive, and was
//! checked against the class when it was bound.

use ext_php_rs::ffi::{
    self, HashTable, IS_ARRAY, IS_ARRAY_EX, IS_DOUBLE, IS_FALSE, IS_INTERNED_STRING_EX, IS_LONG,
    IS_NULL, IS_OBJECT, IS_OBJECT_EX, IS_REFERENCE, IS_STRING, IS_STRING_EX, IS_TRUE, IS_UNDEF,
    zend_object, zend_string, zval,
};

/// PHP's `HASH_FLAG_PACKED`.
const PACKED: u32 = 1 << 2;
const TYPE_FLAGS_SHIFT: u32 = 8;
/// PHP's `GC_IMMUTABLE`: such a string or array is not counted.
const IMMUTABLE: u32 = 1 << 6;

/// The value of a slot, with references resolved.
#[derive(Clone, Copy)]
pub enum Value {
    Absent,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(*mut zend_string),
    Array(*mut HashTable),
    Object(*mut zend_object),
    Other,
}

impl Value {
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

/// # Safety
/// The slot must be initialized memory of a living object or array.
#[inline]
pub unsafe fn read(slot: *const zval) -> Value {
    // SAFETY: the caller's promise; each union member is read as the type says.
    unsafe {
        let value = &(*slot).value;
        match (*slot).u1.type_info & 0xFF {
            IS_UNDEF | IS_NULL => Value::Absent,
            IS_FALSE => Value::Bool(false),
            IS_TRUE => Value::Bool(true),
            IS_LONG => Value::Int(value.lval),
            IS_DOUBLE => Value::Float(value.dval),
            IS_STRING => Value::Text(value.str_),
            IS_ARRAY => Value::Array(value.arr),
            IS_OBJECT => Value::Object(value.obj),
            IS_REFERENCE => read(&raw const (*value.ref_).val),
            _ => Value::Other,
        }
    }
}

/// # Safety
/// The string must be alive for as long as the slice is used.
#[inline]
pub unsafe fn bytes<'a>(string: *const zend_string) -> &'a [u8] {
    // SAFETY: the caller's promise; a zend_string holds `len` bytes from `val` on.
    unsafe { std::slice::from_raw_parts((&raw const (*string).val).cast(), (*string).len) }
}

/// The slot with this index of an object.
///
/// # Safety
/// The object must be alive and its class must have that many properties.
#[inline]
pub unsafe fn at(object: *mut zend_object, index: u32) -> *mut zval {
    // SAFETY: the caller's promise; the table runs on behind its first element.
    unsafe {
        (&raw mut (*object).properties_table)
            .cast::<zval>()
            .add(index as usize)
    }
}

#[inline]
pub fn int(number: i64) -> zval {
    raw(ffi::zend_value { lval: number }, IS_LONG)
}

#[inline]
pub fn float(number: f64) -> zval {
    raw(ffi::zend_value { dval: number }, IS_DOUBLE)
}

#[inline]
pub fn boolean(value: bool) -> zval {
    raw(
        ffi::zend_value { lval: 0 },
        if value { IS_TRUE } else { IS_FALSE },
    )
}

#[inline]
pub fn null() -> zval {
    raw(ffi::zend_value { lval: 0 }, IS_NULL)
}

/// A copy of the bytes.
#[inline]
pub fn string(bytes: &[u8]) -> zval {
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
pub fn empty_string() -> zval {
    // SAFETY: set at PHP's start and never changed; the string is interned, so it is not counted.
    let string = unsafe { zend_empty_string };
    raw(ffi::zend_value { str_: string }, IS_INTERNED_STRING_EX)
}

/// PHP's shared empty array, which is never written to.
#[inline]
pub fn empty_array() -> zval {
    let array = (&raw const ffi::zend_empty_array).cast_mut();
    raw(ffi::zend_value { arr: array }, IS_ARRAY)
}

/// Takes over one reference to the object.
#[inline]
pub fn object(object: *mut zend_object) -> zval {
    raw(ffi::zend_value { obj: object }, IS_OBJECT_EX)
}

#[inline]
fn raw(value: ffi::zend_value, type_info: u32) -> zval {
    let mut zval = ext_php_rs::types::Zval::new();
    zval.value = value;
    zval.u1.type_info = type_info;
    zval
}

/// Adds a reference for a copy of the value.
///
/// # Safety
/// The value must be alive.
#[inline]
pub unsafe fn retain(value: *const zval) {
    // SAFETY: a counted value starts with its counter.
    unsafe {
        if (*value).u1.type_info >> TYPE_FLAGS_SHIFT != 0 {
            (*(*value).value.counted).gc.refcount += 1;
        }
    }
}

/// Replaces what a slot holds.
///
/// # Safety
/// The slot must be that of a living object, and must accept the value's type.
#[inline]
pub unsafe fn write(slot: *mut zval, value: zval) {
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
pub unsafe fn array(slot: *mut zval) -> *mut HashTable {
    // SAFETY: the caller's promise; the array in the slot is ours alone once it is counted.
    unsafe {
        if (*slot).u1.type_info == IS_ARRAY_EX {
            return (*slot).value.arr;
        }
        let array = ffi::_zend_new_array(8);
        std::ptr::write(slot, raw(ffi::zend_value { arr: array }, IS_ARRAY_EX));
        array
    }
}

/// A new array that nothing else refers to.
pub struct NewArray {
    array: *mut HashTable,
    value: zval,
}

impl NewArray {
    pub fn with_capacity(size: usize) -> Self {
        // SAFETY: PHP allocates the array with one reference, which the value takes over.
        let array = unsafe { ffi::_zend_new_array(u32::try_from(size.min(1024)).unwrap_or(8)) };
        let value = raw(ffi::zend_value { arr: array }, IS_ARRAY_EX);
        Self { array, value }
    }

    pub fn push(&mut self, value: zval) {
        // SAFETY: the array lives as long as `self.value`, and only this object refers to it.
        unsafe { push(self.array, value) };
    }

    /// Sets an entry; the key `"7"` becomes 7, as in PHP.
    pub fn put(&mut self, key: &[u8], value: zval) {
        // SAFETY: as for `push`.
        unsafe { put_key(self.array, key, value) };
    }

    pub fn into_zval(self) -> zval {
        self.value
    }
}

/// Another reference to an array.
///
/// # Safety
/// The array must be alive.
pub unsafe fn shared_array(array: *mut HashTable) -> zval {
    // SAFETY: the caller's promise.
    unsafe {
        if (*array).gc.u.type_info & IMMUTABLE != 0 {
            return raw(ffi::zend_value { arr: array }, IS_ARRAY);
        }
        (*array).gc.refcount += 1;
    }
    raw(ffi::zend_value { arr: array }, IS_ARRAY_EX)
}

/// # Safety
/// The array must be writable; it takes the value over.
#[inline]
pub unsafe fn push(array: *mut HashTable, mut value: zval) {
    // SAFETY: the caller's promise; PHP copies the zval's bits.
    unsafe { ffi::zend_hash_next_index_insert(array, &raw mut value) };
    std::mem::forget(value);
}

/// # Safety
/// As for `push`.
pub unsafe fn put_index(array: *mut HashTable, key: i64, mut value: zval) {
    // SAFETY: the caller's promise.
    unsafe { ffi::zend_hash_index_update(array, key as u64, &raw mut value) };
    std::mem::forget(value);
}

/// Puts under a key as PHP keeps it: `"7"` is the key 7.
///
/// # Safety
/// As for `push`.
pub unsafe fn put_key(array: *mut HashTable, key: &[u8], mut value: zval) {
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

/// An array's key.
#[derive(Clone, Copy)]
pub enum Key {
    Index(i64),
    Text(*mut zend_string),
}

/// Calls `visit` for each element, in PHP's order.
///
/// # Safety
/// The array must be alive and unchanged meanwhile: `visit` must not run PHP code that could reach it.
#[inline]
pub unsafe fn each<E>(
    array: *const HashTable,
    mut visit: impl FnMut(Key, Value) -> Result<(), E>,
) -> Result<(), E> {
    // SAFETY: the caller's promise; a packed array holds values at `arPacked`, any other buckets at `arData`.
    unsafe {
        let used = (*array).nNumUsed as usize;
        if (*array).u.flags & PACKED != 0 {
            for index in 0..used {
                let slot = (*array).__bindgen_anon_1.arPacked.add(index);
                if (*slot).u1.type_info & 0xFF != IS_UNDEF {
                    visit(Key::Index(index as i64), read(slot))?;
                }
            }
            return Ok(());
        }
        for index in 0..used {
            let bucket = (*array).__bindgen_anon_1.arData.add(index);
            if (*bucket).val.u1.type_info & 0xFF == IS_UNDEF {
                continue;
            }
            let key = if (*bucket).key.is_null() {
                Key::Index((*bucket).h as i64)
            } else {
                Key::Text((*bucket).key)
            };
            visit(key, read(&raw const (*bucket).val))?;
        }
        Ok(())
    }
}

/// # Safety
/// The array must be alive.
#[inline]
pub unsafe fn length(array: *const HashTable) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (*array).nNumOfElements as usize }
}

/// The properties of a plain object, as a struct of them is written. Runs the initializer of a lazy object (PHP 8.4).
pub fn properties(object: *mut zend_object) -> *mut HashTable {
    // SAFETY: the caller holds the object; PHP builds or returns its table.
    unsafe { ffi::zend_std_get_properties(object) }
}
