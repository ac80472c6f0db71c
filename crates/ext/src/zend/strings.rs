//! Strings.

use ext_php_rs::types::ZendStr;

/// `IS_STR_INTERNED` of `zend_refcounted_h` (Zend/zend_types.h).
const INTERNED: u32 = 1 << 6;

/// Whether the string stands in PHP's code, or is another of those that PHP has once and never frees during a request.
pub fn is_constant(text: &ZendStr) -> bool {
    // SAFETY: every string has this header, and every reading of the union's 32 bits is a valid `u32`.
    unsafe { text.gc.u.type_info & INTERNED != 0 }
}
