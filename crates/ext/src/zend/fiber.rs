//! Fibers.

use crate::c;

unsafe extern "C" {
    /// Zend/zend_fibers.h
    fn zend_fiber_switch_blocked() -> bool;
}

/// Whether the running fiber can be suspended. PHP forbids that in some callbacks of its own, and before PHP 8.4 in destructors; Weft forbids it in the
/// callback of an output buffer that fibers share.
pub fn can_switch_fibers() -> bool {
    // SAFETY: reads a flag of the engine.
    let is_blocked = unsafe { zend_fiber_switch_blocked() };
    !is_blocked && c::weft_buffers_may_wait()
}
