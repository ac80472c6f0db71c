//! Lists.

use ext_php_rs::types::{ZendHashTable, Zval};

/// PHP's `HASH_FLAG_PACKED`.
pub(super) const PACKED: u32 = 1 << 2;

/// `GC_IMMUTABLE` of `zend_refcounted_h` (Zend/zend_types.h).
const IMMUTABLE: u32 = 1 << 6;

/// Whether the array stands in PHP's code.
pub fn is_constant_array(array: &ZendHashTable) -> bool {
    // SAFETY: every array has this header, and every reading of the union's 32 bits is a valid `u32`.
    unsafe { array.gc.u.type_info & IMMUTABLE != 0 }
}

/// The values of an array that PHP keeps without keys and that has no holes.
pub fn packed(array: &ZendHashTable) -> Option<&[Zval]> {
    if array.nNumOfElements == 0 {
        return Some(&[]);
    }
    // SAFETY: every reading of the union's 32 bits is a valid `u32`.
    let flags = unsafe { array.u.flags };
    if flags & PACKED == 0 || array.nNumUsed != array.nNumOfElements {
        return None;
    }
    // SAFETY: a packed array holds `nNumUsed` values at `arPacked` (PHP 8.2 and later), which stay there as long as nobody
    // writes to the array (see crate::array); with as many elements as used slots none of them is undefined.
    Some(unsafe {
        std::slice::from_raw_parts(array.__bindgen_anon_1.arPacked, array.nNumUsed as usize)
    })
}
